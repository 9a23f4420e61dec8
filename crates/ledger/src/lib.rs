//! What happened, step by step: stored, replayed and compared.
//!
//! It may not know the engine's private state: it sees requests, step outputs and stop reasons.
//! A run begins as `Start`, every step is pushed into a `RecordBuilder`, `finish` makes a
//! `Record`; a record is written to a file or by a `Writer` into a `Store`, read back, and
//! compared with another.

mod account;
mod builder;
mod cache_key;
mod canonical;
mod compare;
mod explain;
mod export;
mod fields;
mod file;
mod hash;
mod names;
mod page;
mod record;
mod report;
mod settings;
mod step;
mod stop;
mod store;
mod when;
mod writer;

pub use account::{Account, DraftCount, Gaps, MaskWaits, Measured, Passes, Times, Tokens, gaps};
pub use builder::{RecordBuilder, StepError};
pub use cache_key::{CacheKey, CacheScope, cache_key};
pub use compare::{Difference, DifferenceCause, Outcome, Pair, Place, Verdict, compare};
pub use export::{ExportError, export_file, export_folder, export_lines};
pub use fields::{FieldSpent, FieldsAccount, fields_table};
pub use file::{
    FormError, RECORD_BYTES_MAX, ReadError, Stored, WriteError, from_slice, probe, read, to_json,
    write,
};
pub use hash::{HashError, LogitsDigest, Sha256};
pub use names::{escaped, shown_name};
pub use page::{account_page, table};
pub use record::{
    CacheState, Conditions, Effective, End, Model, Numerics, PolicyUsed, RECEIVED_BYTES_MAX,
    Record, Request, SCHEMA, Start, Template,
};
pub use report::report;
pub use settings::Setting;
pub use step::{Piece, Reasons, RunnerUp, Shown, Step, StepCause};
pub use stop::{CancelledBy, Stop};
pub use store::{
    Entry, Filter, Listed, ListedTimes, PackError, RowError, STORE_FILE_NAME, Store, StoreError,
    Tags,
};
pub use when::{WhenError, parse_since, utc};
pub use writer::{CloseError, PushError, StoreOutcome, Writer, WriterLimits, Written};

#[cfg(test)]
mod tests;
