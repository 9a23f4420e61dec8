//! Against NumPy itself: seeds, raw outputs, uniforms, probabilities and tokens.

use causeway_request::TokenId;
use serde_json::Value;

use super::{FloatType, NumpyError, NumpyProgram, Pcg64, Seed, numpy_choice};

const SEEDS: &str = include_str!("../../../../testdata/sampling/pcg64.json");
const ROWS: &str = include_str!("../../../../testdata/sampling/numpy_choice.jsonl");

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn thirteen_seeds_give_numpys_words_states_and_outputs() {
    let tree: Value = serde_json::from_str(SEEDS).unwrap();
    let seeds = tree["seeds"].as_array().unwrap();
    assert_eq!(seeds.len(), 13);
    for row in seeds {
        let name = text(&row["seed"]);
        let seed: Seed = name.parse().unwrap();
        let words: Vec<Value> = seed.to_state_words(8).into_iter().map(Value::from).collect();
        assert_eq!(Value::from(words), row["seed_sequence_generate_state_8_u32"], "seed {name}");
        let mut generator = Pcg64::new(&seed);
        let (state, increment) = generator.state();
        assert_eq!(state.to_string(), text(&row["state"]), "seed {name}");
        assert_eq!(increment.to_string(), text(&row["inc"]), "seed {name}");
        let mut uniforms = generator.clone();
        for (raw, uniform) in
            row["raw_u64"].as_array().unwrap().iter().zip(row["random_f64"].as_array().unwrap())
        {
            assert_eq!(generator.next_u64().to_string(), text(raw), "seed {name}");
            assert_eq!(Some(uniforms.next_f64()), uniform.as_f64(), "seed {name}");
        }
    }
}

#[test]
fn a_seed_means_the_same_as_text_and_as_a_number() {
    for seed in [0, 1, 7, u64::from(u32::MAX), 1 << 32, u64::MAX] {
        assert_eq!(seed.to_string().parse::<Seed>().unwrap(), Seed::from(seed));
    }
    for text in ["", "-1", "1.5", "0x10", "seven"] {
        assert!(text.parse::<Seed>().is_err(), "{text}");
    }
    assert!("9".repeat(1001).parse::<Seed>().is_err());
}

fn ids(value: &Value) -> Vec<TokenId> {
    let id = |id: &Value| TokenId(u32::try_from(id.as_u64().unwrap()).unwrap());
    value.as_array().unwrap().iter().map(id).collect()
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[test]
fn every_row_of_the_program_comes_out() {
    let mut count = 0;
    for line in ROWS.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let float_type = if row["dtype"] == "float32" { FloatType::F32 } else { FloatType::F64 };
        let top_k = usize::try_from(row["top_k"].as_u64().unwrap()).unwrap();
        let (logits, seed) = (floats(&row["logits"]), text(&row["seed"]).parse().unwrap());
        let temperature = row["temperature"].as_f64().unwrap();
        let run = |keep: Option<&[TokenId]>| {
            let program = NumpyProgram { temperature, top_k, keep, float_type, seed: &seed };
            numpy_choice(&logits, &program).unwrap()
        };
        let keep = ids(&row["keep"]);
        let got = run(Some(&keep));
        assert_eq!(
            got.token,
            ids(&Value::from(vec![row["token"].clone()]))[0],
            "row {}",
            row["id"]
        );
        assert_eq!(Some(got.uniform), row["uniform"].as_f64(), "row {}", row["id"]);
        for (p, want) in got.probabilities.iter().zip(floats(&row["probs"])) {
            assert!((p - want).abs() <= 1e-5 * want, "row {}: {p} is not {want}", row["id"]);
        }
        let scalar = run(Some(&ids(&row["keep_numpy_scalar"])));
        assert_eq!(Some(u64::from(scalar.token.0)), row["token_numpy_scalar"].as_u64());
        if row["kth_value_tied"] == false {
            let own = run(None);
            let want = row["token_if_keep_sorted_by_logit_desc"].as_u64();
            assert_eq!(Some(u64::from(own.token.0)), want, "row {}", row["id"]);
        }
        count += 1;
    }
    assert_eq!(count, 100);
}

/// The program's example in float64, worked with Python's own floats.
#[test]
fn the_worked_example_comes_out() {
    let seed = Seed::from(7);
    let program = NumpyProgram {
        temperature: 0.7,
        top_k: 3,
        keep: None,
        float_type: FloatType::F64,
        seed: &seed,
    };
    let got = numpy_choice(&[1.2, 0.1, 2.4, 1.7], &program).unwrap();
    assert_eq!(got.keep, [TokenId(2), TokenId(3), TokenId(0)]);
    assert_eq!((got.token, got.uniform), (TokenId(2), 0.625_095_466_604_667));
    let want = WORKED;
    for (p, want) in got.probabilities.iter().zip(want) {
        assert!((p - want).abs() < 1e-12, "{p} is not {want}");
    }
}

const WORKED: [f64; 3] =
    [0.646_006_619_859_599_6, 0.237_652_554_307_001_86, 0.116_340_825_833_398_6];

#[test]
fn what_numpy_would_raise_on_is_refused() {
    let seed = Seed::from(1);
    let check = |logits: &[f64], temperature: f64, keep: Option<&[TokenId]>, want: NumpyError| {
        let program =
            NumpyProgram { temperature, top_k: 2, keep, float_type: FloatType::F64, seed: &seed };
        let got = numpy_choice(logits, &program).unwrap_err();
        assert_eq!(got, want);
        assert!(got.is_callers_mistake());
    };
    let (t, nan) = (|id| TokenId(id), f64::NAN);
    check(&[1.0, 2.0], 0.0, None, NumpyError::Temperature { temperature: 0.0 });
    check(&[1.0, 2.0], -1.0, None, NumpyError::Temperature { temperature: -1.0 });
    let infinite = f64::INFINITY;
    check(&[1.0, infinite], 1.0, None, NumpyError::Logit { token: t(1), value: infinite });
    check(&[f64::NEG_INFINITY; 2], 1.0, None, NumpyError::Nothing { logits: 2 });
    check(&[], 1.0, None, NumpyError::Nothing { logits: 0 });
    let outside = NumpyError::KeepOutside { token: t(2), logits: 2 };
    check(&[1.0, 2.0], 1.0, Some(&[t(0), t(2)]), outside);
    check(&[1.0, 2.0], 1.0, Some(&[t(0), t(0)]), NumpyError::KeepTwice { token: t(0) });
    let count = NumpyError::KeepCount { found: 1, top_k: 2 };
    check(&[1.0, 2.0], 1.0, Some(&[t(0)]), count);
    let program = NumpyProgram {
        temperature: 1.0,
        top_k: 0,
        keep: None,
        float_type: FloatType::F64,
        seed: &seed,
    };
    assert!(matches!(
        numpy_choice(&[nan, 1.0], &program),
        Err(NumpyError::Logit { token: TokenId(0), .. })
    ));
}
