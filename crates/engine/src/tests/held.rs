//! Answers that are held to a form: masked, ended where they are whole, laid ahead, never let go.

use causeway_policy::{Guide, Laid, LaidBy, MASK, TokenMask};
use causeway_request::{Cause, Choice};

use super::*;
use crate::PassAccount;

/// Allows only tokens that leave `rest` when divided by 5; behind each chosen one, two are laid.
/// Whole after `whole` tokens, at a loss after `lost`.
#[derive(Debug, Clone)]
pub(super) struct Form {
    mask: TokenMask,
    read: usize,
    whole: usize,
    lost: usize,
}

pub(super) fn form(rest: u32, whole: usize, lost: usize) -> Form {
    let mut mask = TokenMask::none(VOCAB_SIZE);
    for token in (0..512).filter(|token| token % 5 == rest) {
        mask.allow(TokenId(token));
    }
    Form { mask, read: 0, whole, lost }
}

impl Guide for Form {
    fn read(&mut self, _token: TokenId) {
        self.read += 1;
    }

    fn laid(&mut self) -> Option<Laid> {
        let place = self.read % 3;
        let token = TokenId(300 + u32::try_from(place).unwrap());
        (place > 0).then_some(Laid { token, by: LaidBy::Form })
    }

    fn has_mask(&self) -> bool {
        true
    }

    fn mask(&mut self) -> Result<Option<&TokenMask>, String> {
        if self.read >= self.lost {
            return Err("the form is lost".to_owned());
        }
        Ok(Some(&self.mask))
    }

    fn is_complete(&self) -> bool {
        self.read >= self.whole
    }

    fn boxed(&self) -> Box<dyn Guide> {
        Box::new(self.clone())
    }
}

pub(super) fn held(request: Request, policy: Policy, form: Form) -> Submission {
    Submission { guide: Some(Box::new(form)), ..Submission::new(request, policy, 0) }
}

pub(super) fn run_one(
    submission: Submission,
    limits: Limits,
) -> (Vec<StepOutput>, StopReason, PassAccount) {
    let (mut engine, id) = (engine_of("llama", 200, limits), submission.request.id);
    engine.submit(submission).unwrap();
    let outputs = run_all(&mut engine, |_, _| ());
    let ended = outputs.iter().find_map(|output| match output {
        Output::Ended(Ended { request, stop, account }) if *request == id => {
            Some((stop.clone(), *account))
        }
        _ => None,
    });
    let (stop, account) = ended.unwrap();
    (steps_of(&outputs, id.0), stop, account)
}

#[test]
fn a_form_masks_lays_and_ends_where_it_is_whole() {
    let (steps, stop, account) =
        run_one(held(request(0, 7, 50), sampled(), form(2, 9, 99)), Limits::new(1, 512));
    assert_eq!(stop, StopReason::SchemaComplete);
    assert_eq!(steps.len(), 9);
    for (index, step) in (0_u32..).zip(&steps) {
        let Choice { token, cause, forced_by, removed_by, .. } = step.choice;
        if index % 3 == 0 {
            assert_eq!(token.0 % 5, 2, "{index}");
            assert!(removed_by.is_none_or(|by| by == MASK));
        } else {
            assert_eq!((token.0, cause), (300 + index % 3, Cause::Forced), "{index}");
        }
        assert_eq!(forced_by, None, "the form is among the constraints");
    }
    assert_eq!(steps[8].stop, Some(StopReason::SchemaComplete));
    // Step 0 is the prefill's; then 1 to 3, 4 to 6, and 7 and 8, whose last needs no position.
    assert_eq!((account.prefill_passes, account.decode_passes), (1, 3));
}

#[test]
fn without_fast_forward_every_token_has_a_pass_and_the_same_bits() {
    let slow = Limits { fast_forward: false, ..Limits::new(1, 512) };
    for policy in [greedy(), sampled()] {
        let submission = || held(request(0, 20, 50), policy.clone(), form(1, 14, 99));
        let (fast, stop, _) = run_one(submission(), Limits::new(1, 512));
        let (slow, slow_stop, account) = run_one(submission(), slow);
        assert_eq!(bits(&fast), bits(&slow));
        assert_eq!(stop, slow_stop);
        assert_eq!(account.decode_passes, 13);
    }
}

#[test]
fn budgets_and_contexts_end_what_is_laid_ahead() {
    for tokens_max in 1..=12 {
        let (steps, stop, account) = run_one(
            held(request(0, 5, tokens_max), greedy(), form(0, 99, 99)),
            Limits::new(1, 512),
        );
        assert_eq!(steps.len(), tokens_max);
        assert_eq!(stop, StopReason::MaxTokens { tokens_max });
        assert_eq!(account.unscheduled_steps, 0);
    }
    let (steps, stop, _) =
        run_one(held(request(0, 190, 50), greedy(), form(0, 99, 99)), Limits::new(1, 512));
    assert_eq!((steps.len(), stop), (10, StopReason::ContextFull { context_len: 200 }));
}

#[test]
fn a_form_that_is_lost_fails_the_run_and_no_other() {
    let mut engine = engine(200, 2, 512);
    engine.submit(held(request(0, 5, 50), greedy(), form(0, 99, 6))).unwrap();
    engine.submit(submission(1, 4, 9)).unwrap();
    let outputs = run_all(&mut engine, |_, _| ());
    assert_eq!(bits(&steps_of(&outputs, 1)), bits(&alone(request(1, 4, 9), greedy())));
    assert_eq!(steps_of(&outputs, 0).len(), 6, "nothing is chosen without its mask");
    let message = "the form is lost (step 6)".to_owned();
    let failed = StopReason::Error { message, is_callers_mistake: true };
    assert!(outputs.iter().any(
        |output| matches!(output, Output::Ended(ended) if ended.request == RequestId(0) && ended.stop == failed)
    ));
}

#[test]
fn neighbours_chunks_caches_and_recomputation_change_no_bit() {
    let requests: Vec<Request> =
        (0..6).zip((3..).step_by(11)).map(|(id, length)| request(id, length, 30)).collect();
    let submission = |request: &Request| {
        let rest = u32::try_from(request.id.0 % 5).unwrap();
        held(request.clone(), sampled(), form(rest, 25, 99))
    };
    let want: Vec<_> = requests
        .iter()
        .map(|request| bits(&run_one(submission(request), Limits::new(1, 512)).0))
        .collect();
    for (running_max, budget, prefix_cache) in
        [(6, 512, true), (6, 16, true), (3, 5, false), (6, 2, true), (2, 1, false)]
    {
        let limits = Limits { prefix_cache, ..Limits::new(running_max, budget) };
        let mut engine = engine_of("llama", 200, limits);
        for round in 0..2 {
            requests.iter().for_each(|request| engine.submit(submission(request)).unwrap());
            let outputs = run_all(&mut engine, |engine, pass| {
                if pass % 40 == 9 && pass < 400 {
                    engine.preempt(RequestId(pass as u64 % 6));
                }
            });
            for (id, want) in want.iter().enumerate() {
                let found = bits(&steps_of(&outputs, id as u64));
                assert_eq!(&found, want, "{limits:?} {round} {id}");
            }
        }
    }
}
