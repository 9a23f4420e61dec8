//! A laid token's account is the row's, and the policy has no part in it.

use causeway_request::{Cause, Choice, TokenId};

use super::{Laid, LaidBy, MASK, THOUGHT_BUDGET};
use crate::{ChooseError, Policy, PolicyFile, Scratch, StepContext};

const BUDGET: LaidBy = LaidBy::Field(THOUGHT_BUDGET);

fn lay(file: &PolicyFile, logits: &[f32], token: u32) -> Result<Choice, ChooseError> {
    lay_by(BUDGET, file, logits, token)
}

fn lay_by(
    by: LaidBy,
    file: &PolicyFile,
    logits: &[f32],
    token: u32,
) -> Result<Choice, ChooseError> {
    let policy = Policy::from_file(file, logits.len(), &[]).unwrap();
    let tokens = [TokenId(0)];
    let context = StepContext { tokens: &tokens, prompt_tokens: 1, seed: 1, choice: 0, step: 7 };
    let laid = Laid { token: TokenId(token), by };
    policy.lay(logits, laid, &context, &mut Scratch::default())
}

/// The token that is laid, its rank, and whether another one was the raw best.
fn check(file: &PolicyFile, logits: &[f32], token: u32, rank: u32) {
    let laid = lay(file, logits, token).unwrap();
    let free = Policy::from_file(&PolicyFile::default(), logits.len(), &[]).unwrap();
    let tokens = [TokenId(0)];
    let context = StepContext { tokens: &tokens, prompt_tokens: 1, seed: 1, choice: 0, step: 7 };
    let chosen = free.choose(logits, &context, &mut Scratch::default()).unwrap();
    assert_eq!((laid.token, laid.rank), (TokenId(token), rank));
    assert_eq!((laid.cause, laid.forced_by), (Cause::Forced, Some(THOUGHT_BUDGET)));
    assert_eq!((laid.probability.to_bits(), laid.survivors), (1.0_f64.to_bits(), 1));
    assert_eq!((laid.raw_best, laid.entropy), (chosen.raw_best, chosen.entropy));
    assert_eq!(laid.removed_by, (rank > 1).then_some(THOUGHT_BUDGET));
    assert_eq!(laid.runner_up, None);
}

#[test]
fn a_laid_token_has_the_rows_own_account() {
    let plain = PolicyFile::default();
    check(&plain, &[0.0, 3.0, 1.0, 1.0], 1, 1);
    check(&plain, &[0.0, 3.0, 1.0, 1.0], 3, 3);
    check(&plain, &[0.0, 3.0, f32::NEG_INFINITY, 1.0], 2, 4);
    let ruled_out = lay(&plain, &[0.0, 3.0, f32::NEG_INFINITY, 1.0], 2).unwrap();
    assert!(ruled_out.logprob.is_infinite());
}

#[test]
fn an_account_says_the_form_as_a_mask_and_a_field_by_its_path() {
    let told = |by| {
        let laid = lay_by(by, &PolicyFile::default(), &[0.0, 3.0, 1.0, 1.0], 2).unwrap();
        (laid.removed_by, laid.forced_by)
    };
    assert_eq!(told(BUDGET), (Some(THOUGHT_BUDGET), Some(THOUGHT_BUDGET)));
    assert_eq!(told(LaidBy::Form), (Some(MASK), None));
}

#[test]
fn no_constraint_stands_in_its_way() {
    let mut file = PolicyFile::default();
    file.constraints.forbidden_tokens = vec![TokenId(2)];
    file.constraints.allowed_tokens = vec![TokenId(0), TokenId(1)];
    file.shape.temperature = 0.0;
    check(&file, &[0.0, 3.0, 1.0, 1.0], 2, 2);
}

#[test]
fn a_row_that_is_no_row_is_refused_as_ever() {
    let file = PolicyFile::default();
    let token = TokenId(4);
    let outside = ChooseError::TokenOutside { token, vocab_size: 4 };
    assert_eq!(lay(&file, &[0.0, 3.0, 1.0, 1.0], 4), Err(outside));
    let nan = ChooseError::NotANumber { step: 7, token: TokenId(1) };
    assert_eq!(lay(&file, &[0.0, f32::NAN, 1.0, 1.0], 2), Err(nan));
}
