//! Models of the hub: a name, its files in the hub's own cache, and the way between them.
//!
//! `hf:owner/repo:quant` → list of files → choice → sizes → blobs → links of a snapshot → path.
//! What has an address of its own and a SHA-256 is fetched by the same rules, into another place.

mod address;
mod cache;
mod choose;
mod client;
mod download;
mod error;
mod name;
mod pull;
mod removal;
mod settings;

pub(crate) use address::{fetch_address, partial};
pub use cache::{cached, models_of};
pub use choose::{ChoiceFault, Chosen, choose};
pub use error::{AnswerFault, HubError};
pub use name::{HubName, NameFault, PREFIX, Wanted};
pub use pull::{Plan, plan, there};
pub use removal::{Kept, Removal, kept, removal};
pub use settings::{Hub, Token};
