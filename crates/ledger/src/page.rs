//! Records as pages for a reader: a table of many, and the whole account of one.

use crate::explain::counted;
use crate::names::escaped;
use crate::report::{add_line, printable};
use crate::when::utc;
use crate::{
    Account, DraftCount, Gaps, Listed, MaskWaits, Record, Step, Stored, Times, Tokens, fields_table,
};

/// Most characters of a name in a table.
const NAME_MAX: usize = 24;

/// One line for each record under a line of headings.
#[must_use]
pub fn table(listed: &[Listed]) -> String {
    let heads =
        ["record", "time (UTC)", "model", "policy", "stop", "prompt", "tokens", "TTFT", "total"];
    let mut lines = vec![heads.map(str::to_owned)];
    lines.extend(listed.iter().map(cells));
    let mut widths = [0; 9];
    for cells in &lines {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut page = String::new();
    for cells in &lines {
        let padded: Vec<String> = (cells.iter().zip(widths).enumerate())
            .map(|(index, (cell, width))| match index {
                // Numbers end below one another.
                5.. => format!("{cell:>width$}"),
                _ => format!("{cell:width$}"),
            })
            .collect();
        add_line(&mut page, format_args!("{}", padded.join("  ").trim_end()));
    }
    page
}

fn cells(listed: &Listed) -> [String; 9] {
    let Listed { id, model, policy, policy_sha256, stop, tokens, times, .. } = listed;
    let policy_hash = &policy_sha256.to_string()[..8];
    let policy = policy.as_ref().map_or_else(
        || policy_hash.to_owned(),
        |name| format!("{} {policy_hash}", shortened(name)),
    );
    [
        id.to_string()[..12].to_owned(),
        utc(times.scheduled_unix_ms),
        shortened(model),
        policy,
        escaped(stop),
        tokens.prompt.to_string(),
        tokens.prefix.to_string(),
        times.ttft_ns.map_or_else(|| "-".to_owned(), ms),
        ms(times.total_ns),
    ]
}

/// The end of a name that is too long: a path is told apart by its end.
fn shortened(name: &str) -> String {
    let name = escaped(name);
    let count = name.chars().count();
    if count <= NAME_MAX {
        return name;
    }
    let end: String = name.chars().skip(count + 1 - NAME_MAX).collect();
    format!("…{end}")
}

/// Nanoseconds as milliseconds with one digit after the point, cut off.
fn ms(ns: u64) -> String {
    format!("{}.{} ms", ns / 1_000_000, ns / 100_000 % 10)
}

/// The account of one record in words; with its steps, one line each.
#[must_use]
pub fn account_page(stored: &Stored, with_steps: bool) -> String {
    let Stored { record, id, answer_hash } = stored;
    let mut page = String::new();
    let mut row = |name: &str, text: String| {
        add_line(&mut page, format_args!("{name:<12}{}", escaped(&text)));
    };
    let Record { start, steps, end } = record;
    row("record", id.to_string());
    row("answer", answer_hash.to_string());
    row("time", format!("{} UTC", utc(end.account.times.scheduled_unix_ms)));
    let (model, numerics) = (&start.model, &start.numerics);
    row("model", format!("{} ({}), weights {}", model.name, model.quantisation, model.sha256));
    row("numerics", format!("version {}, KV {}", numerics.version, numerics.kv_type));
    let greedy = if start.policy.greedy { "greedy" } else { "drawn" };
    row("policy", format!("{} ({greedy})", start.policy.sha256));
    let effective = &start.request.effective;
    let (seed, choice) = (effective.seed, effective.choice);
    row(
        "request",
        format!("seed {seed}, choice {choice}, at most {}", {
            counted(usize::try_from(effective.tokens_max).unwrap_or(usize::MAX), "token")
        }),
    );
    let at = &start.conditions;
    row("conditions", {
        format!(
            "engine {}, {}, {}, {}, chunk {}, batch {}, queue {}, cache {}",
            at.engine,
            at.cpu,
            at.isa,
            counted(at.threads as usize, "thread"),
            at.chunk,
            at.batch_occupancy,
            at.queue,
            at.cache.name(),
        )
    });
    let Account { tokens, passes, times, masks, drafts } = &end.account;
    row("stop", end.stop.describe());
    row("tokens", tokens_line(tokens));
    row("passes", format!("{} prefill, {} decode", passes.prefill, passes.decode));
    row("times", times_line(times));
    if let Some(MaskWaits { passes, waits, wait_ns }) = *masks {
        row("masks", format!("beside {passes} passes, {waits} waited, {} in all", ms(wait_ns)));
    }
    if let Some(DraftCount { computed, accepted }) = *drafts {
        row("drafts", format!("{computed} computed, {accepted} chosen"));
    }
    if let Some(Gaps { p50_ns, p99_ns, max_ns, .. }) = times.itl {
        row("gaps", format!("p50 {}, p99 {}, max {}", ms(p50_ns), ms(p99_ns), ms(max_ns)));
    }
    if let Some(prompt) = &effective.prompt {
        add_line(&mut page, format_args!("\nprompt\n{prompt}"));
    }
    add_line(&mut page, format_args!("\nanswer\n{}", end.text));
    if let Some(fields) = fields_table(end) {
        add_line(&mut page, format_args!("\nfields\n{}", fields.trim_end()));
    }
    if with_steps {
        add_line(&mut page, format_args!("\nsteps"));
        steps.iter().for_each(|step| add_step(&mut page, step));
    }
    printable(&page)
}

fn tokens_line(tokens: &Tokens) -> String {
    let Tokens { prompt, prefilled, cached, prefix, forced, reasoning, visible } = tokens;
    format!(
        "{prompt} prompt ({cached} cached, {prefilled} prefilled), {prefix} generated ({visible} \
         visible, {reasoning} reasoning, {forced} forced)"
    )
}

fn times_line(times: &Times) -> String {
    let Times { scheduled_unix_ms: _, late_ns, queued_ns, ttft_ns, itl: _, tpot_ns, total_ns } =
        *times;
    let or_none = |ns: Option<u64>| ns.map_or_else(|| "none".to_owned(), ms);
    format!(
        "late {}, queued {}, TTFT {}, TPOT {}, total {}",
        ms(late_ns),
        ms(queued_ns),
        or_none(ttft_ns),
        or_none(tpot_ns),
        ms(total_ns),
    )
}

fn add_step(page: &mut String, step: &Step) {
    let reasons = &step.reasons;
    let logprob = reasons.logprob.map_or_else(|| "-inf".to_owned(), |value| format!("{value:.4}"));
    let removed = reasons.removed_by.as_ref();
    let removed = removed
        .map_or_else(String::new, |stage| format!("  {stage} removed token {}", reasons.raw_best));
    let forced = reasons.forced_by.as_ref();
    let forced = forced.map_or_else(String::new, |field| format!("  laid by {field}"));
    add_line(
        page,
        format_args!(
            "{:>6}  {:>7}  {:<20}  {}  {}  rank {}  logprob {logprob}  probability {:.4}  \
             survivors {}  pass {} of {}  {}{removed}{forced}",
            step.step,
            step.token,
            step.piece.quoted(),
            step.cause.name(),
            step.shown.name(),
            reasons.rank,
            reasons.probability,
            reasons.survivors,
            step.pass,
            counted(step.rows as usize, "row"),
            ms(step.since_arrival_ns),
        ),
    );
}

#[cfg(test)]
mod tests;
