//! How many tokens a pass may compute, so that answers under way keep their pace.

/// Fewest tokens of a pass: below this a prompt would never end.
const BUDGET_MIN: usize = 16;
/// Tokens of a pass while nothing is known of its cost.
const BUDGET_UNKNOWN: usize = 64;
/// Part of the old estimate that stays when a pass is measured.
const MEMORY: f64 = 0.8;

/// Follows what a row costs and sizes the pass to a target for the gap between tokens.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Budget {
    /// Longest that a pass should take while answers are under way; `None` for no target.
    target_ns: Option<u64>,
    budget_max: usize,
    /// Nanoseconds a row of a prefill pass, as measured.
    row_ns: Option<f64>,
}

/// One pass as measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measured {
    pub rows: usize,
    /// Answers that got a token from it, or would have.
    pub decodes: usize,
    pub took_ns: u64,
}

impl Budget {
    /// Starts at the most that a pass may ever compute.
    #[must_use]
    pub(super) fn new(target_ns: Option<u64>, budget_max: usize) -> Self {
        Self { target_ns, budget_max, row_ns: None }
    }

    /// Takes a measured pass into account and gives the budget of the next one.
    ///
    /// Passes of decodes alone teach nothing: their cost is that of reading the weights once.
    pub(super) fn observe(&mut self, measured: Measured) -> usize {
        let Measured { rows, decodes, took_ns } = measured;
        if rows > decodes.saturating_mul(2).max(BUDGET_MIN) {
            #[expect(clippy::cast_precision_loss, reason = "a pass is far below 2^53 ns and rows")]
            let per_row = took_ns as f64 / rows as f64;
            let old = self.row_ns.unwrap_or(per_row);
            self.row_ns = Some(old.mul_add(MEMORY, per_row * (1.0 - MEMORY)));
        }
        self.budget(decodes)
    }

    /// The budget of a pass that `decodes` answers have a part in.
    #[must_use]
    pub(super) fn budget(&self, decodes: usize) -> usize {
        let Some(target_ns) = self.target_ns else { return self.budget_max };
        let Some(row_ns) = self.row_ns else { return self.budget_max.min(BUDGET_UNKNOWN) };
        // Nobody waits for a token: the whole pass is the prompts'.
        if decodes == 0 {
            return self.budget_max;
        }
        #[expect(clippy::cast_precision_loss, reason = "a target is far below 2^53 ns")]
        let rows = (target_ns as f64 / row_ns.max(1.0)).floor();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float to integer cast saturates, and the budget has a maximum"
        )]
        let rows = rows as usize;
        rows.clamp(BUDGET_MIN.min(self.budget_max), self.budget_max)
            .max(decodes.min(self.budget_max))
    }
}

#[cfg(test)]
mod tests;
