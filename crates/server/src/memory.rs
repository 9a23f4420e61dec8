//! What a model takes of the machine's memory: weights, keys and values, one pass's workspace.

use std::fmt;

use causeway_engine::Limits;
use causeway_kv_cache::Cache;
use causeway_model::Workspace;
use causeway_session::Opening;

/// Bytes of a model in memory, by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) weights: u64,
    /// All that its cache can grow to.
    pub(crate) kv: u64,
    /// The largest pass's buffers.
    pub(crate) workspace: u64,
}

impl Memory {
    /// What a model takes under these limits; only its weights where its file cannot be read,
    /// which loading it will say.
    pub(crate) fn of(opening: &Opening, limits: &Limits) -> Self {
        let weights = opening.bytes();
        let Ok(config) = opening.config() else { return Self { weights, ..Self::default() } };
        let (rows, wanted) = (limits.budget, limits.running_max);
        let mut shape = config.kv_shape(&opening.settings, wanted, rows);
        if let Some(positions_max) = limits.kv_positions_max {
            shape.positions_max = shape.positions_max.min(positions_max);
        }
        let bytes = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        Self {
            weights,
            kv: bytes(Cache::new(&shape).bytes_max()),
            workspace: bytes(Workspace::bytes(&config, rows, wanted)),
        }
    }

    /// All of it.
    pub(crate) fn total(self) -> u64 {
        let Self { weights, kv, workspace } = self;
        weights.saturating_add(kv).saturating_add(workspace)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { weights, kv, workspace } = self;
        let total = self.total();
        write!(
            f,
            "{total} bytes ({weights} of weights, {kv} of keys and values, \
             {workspace} of workspace)"
        )
    }
}

#[cfg(test)]
mod tests;
