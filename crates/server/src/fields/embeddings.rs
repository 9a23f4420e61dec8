//! The fields of `POST /v1/embeddings`.

use super::Rule::{Recorded, Route};
use super::shared::{NAME_BYTES_MAX, field};
use super::{Field, Kind, Table};

const NAME: Kind = Kind::Text { bytes_max: NAME_BYTES_MAX };

const OWN: &[Field] = &[
    field("input", Route(Kind::Any)),
    field("model", Route(NAME)),
    field("dimensions", Route(Kind::Count { min: 1, max: 1 << 20 })),
    field("encoding_format", Route(Kind::Word(&["float", "base64"]))),
    field("user", Recorded(NAME)),
];

/// Everything that a request for embeddings may hold.
pub const EMBEDDINGS: Table = &[OWN];
