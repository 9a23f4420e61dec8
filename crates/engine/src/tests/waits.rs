//! How long a pass waits for its masks, by the clock that the step was given.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use causeway_policy::{Guide, Laid, TokenMask};

use super::*;

/// Works at its mask until the gate is opened.
#[derive(Debug, Clone)]
struct Gated {
    mask: TokenMask,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl Guide for Gated {
    fn read(&mut self, _token: TokenId) {}

    fn laid(&mut self) -> Option<Laid> {
        None
    }

    fn has_mask(&self) -> bool {
        true
    }

    fn prepare(&mut self) {
        let is_open = self.gate.is_open.lock().unwrap();
        // A clock that is never asked fails the test, and does not hang it.
        let bound = Duration::from_secs(10);
        let mut waited =
            self.gate.opened.wait_timeout_while(is_open, bound, |open| !*open).unwrap();
        *waited.0 = false;
    }

    fn mask(&mut self) -> Result<Option<&TokenMask>, String> {
        Ok(Some(&self.mask))
    }

    fn boxed(&self) -> Box<dyn Guide> {
        Box::new(self.clone())
    }
}

fn gated(id: u64, gate: &Arc<Gate>) -> Submission {
    let mut mask = TokenMask::none(VOCAB_SIZE);
    mask.allow(TokenId(7));
    let guide: Box<dyn Guide> = Box::new(Gated { mask, gate: Arc::clone(gate) });
    Submission { guide: Some(guide), ..Submission::new(request(id, 4, 3), greedy(), 0) }
}

#[test]
fn a_pass_that_is_done_before_its_mask_says_how_long_it_waited() {
    let gate = Arc::new(Gate::default());
    let mut engine = engine(200, 2, 512);
    engine.submit(gated(0, &gate)).unwrap();
    engine.submit(submission(1, 4, 3)).unwrap();
    let (mut accounts, mut steps) = (Vec::new(), 0);
    // Three tokens each, and room for a step that goes wrong.
    while !engine.is_idle() && steps < 5 {
        let mut asked = 0;
        let outputs = engine.step(&mut || {
            asked += 1;
            // First the step begins; then the pass is done, and its mask is not.
            if asked == 2 {
                gate.open();
            }
            asked * 1_000
        });
        assert_eq!(engine.last_pass().mask_wait_ns, Some(1_000), "from call 2 to call 3");
        assert_eq!(asked, 4);
        let ended = |output: &Output| match output {
            Output::Ended(ended) => Some((ended.request, ended.account)),
            Output::Step(_) => None,
        };
        accounts.extend(outputs.iter().filter_map(ended));
        steps += 1;
    }
    assert_eq!(steps, 3);
    for (id, account) in accounts {
        let waits = (account.masked_passes, account.mask_waits, account.mask_wait_ns);
        assert_eq!(waits, if id.0 == 0 { (3, 3, 3_000) } else { (0, 0, 0) });
    }
}

#[test]
fn a_pass_without_masks_waits_for_none() {
    let mut engine = engine(200, 1, 512);
    engine.submit(submission(0, 4, 3)).unwrap();
    let mut asked = 0;
    engine.step(&mut || {
        asked += 1;
        asked
    });
    assert_eq!((asked, engine.last_pass().mask_wait_ns), (2, None));
}
