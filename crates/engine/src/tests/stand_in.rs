//! A stand-in for the model: faults that a real one has too rarely for a test.

use std::sync::Arc;

use causeway_kv_cache::{Cache, KvShape, KvType, LayerShape};
use causeway_model::{Span, Workspace};
use causeway_policy::{Policy, PolicyFile};
use causeway_request::{Request, RequestId, StopReason, TokenId};

use crate::{Ended, Engine, Forward, Limits, Output, Submission};

/// Answers every token with the next one; fails on token 13.
struct Counting {
    head_dim: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("token 13 is in this pass")]
struct Unlucky;

impl Forward for Counting {
    type Error = Unlucky;

    fn vocab_size(&self) -> usize {
        32
    }

    fn context_len(&self) -> usize {
        64
    }

    fn kv_shape(&self, sequences_max: usize, chunk_max: usize) -> KvShape {
        let layer = LayerShape { n_kv_heads: 1, head_dim: self.head_dim, window: None };
        let positions_max = 64 * sequences_max;
        KvShape { layers: vec![layer], kind: KvType::F32, positions_max, chunk_max, sequences_max }
    }

    fn forward(
        &self,
        spans: &[Span<'_>],
        _: &mut Cache,
        _: &mut Workspace,
        read: &mut dyn FnMut(&[&[f32]]),
    ) -> Result<(), Unlucky> {
        if spans.iter().any(|span| span.tokens.contains(&TokenId(13))) {
            return Err(Unlucky);
        }
        let row = |span: &Span<'_>| {
            let mut row = vec![0.0; 32];
            row[(span.tokens[span.tokens.len() - 1].index() + 1) % 32] = 9.0;
            row
        };
        let due = spans.iter().filter(|span| span.logits_wanted > 0);
        let rows: Vec<Vec<f32>> = due.map(row).collect();
        read(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
        Ok(())
    }
}

fn submission(id: u64, token: u32, tokens_max: usize) -> Submission {
    let request = Request {
        id: RequestId(id),
        tokens: vec![TokenId(token)],
        prefilled: 0,
        tokens_max,
        stop_tokens: Vec::new(),
        eos_tokens: Vec::new(),
        seed: 1,
        choice: 0,
    };
    let mut file = PolicyFile::default();
    file.choose.method = causeway_policy::Method::Greedy;
    Submission::new(request, Arc::new(Policy::from_file(&file, 32, &[]).unwrap()), 0)
}

/// Tokens and the stop of one request, after at most 100 steps.
fn answer(outputs: &[Output], id: u64) -> (Vec<u32>, StopReason) {
    let id = RequestId(id);
    let token = |output: &Output| match output {
        Output::Step(step) if step.request == id => Some(step.choice.token.0),
        _ => None,
    };
    let stop = |output: &Output| match output {
        Output::Ended(Ended { request, stop, .. }) if *request == id => Some(stop.clone()),
        _ => None,
    };
    (outputs.iter().filter_map(token).collect(), outputs.iter().find_map(stop).unwrap())
}

fn run(head_dim: usize, submissions: Vec<Submission>) -> Vec<Output> {
    let mut engine = Engine::new(Counting { head_dim }, Limits::new(4, 16));
    engine.submit_all(submissions).unwrap();
    let outputs = (0..100).flat_map(|_| engine.step(&mut || 0)).collect();
    assert!(engine.is_idle() && engine.load().held_blocks == 0);
    outputs
}

fn failed(message: String) -> StopReason {
    StopReason::Error { message, is_callers_mistake: false }
}

#[test]
fn a_pass_that_fails_ends_only_whose_part_failed() {
    let outputs = run(16, vec![submission(0, 20, 4), submission(1, 10, 9), submission(2, 1, 5)]);
    assert_eq!(
        answer(&outputs, 0),
        (vec![21, 22, 23, 24], StopReason::MaxTokens { tokens_max: 4 })
    );
    let message = "token 13 is in this pass".to_owned();
    assert_eq!(answer(&outputs, 1), (vec![11, 12, 13], failed(message)));
    assert_eq!(answer(&outputs, 2).0, [2, 3, 4, 5, 6]);
}

#[test]
fn memory_that_the_system_refuses_ends_the_request_with_a_sentence() {
    let outputs = run(1 << 44, vec![submission(0, 20, 4), submission(1, 2, 4)]);
    for id in 0..2 {
        let (tokens, stop) = answer(&outputs, id);
        assert!(tokens.is_empty());
        let StopReason::Error { message, is_callers_mistake: false } = stop else {
            panic!("{stop:?}")
        };
        assert!(message.contains("out of memory"), "{message}");
    }
}
