//! The metrics that are read off when they are asked for: queues, caches, the ledger.

use std::fmt::Error;
use std::sync::{Mutex, PoisonError};

use causeway_ledger::Written;
use causeway_session::KvDiskCounts;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::labels::{KindLabels, ModelLabels, OutcomeLabels};
use crate::driver::Look;

/// What was seen at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Models in memory, by name.
    pub(crate) models: Vec<(String, Look)>,
    /// Records that wait for the disk, and what the ledger has done; `None` without a ledger.
    pub(crate) ledger: Option<(usize, Written)>,
    /// The folder of idle prefixes, where there is one.
    pub(crate) kv_disk: Option<KvDiskCounts>,
}

/// The last look.
#[derive(Debug, Default)]
pub(super) struct Snapshot(Mutex<Seen>);

/// One number, what it is, and how it is read off: of a model where nothing else is said.
type Reading<L, T = Look> = (&'static str, &'static str, fn(&T) -> L);

const GAUGES: &[Reading<usize>] = &[
    ("runs_running", "Choices that run", |look| look.load.running),
    ("runs_waiting", "Choices that wait for their first pass", |look| look.load.waiting),
    ("step_budget_tokens", "Most tokens of the next pass", |look| look.budget),
    ("last_pass_requests", "Requests of the last pass; 0 where nothing runs", |look| {
        if look.load.running == 0 { 0 } else { look.pass.requests }
    }),
];

const COUNTERS: &[Reading<u64>] = &[
    ("prefix_lookups", "Prompts that were looked up in the prefix cache", |look| {
        look.load.prefix_lookups
    }),
    ("prefix_hits", "Lookups that found something", |look| look.load.prefix_hits),
    ("prefix_hit_tokens", "Prompt tokens that hits spared", |look| look.load.prefix_tokens_hit),
    ("prefix_evictions", "Blocks that the prefix cache gave up", |look| look.load.prefix_evictions),
    ("prefix_restored_blocks", "Blocks that came back from the disk", |look| {
        look.load.prefix_restored
    }),
    ("preemptions", "Times that a run lost its blocks", |look| look.load.preemptions),
];

/// A label and the count that it names.
type Counted<T, N> = (&'static str, fn(&T) -> N);

const BLOCKS: &[Counted<Look, usize>] = &[
    ("held", |look| look.load.held_blocks),
    ("cached", |look| look.load.cached_blocks),
    ("free", |look| look.load.free_blocks),
];

const OUTCOMES: &[Counted<Written, u64>] = &[
    ("stored", |written| written.stored),
    ("refused", |written| written.refused),
    ("lost", |written| written.lost),
];

const DISK_GAUGES: &[Reading<u64, KvDiskCounts>] = &[
    ("kv_disk_bytes", "Bytes of keys and values on the disk", |disk| disk.bytes),
    ("kv_disk_bytes_max", "Most bytes of keys and values on the disk", |disk| disk.bytes_max),
    ("kv_disk_blocks", "Blocks of keys and values on the disk", |disk| disk.blocks as u64),
];

const MOVES: &[Counted<KvDiskCounts, u64>] = &[
    ("written", |disk| disk.written),
    ("read", |disk| disk.read),
    ("evicted", |disk| disk.evicted),
    ("damaged", |disk| disk.damaged),
    ("lost", |disk| disk.lost),
];

impl Snapshot {
    pub(super) fn set(&self, seen: Seen) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let Seen { models, ledger, kv_disk } =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (name, help, read) in GAUGES {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (model, look) in &models {
                let labels = ModelLabels { model: model.clone() };
                ConstGauge::new(whole(read(look))).encode(family.encode_family(&labels)?)?;
            }
        }
        for (name, help, read) in COUNTERS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (model, look) in &models {
                let labels = ModelLabels { model: model.clone() };
                ConstCounter::new(read(look)).encode(family.encode_family(&labels)?)?;
            }
        }
        let help = "Blocks of keys and values: held by runs, kept for prefixes, free";
        let mut family = encoder.encode_descriptor("kv_blocks", help, None, MetricType::Gauge)?;
        for (model, look) in &models {
            for (kind, read) in BLOCKS {
                let labels = KindLabels { model: model.clone(), kind };
                ConstGauge::new(whole(read(look))).encode(family.encode_family(&labels)?)?;
            }
        }
        if let Some((pending, written)) = ledger {
            encode_ledger(&mut encoder, pending, &written)?;
        }
        if let Some(disk) = kv_disk {
            encode_disk(&mut encoder, &disk)?;
        }
        Ok(())
    }
}

fn encode_ledger(
    encoder: &mut DescriptorEncoder<'_>,
    pending: usize,
    written: &Written,
) -> Result<(), Error> {
    let help = "Records that wait for the disk";
    let family = encoder.encode_descriptor("records_pending", help, None, MetricType::Gauge)?;
    ConstGauge::new(whole(pending)).encode(family)?;
    let help = "Records by what became of them";
    let mut family = encoder.encode_descriptor("records", help, None, MetricType::Counter)?;
    for (outcome, read) in OUTCOMES {
        let labels = OutcomeLabels { outcome };
        ConstCounter::new(read(written)).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn encode_disk(encoder: &mut DescriptorEncoder<'_>, disk: &KvDiskCounts) -> Result<(), Error> {
    for (name, help, read) in DISK_GAUGES {
        let family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::try_from(read(disk)).unwrap_or(i64::MAX)).encode(family)?;
    }
    let help = "Blocks that went to the disk, came from it, or were given up";
    let mut family = encoder.encode_descriptor("kv_disk_moves", help, None, MetricType::Counter)?;
    for (outcome, read) in MOVES {
        let labels = OutcomeLabels { outcome };
        ConstCounter::new(read(disk)).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
