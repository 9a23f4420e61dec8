//! The variants side by side.

use std::collections::BTreeMap;

use causeway_ledger::{Record, shown_name};
use serde_json::{Value, json};

use super::Answered;
use super::inputs::Input;

/// Quantile of the normal distribution for intervals of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// What one variant took: means of counts, medians of times in milliseconds.
struct Taken {
    prompt_tokens: f64,
    steps: f64,
    chosen: f64,
    prefill_passes: f64,
    decode_passes: f64,
    ttft_ms: f64,
    total_ms: f64,
    /// Whether each answer is right, of those whose right answer is known.
    right: Vec<bool>,
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
        let known = |(input, record): (&Input, &Record)| {
            (!input.expect.is_empty()).then(|| input.is_met_by(&record.end.text))
        };
        Self {
            prompt_tokens: mean(&|record| record.end.account.tokens.prompt),
            steps: mean(&|record| record.end.account.tokens.prefix),
            chosen: mean(&|record| {
                let tokens = &record.end.account.tokens;
                tokens.prefix - tokens.forced
            }),
            prefill_passes: mean(&|record| record.end.account.passes.prefill),
            decode_passes: mean(&|record| record.end.account.passes.decode),
            ttft_ms: median_ms(&|record| record.end.account.times.ttft_ns.unwrap_or_default()),
            total_ms: median_ms(&|record| record.end.account.times.total_ns),
            right: inputs.iter().zip(&answered.records).filter_map(known).collect(),
        }
    }

    fn right_count(&self) -> usize {
        self.right.iter().filter(|is_right| **is_right).count()
    }

    /// Wilson's interval (1927) for the share of right answers.
    fn interval(&self) -> (f64, f64) {
        let (n, right) = (self.right.len() as f64, self.right_count() as f64);
        let p = right / n;
        let centre = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
        let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        // Rounding may step outside of what a share can be.
        ((centre - half).max(0.0), (centre + half).min(1.0))
    }

    /// Answers that are right here and not in `first`, and the other way round.
    fn against(&self, first: &Self) -> (usize, usize) {
        let count = |ours: bool| {
            let pairs = self.right.iter().zip(&first.right);
            pairs.filter(|(here, there)| **here == ours && **there != ours).count()
        };
        (count(true), count(false))
    }

    /// Its time as a share of the first one's.
    fn cost(&self, first: &Self) -> f64 {
        self.total_ms / first.total_ms
    }
}

/// The reader's form.
pub(super) fn lines(all: &[Answered], inputs: &[Input], field: &str) -> String {
    let taken: Vec<Taken> = all.iter().map(|answered| Taken::of(answered, inputs)).collect();
    let heads = ["prompt", "steps", "chosen", "passes", "first token", "total", "cost", "right"];
    let mut rows = vec![vec![counted(inputs.len(), "input")]];
    rows[0].extend(heads.map(str::to_owned));
    for (index, (answered, one)) in all.iter().zip(&taken).enumerate() {
        rows.push(vec![
            answered.name.clone(),
            format!("{:.1}", one.prompt_tokens),
            format!("{:.1}", one.steps),
            format!("{:.1}", one.chosen),
            format!("{:.1}+{:.1}", one.prefill_passes, one.decode_passes),
            format!("{:.1} ms", one.ttft_ms),
            format!("{:.1} ms", one.total_ms),
            format!("{:.2}", one.cost(&taken[0])),
            quality(one, (index > 0).then_some(&taken[0])),
        ]);
    }
    let mut told = padded(&rows);
    for note in notes(&taken, field) {
        told.push_str(&note);
        told.push('\n');
    }
    told
}

fn quality(one: &Taken, first: Option<&Taken>) -> String {
    if one.right.is_empty() {
        return "unknown".to_owned();
    }
    let (right, known) = (one.right_count(), one.right.len());
    let (low, high) = one.interval();
    let moved = first.map(|first| one.against(first));
    let moved = moved.map_or_else(String::new, |(gained, lost)| format!(" (+{gained} -{lost})"));
    format!("{right} of {known}, {:.0} to {:.0} %{moved}", 100.0 * low, 100.0 * high)
}

/// The first and the last column begin below one another, the numbers end there.
fn padded(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let last = rows[0].len() - 1;
    let widths: Vec<usize> = (0..=last).map(|column| width(column).unwrap_or(0)).collect();
    let mut told = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 || column == last {
                format!("{cell:width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        told.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        told.push('\n');
    }
    told
}

/// What the table means, whatever its numbers are.
fn notes(taken: &[Taken], field: &str) -> [String; 2] {
    let field = shown_name(field);
    let asks = taken[2].prompt_tokens - taken[1].prompt_tokens;
    let same = format!(
        "What is not written is not computed: asked to reason silently or not, an answer without \
         `{field}` costs the same, but for the {asks:.0} prompt tokens that ask."
    );
    let other = "Both are another computation than the first: nothing in them can follow from a \
                 text that is not there.";
    [same, other.to_owned()]
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The machine's form.
pub(super) fn object(all: &[Answered], inputs: &[Input], field: &str) -> Value {
    let taken: Vec<Taken> = all.iter().map(|answered| Taken::of(answered, inputs)).collect();
    let variant = |(answered, one): (&Answered, &Taken)| {
        let quality = (!one.right.is_empty()).then(|| {
            let (low, high) = one.interval();
            let (gained, lost) = one.against(&taken[0]);
            json!({
                "right": one.right_count(), "known": one.right.len(), "low": low, "high": high,
                "gained": gained, "lost": lost,
            })
        });
        let mut stops: BTreeMap<&str, usize> = BTreeMap::new();
        for record in &answered.records {
            *stops.entry(record.end.stop.name()).or_default() += 1;
        }
        json!({
            "variant": answered.name,
            "policy": answered.records.first().map(|record| record.start.policy.sha256),
            "prompt_tokens": one.prompt_tokens,
            "steps": one.steps,
            "chosen": one.chosen,
            "prefill_passes": one.prefill_passes,
            "decode_passes": one.decode_passes,
            "ttft_ms": one.ttft_ms,
            "total_ms": one.total_ms,
            "cost": one.cost(&taken[0]),
            "quality": quality,
            "stops": stops,
            "answers": answered.records.iter().map(|record| &record.end.text).collect::<Vec<_>>(),
        })
    };
    let variants: Vec<Value> = all.iter().zip(&taken).map(variant).collect();
    let notes = notes(&taken, field);
    json!({ "inputs": inputs.len(), "field": field, "variants": variants, "notes": notes })
}
