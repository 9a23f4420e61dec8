//! Feed-forward parts of several experts, of which each row goes through a few.
//!
//! Experts are computed in ascending order, each with all rows that chose it; a row's sum over
//! its experts is ascending too, so that no bit of it depends on the rows beside it.

use causeway_kernels::{NonFinite, exp};

use crate::config::Experts;
use crate::forward::add_bias;
use crate::load::{Gated, Linear};
use crate::{Model, Workspace};

/// An expert that a row goes through, and the share of it in the row's sum.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Share {
    expert: usize,
    share: f32,
}

impl Model {
    /// `added = sum of share * gated(expert)` on the normed stream, which is there as floats.
    pub(crate) fn through_experts(
        &self,
        router: &Linear,
        experts: &[Gated],
        rows: usize,
        work: &mut Workspace,
    ) -> Result<(), NonFinite> {
        let config = self.config.experts.expect("invariant: a layer with experts has their sizes");
        let hidden_dim = self.config.shape.hidden_dim;
        let outputs = &mut [(router, &mut work.up)];
        self.products((&work.normed, &work.quantised), rows, outputs);
        add_bias(router, &mut work.up);
        let mut chosen_by = vec![Vec::new(); experts.len()];
        for (row, logits) in work.up.chunks_exact(experts.len()).enumerate() {
            for Share { expert, share } in shares(logits, &config) {
                chosen_by[expert].push((row, share));
            }
        }
        work.added.clear();
        work.added.resize(rows * hidden_dim, 0.0);
        let mut inner = work.expert.take().unwrap_or_default();
        for (expert, chosen_by) in experts.iter().zip(&chosen_by) {
            if chosen_by.is_empty() {
                continue;
            }
            self.one_expert(expert, chosen_by, &work.normed, &mut inner).map_err(|source| {
                let row = chosen_by[source.row].0;
                NonFinite { row, ..source }
            })?;
            for (&(row, share), out) in chosen_by.iter().zip(inner.added.chunks_exact(hidden_dim)) {
                let added = &mut work.added[row * hidden_dim..][..hidden_dim];
                added.iter_mut().zip(out).for_each(|(added, out)| *added += share * out);
            }
        }
        work.expert = Some(inner);
        Ok(())
    }

    /// One expert over the rows that chose it; its outputs are `inner.added`.
    fn one_expert(
        &self,
        expert: &Gated,
        chosen_by: &[(usize, f32)],
        normed: &[f32],
        inner: &mut Workspace,
    ) -> Result<(), NonFinite> {
        let hidden_dim = self.config.shape.hidden_dim;
        inner.normed.clear();
        for &(row, _) in chosen_by {
            inner.normed.extend_from_slice(&normed[row * hidden_dim..][..hidden_dim]);
        }
        let readers = [&expert.gate, &expert.up];
        if readers.iter().any(|linear| linear.weight.format().is_quantised()) {
            let to = &mut inner.quantised;
            self.kernels.quantise(&inner.normed, hidden_dim, to, &self.pool)?;
        }
        self.gated(expert, chosen_by.len(), inner)
    }
}

/// The experts of a row, ascending: those with the largest logits, of equals the first. Shares
/// are a softmax in f32, summed from the largest logit down.
fn shares(logits: &[f32], experts: &Experts) -> Vec<Share> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    let largest = logits[order[0]];
    let weight = |expert: usize| exp(logits[expert] - largest);
    let summed = if experts.renormalised { experts.used } else { logits.len() };
    let sum: f32 = order[..summed].iter().map(|&expert| weight(expert)).sum();
    order.truncate(experts.used);
    order.sort_unstable();
    order.into_iter().map(|expert| Share { expert, share: weight(expert) / sum }).collect()
}

#[cfg(test)]
mod tests;
