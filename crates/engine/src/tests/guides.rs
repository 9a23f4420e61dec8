//! Tokens that are laid: the same whatever the batch, the chunk, the cache; stops as ever.

use causeway_policy::{Guide, Laid, LaidBy};
use causeway_request::Cause;

use super::*;

const BY: &str = "reasoning.tokens_max";

/// Lays `marker` once `after` tokens have been read, and once more as often as they have again.
#[derive(Debug, Clone)]
struct After {
    after: usize,
    read: usize,
    marker: Vec<TokenId>,
}

impl Guide for After {
    fn read(&mut self, _token: TokenId) {
        self.read += 1;
    }

    fn laid(&mut self) -> Option<Laid> {
        let place = self.read % (self.after + self.marker.len());
        let token = *self.marker.get(place.checked_sub(self.after)?)?;
        Some(Laid { token, by: LaidBy::Field(BY) })
    }

    fn boxed(&self) -> Box<dyn Guide> {
        Box::new(self.clone())
    }
}

fn guided(request: Request, policy: Policy, after: usize) -> Submission {
    let marker = vec![TokenId(7), TokenId(501), TokenId(7)];
    let guide: Box<dyn Guide> = Box::new(After { after, read: 0, marker });
    Submission { guide: Some(guide), ..Submission::new(request, policy, 0) }
}

fn alone_guided(request: Request, policy: Policy, after: usize) -> Vec<StepOutput> {
    let (mut engine, id) = (engine_of("llama", 200, Limits::new(1, 512)), request.id.0);
    engine.submit(guided(request, policy, after)).unwrap();
    steps_of(&run_all(&mut engine, |_, _| ()), id)
}

#[test]
fn laid_tokens_are_forced_and_those_between_are_chosen() {
    let steps = alone_guided(request(0, 5, 12), greedy(), 3);
    let places = |step: &StepOutput| (step.choice.cause == Cause::Forced, step.choice.forced_by);
    for (index, step) in steps.iter().enumerate() {
        let is_laid = index % 6 >= 3;
        assert_eq!(places(step), (is_laid, is_laid.then_some(BY)), "{index}");
    }
    let laid: Vec<u32> = steps[3..6].iter().map(|step| step.choice.token.0).collect();
    assert_eq!(laid, [7, 501, 7]);
    // Up to the first laid token the run is the one without a guide, the row of that step too.
    let free = alone(request(0, 5, 12), greedy());
    assert_eq!(bits(&steps[..3]), bits(&free[..3]));
    assert_eq!(steps[3].digest, free[3].digest);
}

#[test]
fn a_guide_at_once_lays_from_the_first_step_on() {
    let steps = alone_guided(request(0, 5, 4), greedy(), 0);
    assert!(steps.iter().all(|step| step.choice.cause == Cause::Forced));
}

#[test]
fn stops_and_budgets_count_laid_tokens() {
    for tokens_max in 1..8 {
        let steps = alone_guided(request(0, 5, tokens_max), greedy(), 2);
        assert_eq!(steps.len(), tokens_max);
        assert_eq!(steps.last().unwrap().stop, Some(StopReason::MaxTokens { tokens_max }));
    }
    let mut stop = request(0, 5, 12);
    stop.stop_tokens = vec![TokenId(501)];
    let steps = alone_guided(stop, greedy(), 2);
    assert_eq!(steps.len(), 4);
    assert_eq!(steps[3].stop, Some(StopReason::StopToken { token: TokenId(501) }));
}

#[test]
fn no_neighbour_chunk_cache_or_recomputation_changes_a_bit() {
    let requests: Vec<Request> =
        (0..6).zip((3..).step_by(9)).map(|(id, length)| request(id, length, 20)).collect();
    let policy = |id: u64| if id.is_multiple_of(2) { sampled() } else { greedy() };
    let want: Vec<_> = requests
        .iter()
        .map(|request| bits(&alone_guided(request.clone(), policy(request.id.0), 4)))
        .collect();
    let sizes = [(1, 512, true), (6, 16, true), (3, 7, false), (6, 512, false), (6, 2, true)];
    for ((running_max, budget, prefix_cache), fast_forward) in
        sizes.into_iter().flat_map(|sizes| [(sizes, true), (sizes, false)])
    {
        let limits = Limits { prefix_cache, fast_forward, ..Limits::new(running_max, budget) };
        let mut engine = engine_of("llama", 200, limits);
        for round in 0..2 {
            for request in &requests {
                let guided = guided(request.clone(), policy(request.id.0), 4);
                engine.submit(guided).unwrap();
            }
            let outputs = run_all(&mut engine, |engine, pass| {
                // The blocks go, the guide stays.
                if pass == 9 {
                    engine.preempt(RequestId(0));
                }
            });
            for (id, want) in want.iter().enumerate() {
                let found = bits(&steps_of(&outputs, id as u64));
                assert_eq!(&found, want, "{limits:?} {round} {id}");
            }
        }
    }
}
