//! Engines with a folder for idle prefixes: fewer positions computed, and never another bit.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use causeway_engine::{Engine, Limits, Output, Submission};
use causeway_kernels::{Kernels, KvType};
use causeway_model::{Model, Settings};
use causeway_policy::{Policy, PolicyFile};
use causeway_request::{Request, RequestId, TokenId};
use causeway_session::KvDisk;
use causeway_weights::ModelFile;

const VOCAB_SIZE: usize = 512;
/// More passes than any run here needs, so that a fault ends it.
const PASSES_MAX: usize = 2_000;

fn engine(model: &str, key: u8, kv_type: KvType) -> Engine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny").join(model);
    let file = Arc::new(ModelFile::open(&folder).unwrap());
    let settings = Settings { context_len: Some(160), kv_type, threads: 1 };
    let model = Model::load(file, settings, Kernels::best()).unwrap();
    // Memory for one sequence and a little: what is idle has to leave.
    let limits = Limits { model_key: [key; 32], kv_positions_max: Some(160), ..Limits::new(1, 48) };
    Engine::new(model, limits)
}

fn disk(folder: &Path, bytes_max: u64) -> KvDisk {
    KvDisk::open(folder, bytes_max, |error| panic!("{error}")).unwrap()
}

/// A prompt of 120 tokens that differs from others by `number`, and what came of it: cached
/// tokens, and token and digest of each step.
fn run(engine: &mut Engine, number: u32, salt: Option<&str>) -> (usize, Vec<(u32, String)>) {
    let policy = Policy::from_file(&PolicyFile::default(), VOCAB_SIZE, &[]).unwrap();
    let request = Request {
        id: RequestId(1),
        tokens: (0..120).map(|i| TokenId((i * 37 + 11 * number) % 512)).collect(),
        prefilled: 0,
        tokens_max: 6,
        stop_tokens: Vec::new(),
        eos_tokens: Vec::new(),
        seed: 5,
        choice: 0,
    };
    let cache_salt = salt.map(str::to_owned);
    engine.submit(Submission { cache_salt, ..Submission::new(request, policy, 0) }).unwrap();
    let (mut steps, mut cached) = (Vec::new(), None);
    for _ in 0..PASSES_MAX {
        for output in engine.step(&mut || 0) {
            match output {
                Output::Step(step) => {
                    steps.push((step.choice.token.0, format!("{:?}", step.digest)));
                }
                Output::Ended(ended) => cached = Some(ended.account.cached_tokens),
            }
        }
        if engine.is_idle() {
            break;
        }
    }
    (cached.unwrap(), steps)
}

/// What each of some prompts comes to by itself, without any cache.
fn alone(model: &str, numbers: &[u32]) -> Vec<Vec<(u32, String)>> {
    let run = |number: &u32| run(&mut engine(model, 1, KvType::F16), *number, None).1;
    numbers.iter().map(run).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let inside = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten();
    folders.flat_map(inside).map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_tiny_cache_finds_on_the_disk_what_it_had_to_give_up() {
    // The second model has layers with a sliding window.
    for model in ["llama", "gemma3"] {
        let numbers = [0, 1, 2];
        let want = alone(model, &numbers);
        let folder = tempfile::tempdir().unwrap();
        let kept = disk(folder.path(), 1 << 30);
        for life in 0..2 {
            let mut engine = engine(model, 1, KvType::F16);
            engine.set_shelf(kept.shelf());
            let turns = (0..3).flat_map(|turn| numbers.map(|number| (turn, number)));
            for (turn, number) in turns {
                let (cached, steps) = run(&mut engine, number, None);
                assert_eq!(steps, want[number as usize], "{model}, life {life}, turn {turn}");
                let want_cached = [0, 112][usize::from(life + turn > 0)];
                assert_eq!(cached, want_cached, "{model}, life {life}, turn {turn}");
            }
            engine.shelve();
            assert!(engine.load().prefix_restored > 10, "{:?}", engine.load());
        }
        let counts = kept.counts();
        assert_eq!((counts.lost, counts.damaged, counts.evicted), (0, 0, 0), "{counts:?}");
    }
}

#[test]
fn a_restart_keeps_hits_and_damage_is_computed_again() {
    for model in ["llama", "gemma3"] {
        let want = alone(model, &[3]).remove(0);
        let folder = tempfile::tempdir().unwrap();
        let life = || {
            let kept = KvDisk::open(folder.path(), 1 << 30, |_| ()).unwrap();
            let mut engine = engine(model, 1, KvType::F16);
            engine.set_shelf(kept.shelf());
            let (cached, steps) = run(&mut engine, 3, None);
            assert_eq!(steps, want, "{model}");
            engine.shelve();
            drop(engine);
            kept.close();
            (cached, kept.counts().damaged)
        };
        assert_eq!([life(), life()], [(0, 0), (112, 0)], "{model}");
        let damaged = files(folder.path());
        for path in &damaged {
            let mut bytes = fs::read(path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(path, bytes).unwrap();
        }
        let (cached, damaged) = life();
        assert!(cached == 0 && damaged > 0, "{model}: {cached} cached, {damaged} damaged");
        // What lies behind a gap is not read, so that damage is found as far as hits reach.
        let is_whole = (0..2 * files(folder.path()).len()).any(|_| life() == (112, 0));
        assert!(is_whole, "{model}: what was damaged is written again");
    }
}

#[test]
fn models_types_and_salts_share_a_folder_and_nothing_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let kept = disk(folder.path(), 1 << 30);
    let check = |model: &str, key: u8, kv_type: KvType, salt: Option<&str>, want: usize| {
        let alone = run(&mut engine(model, key, kv_type), 7, salt).1;
        let mut engine = engine(model, key, kv_type);
        engine.set_shelf(kept.shelf());
        let (cached, steps) = run(&mut engine, 7, salt);
        assert_eq!((cached, steps), (want, alone), "{model} {key} {kv_type:?} {salt:?}");
        engine.shelve();
    };
    for want in [0, 112] {
        check("llama", 1, KvType::F16, None, want);
        // Blocks of the same size, other weights.
        check("llama", 2, KvType::F16, None, want);
        check("qwen2", 3, KvType::F16, None, want);
        check("llama", 1, KvType::F32, None, want);
        check("llama", 1, KvType::Q8_0, None, want);
        check("llama", 1, KvType::F16, Some(""), want);
        check("llama", 1, KvType::F16, Some("a"), want);
        check("llama", 1, KvType::F16, Some("b"), want);
    }
}

#[test]
fn a_folder_too_small_for_a_prompt_holds_its_limit_and_helps_a_little() {
    let folder = tempfile::tempdir().unwrap();
    let want = alone("gemma3", &[0, 1]);
    let all = {
        let kept = disk(folder.path(), 1 << 30);
        let mut engine = engine("gemma3", 1, KvType::F16);
        engine.set_shelf(kept.shelf());
        run(&mut engine, 0, None);
        engine.shelve();
        kept.close();
        kept.counts().bytes
    };
    for life in 0..3 {
        let kept = disk(folder.path(), all / 2);
        let mut engine = engine("gemma3", 1, KvType::F16);
        engine.set_shelf(kept.shelf());
        for (number, want) in [0, 1].into_iter().zip(&want) {
            assert_eq!(run(&mut engine, number, None).1, *want, "life {life}, prompt {number}");
        }
        engine.shelve();
        kept.close();
        let on_disk: u64 =
            files(folder.path()).iter().map(|f| fs::metadata(f).unwrap().len()).sum();
        assert_eq!(on_disk, kept.counts().bytes);
        assert!(on_disk <= all / 2, "{on_disk} of {all}");
    }
}
