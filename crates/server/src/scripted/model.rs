//! Logits by a script: a function of the tokens in the cache, like any model's.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use causeway_engine::Forward;
use causeway_kv_cache::{Cache, KvShape, KvType, LayerShape};
use causeway_model::{Span, Workspace};
use causeway_request::RequestId;

use super::{Answer, EOS, MARKS, Script};

/// Score of the scripted token; all others have 0, so that it has all but 1e-19 of the mass.
const SCORE: f32 = 50.0;
/// Positions of one tile of the cache.
const TILE: usize = causeway_kv_cache::BLOCK_POSITIONS;
/// Requests whose prompt's length is remembered.
const REMEMBERED_MAX: usize = 65_536;

/// A script at work.
#[derive(Debug)]
pub(super) struct Scripted {
    context_len: usize,
    /// Bytes of each token, as prompts are read.
    pieces: Vec<Vec<u8>>,
    answers: Vec<(Answer, Vec<u32>)>,
    /// Where each request's answer begins: behind all that was known when it was first due a
    /// token.
    prompts: Mutex<BTreeMap<RequestId, usize>>,
}

/// What a script can do wrong when it is asked to.
#[derive(Debug, thiserror::Error)]
#[error("the script fails at step {step}")]
pub(super) struct Failed {
    step: usize,
}

impl Scripted {
    pub(super) fn new(script: &Script) -> Self {
        let vocabulary = script.tokens();
        let answers = script.answers.iter();
        let answers = answers.map(|one| (one.clone(), one.tokens(&vocabulary))).collect();
        let bytes = |(id, token): (usize, &String)| match id.checked_sub(MARKS.len()) {
            Some(byte @ 0..=255) => vec![u8::try_from(byte).unwrap_or_default()],
            _ => token.replace('\u{2581}', " ").into_bytes(),
        };
        Self {
            context_len: script.context_len,
            pieces: vocabulary.iter().enumerate().map(bytes).collect(),
            answers,
            prompts: Mutex::new(BTreeMap::new()),
        }
    }

    /// The prompt's length of a request that is due a token after `known` ones.
    fn prompt_len(&self, request: RequestId, known: usize) -> usize {
        let mut prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        while prompts.len() > REMEMBERED_MAX {
            prompts.pop_first();
        }
        *prompts.entry(request).or_insert(known)
    }

    /// The answer to a prompt: the first one whose text stands in it.
    fn answer(&self, prompt: &[u32]) -> Option<&(Answer, Vec<u32>)> {
        let bytes: Vec<u8> =
            prompt.iter().flat_map(|id| self.pieces[*id as usize].clone()).collect();
        // A space that no piece has comes as the bytes of its mark.
        let text = String::from_utf8_lossy(&bytes).replace('\u{2581}', " ");
        self.answers.iter().find(|(answer, _)| text.contains(&answer.when))
    }

    /// One row: the scripted token of a step, or what the script has in its place.
    fn row(&self, answer: Option<&(Answer, Vec<u32>)>, step: usize) -> Vec<f32> {
        let mut row = vec![0.0; self.pieces.len()];
        let Some((answer, tokens)) = answer else {
            row[EOS as usize] = SCORE;
            return row;
        };
        if answer.nan_at == Some(step) {
            row.fill(f32::NAN);
            return row;
        }
        let at = if answer.repeats { step % tokens.len().max(1) } else { step };
        row[tokens.get(at).copied().unwrap_or(EOS) as usize] = SCORE;
        row
    }
}

impl Forward for Scripted {
    type Error = Failed;

    fn vocab_size(&self) -> usize {
        self.pieces.len()
    }

    fn context_len(&self) -> usize {
        self.context_len
    }

    fn kv_shape(&self, sequences_max: usize, chunk_max: usize) -> KvShape {
        KvShape {
            layers: vec![LayerShape { n_kv_heads: 1, head_dim: 1, window: None }],
            kind: KvType::F32,
            positions_max: self.context_len,
            chunk_max,
            sequences_max,
        }
    }

    fn forward(
        &self,
        spans: &[Span<'_>],
        cache: &mut Cache,
        _work: &mut Workspace,
        read: &mut dyn FnMut(&[&[f32]]),
    ) -> Result<(), Failed> {
        let (mut rows, mut delay_ms) = (Vec::new(), 0);
        for span in spans {
            for (offset, token) in span.tokens.iter().enumerate() {
                #[expect(clippy::cast_precision_loss, reason = "scripts are below 2^24 tokens")]
                let id = token.0 as f32;
                let position = span.first_position + offset;
                for block in &mut cache.open_blocks(0, &[(span.request, position)]) {
                    block.write(position, &[id], &[0.0]);
                }
            }
            let known = span.first_position + span.tokens.len();
            let tokens = tokens_of(cache, span.request, known);
            // A row behind the prompt, and one behind each token that was laid.
            let due = span.logits_wanted;
            let first = known + 1 - due.max(1);
            let prompt_len = if due > 0 { self.prompt_len(span.request, first) } else { known };
            let answer = self.answer(&tokens[..prompt_len.min(known)]);
            let step = known - prompt_len.min(known);
            let steps = (first - prompt_len.min(first)..=step).take(due);
            if let Some((answer, _)) = answer {
                let is_prompt = span.first_position < prompt_len;
                let own_ms = if is_prompt { answer.prefill_delay_ms } else { answer.delay_ms };
                let hang_ms = if answer.hangs_at == Some(step) { answer.hang_ms } else { 0 };
                delay_ms = delay_ms.max(own_ms).max(hang_ms);
                let panics = |step| answer.panics_at == Some(step);
                assert!(!steps.clone().any(panics), "the script panics here");
                if let Some(step) = steps.clone().find(|step| answer.fails_at == Some(*step)) {
                    return Err(Failed { step });
                }
            }
            rows.extend(steps.map(|step| self.row(answer, step)));
        }
        std::thread::sleep(Duration::from_millis(delay_ms));
        let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        read(&rows);
        Ok(())
    }
}

/// The tokens of a sequence, as they lie in the cache: one key each, of one number.
fn tokens_of(cache: &Cache, request: RequestId, known: usize) -> Vec<u32> {
    let (layer, table) = cache.view(request, 0);
    let slab = layer.slab(table, 0);
    let token = |position: usize| {
        let (bytes, _) = slab.keys_of(position / TILE).as_chunks::<4>();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "what was written is a token's id"
        )]
        let id = f32::from_le_bytes(bytes[position % TILE]) as u32;
        id
    };
    (0..known).map(token).collect()
}
