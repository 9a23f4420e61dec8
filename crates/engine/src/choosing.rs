//! The rows of one pass, each chosen from by its own run.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use causeway_policy::ChooseError;
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
pub(crate) type Chosen = Result<Picked, Fault>;

/// Why a run cannot go on.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) message: String,
    /// Whether the request asked for something impossible.
    pub(crate) is_callers_mistake: bool,
}

impl From<ChooseError> for Fault {
    fn from(error: ChooseError) -> Self {
        Self { message: sentence(&error), is_callers_mistake: error.is_callers_mistake() }
    }
}

/// One run's part in the pass, for whichever thread takes it.
struct Job<'a> {
    run: &'a mut Run,
    rows: &'a [&'a [f32]],
    chosen: Vec<Chosen>,
}

/// Chooses for each run of `due` as many tokens as it has rows, be it none, runs shared out over
/// the model's threads; where a run cannot go on, its fault is the last of them, and the rows
/// behind a draft that was not chosen are nobody's.
///
/// A panic stays inside its job: a fault that one request's policy or tokens set off must not
/// take the requests beside it along, and nothing but the run's own buffers, which go with the
/// run, was being written.
pub(crate) fn choose<F: Forward>(
    model: &F,
    runs: &mut BTreeMap<RequestId, Run>,
    due: &[(RequestId, usize)],
    mut rows: &[&[f32]],
) -> Vec<Vec<Chosen>> {
    let wanted: usize = due.iter().map(|(_, count)| count).sum();
    assert_eq!(wanted, rows.len(), "the model gives the rows that the spans want");
    let is_due = |id: &RequestId| due.iter().any(|(other, _)| other == id);
    let mut here: BTreeMap<RequestId, &mut Run> =
        runs.iter_mut().filter(|(id, _)| is_due(id)).map(|(id, run)| (*id, run)).collect();
    let mut jobs = Vec::with_capacity(due.len());
    for (id, count) in due {
        let run = here.remove(id).expect("invariant: a plan names each run once");
        let (mine, others) = rows.split_at(*count);
        rows = others;
        jobs.push(Mutex::new(Job { run, rows: mine, chosen: Vec::with_capacity(*count) }));
    }
    model.share_out(jobs.len(), &|index| {
        let mut job = jobs[index].lock().unwrap_or_else(PoisonError::into_inner);
        let Job { run, rows, chosen } = &mut *job;
        for (ahead, row) in rows.iter().enumerate() {
            let picked = choose_one(run, row, ahead);
            let goes_on = picked.as_ref().is_ok_and(|(_, goes_on)| *goes_on);
            chosen.push(picked.map(|(picked, _)| picked));
            if !goes_on {
                break;
            }
        }
    });
    let chosen =
        |job: Mutex<Job<'_>>| job.into_inner().unwrap_or_else(PoisonError::into_inner).chosen;
    jobs.into_iter().map(chosen).collect()
}

/// The token of a row, and whether the row behind it is the run's too.
fn choose_one(run: &mut Run, row: &[f32], ahead: usize) -> Result<(Picked, bool), Fault> {
    guarded(run.step(), || {
        let choice = run.choose(row, ahead)?;
        let top = run.top(row, ahead)?;
        let goes_on = run.take_in(choice.token, ahead);
        Ok((Picked { choice, digest: digest(row), top }, goes_on))
    })
}

/// What `choose` gives, or a fault where it panics.
pub(crate) fn guarded<T>(step: u32, choose: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let panicked = |panic: Box<dyn Any + Send>| Fault {
        message: format!("choosing step {step} panicked: {}", text(&*panic)),
        is_callers_mistake: false,
    };
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
