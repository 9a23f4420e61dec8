//! The variants side by side.

use std::fmt::Write as _;

use causeway_ledger::Record;
use serde_json::{Value, json};

use super::Answered;
use super::inputs::Input;

/// Quantile of the normal distribution for intervals of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// What one variant took: means of counts, medians of times in milliseconds.
struct Taken {
    tokens: f64,
    chosen: f64,
    decode_passes: f64,
    ttft_ms: f64,
    total_ms: f64,
    /// Right answers, of those that are known.
    right: usize,
    known: usize,
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run are far below 2^52")]
impl Taken {
    fn of(answered: &Answered, inputs: &[Input]) -> Self {
        let mean = |of: &dyn Fn(&Record) -> u64| {
            let sum: u64 = answered.records.iter().map(of).sum();
            sum as f64 / answered.records.len() as f64
        };
        let median_ms = |of: &dyn Fn(&Record) -> u64| {
            let mut ns: Vec<u64> = answered.records.iter().map(of).collect();
            ns.sort_unstable();
            let middle = ns.len() / 2;
            let lower = if ns.len().is_multiple_of(2) { ns[middle - 1] } else { ns[middle] };
            (lower + ns[middle]) as f64 / 2e6
        };
        let known = |(input, record): &(&Input, &Record)| {
            !input.expect.is_empty() && input.is_met_by(&record.end.text)
        };
        Self {
            tokens: mean(&|record| record.end.account.tokens.prefix),
            chosen: mean(&|record| {
                let tokens = &record.end.account.tokens;
                tokens.prefix - tokens.forced
            }),
            decode_passes: mean(&|record| record.end.account.passes.decode),
            ttft_ms: median_ms(&|record| record.end.account.times.ttft_ns.unwrap_or_default()),
            total_ms: median_ms(&|record| record.end.account.times.total_ns),
            right: inputs.iter().zip(&answered.records).filter(known).count(),
            known: inputs.iter().filter(|input| !input.expect.is_empty()).count(),
        }
    }

    /// Wilson's interval (1927) for the share of right answers.
    fn interval(&self) -> (f64, f64) {
        let (n, p) = (self.known as f64, self.right as f64 / self.known as f64);
        let centre = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
        let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        (centre - half, centre + half)
    }
}

/// The reader's form.
pub(super) fn lines(all: &[Answered], inputs: &[Input], field: &str) -> String {
    let taken: Vec<Taken> = all.iter().map(|answered| Taken::of(answered, inputs)).collect();
    let width = all.iter().map(|answered| answered.name.chars().count()).max().unwrap_or(0);
    let mut told = format!(
        "{:width$}  tokens  chosen  decode passes  first token  total     cost",
        format!("{} inputs", inputs.len())
    );
    let knows = taken.iter().any(|taken| taken.known > 0);
    told.push_str(if knows { "  right\n" } else { "\n" });
    for (answered, one) in all.iter().zip(&taken) {
        let Taken { tokens, chosen, decode_passes, ttft_ms, total_ms, right, known } = one;
        let cost = total_ms / taken[0].total_ms;
        let _ = write!(
            told,
            "{:width$}  {tokens:>6.1}  {chosen:>6.1}  {decode_passes:>13.1}  {ttft_ms:>8.1} ms  \
             {total_ms:>6.1} ms  {cost:>4.2}",
            answered.name
        );
        if knows {
            let (low, high) = one.interval();
            let (low, high) = (100.0 * low, 100.0 * high);
            let _ = write!(told, "  {right} of {known} ({low:.0} to {high:.0} %)");
        }
        told.push('\n');
    }
    let _ = writeln!(
        told,
        "What is not written is not computed: asked to reason silently or not, an answer without \
         `{field}` costs the same."
    );
    told.push_str(
        "Both are another computation than the first: nothing in them can follow from a text that \
         is not there.\n",
    );
    told
}

/// The machine's form.
pub(super) fn object(all: &[Answered], inputs: &[Input]) -> Value {
    let variant = |answered: &Answered| {
        let taken = Taken::of(answered, inputs);
        let quality = (taken.known > 0).then(|| {
            let (low, high) = taken.interval();
            json!({ "right": taken.right, "known": taken.known, "low": low, "high": high })
        });
        json!({
            "variant": answered.name,
            "tokens": taken.tokens,
            "chosen": taken.chosen,
            "decode_passes": taken.decode_passes,
            "ttft_ms": taken.ttft_ms,
            "total_ms": taken.total_ms,
            "quality": quality,
            "answers": answered.records.iter().map(|record| &record.end.text).collect::<Vec<_>>(),
        })
    };
    json!({ "inputs": inputs.len(), "variants": all.iter().map(variant).collect::<Vec<_>>() })
}
