//! The rows of one pass, each chosen from by its own run.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use causeway_request::{Choice, Digest, RequestId, TokenId};

use crate::run::Run;
use crate::{Forward, digest};

/// A token, and what is told of the logits it was chosen from.
#[derive(Debug)]
pub(crate) struct Picked {
    pub(crate) choice: Choice,
    pub(crate) digest: Digest,
    pub(crate) top: Vec<(TokenId, f64)>,
}

/// What was chosen, or why nothing could be.
pub(crate) type Chosen = Result<Picked, String>;

/// One run's part in the pass, for whichever thread takes it.
struct Job<'a> {
    run: &'a mut Run,
    row: &'a [f32],
    chosen: Option<Chosen>,
}

/// Chooses one token for each of `ids` from its row, rows shared out over the model's threads.
///
/// A panic stays inside its job: a fault that one request's policy or tokens set off must not
/// take the requests beside it along, and nothing but the run's own buffers, which go with the
/// run, was being written.
pub(crate) fn choose<F: Forward>(
    model: &F,
    runs: &mut BTreeMap<RequestId, Run>,
    ids: &[RequestId],
    rows: &[&[f32]],
) -> Vec<Chosen> {
    assert_eq!(ids.len(), rows.len(), "the model gives a row for each run that is due a token");
    let mut due: BTreeMap<RequestId, &mut Run> =
        runs.iter_mut().filter(|(id, _)| ids.contains(id)).map(|(id, run)| (*id, run)).collect();
    let mut jobs = Vec::with_capacity(ids.len());
    for (id, &row) in ids.iter().zip(rows) {
        let run = due.remove(id).expect("invariant: a plan names each run once");
        jobs.push(Mutex::new(Job { run, row, chosen: None }));
    }
    model.share_out(jobs.len(), &|index| {
        let mut job = jobs[index].lock().unwrap_or_else(PoisonError::into_inner);
        let Job { run, row, chosen } = &mut *job;
        *chosen = Some(choose_one(run, row));
    });
    let chosen = |job: Mutex<Job<'_>>| {
        let job = job.into_inner().unwrap_or_else(PoisonError::into_inner);
        job.chosen.expect("invariant: every item is computed")
    };
    jobs.into_iter().map(chosen).collect()
}

fn choose_one(run: &mut Run, row: &[f32]) -> Chosen {
    let step = run.step();
    guarded(step, || {
        let choice = run.choose(row).map_err(|error| sentence(&error))?;
        let top = run.top(row).map_err(|error| sentence(&error))?;
        Ok(Picked { choice, digest: digest(row), top })
    })
}

/// What `choose` gives, or a sentence where it panics.
pub(crate) fn guarded<T>(
    step: u32,
    choose: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let panicked =
        |panic: Box<dyn Any + Send>| format!("choosing step {step} panicked: {}", text(&*panic));
    catch_unwind(AssertUnwindSafe(choose)).map_err(panicked)?
}

/// What a panic said.
fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// An error and the whole chain of its causes.
pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(message, ": {cause}");
        source = cause.source();
    }
    message
}
