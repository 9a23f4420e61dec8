//! The fields of `/tokenize`, `/detokenize` and `/apply-template`.

use super::Rule::{Recorded, Route};
use super::chat::MESSAGES_MAX;
use super::shared::{NAME_BYTES_MAX, field};
use super::{Field, Kind, Table};

/// Longest text to be tokenised, in bytes; the body's limit is below it in most servers.
const TEXT_BYTES_MAX: usize = 64 << 20;

const MODEL: &[Field] = &[
    field("model", Route(Kind::Text { bytes_max: NAME_BYTES_MAX })),
    field("user", Recorded(Kind::Text { bytes_max: NAME_BYTES_MAX })),
];

const CHAT: &[Field] = &[
    field("messages", Route(Kind::List { count_max: MESSAGES_MAX })),
    field("chat_template_kwargs", Route(Kind::Object)),
    field("continue_final_message", Route(Kind::Flag)),
    field("add_generation_prompt", Route(Kind::Flag)),
];

/// Text or messages to tokens; `content` and `prompt` are two names of one field.
pub const TOKENIZE: Table = &[
    MODEL,
    CHAT,
    &[
        field("content", Route(Kind::Text { bytes_max: TEXT_BYTES_MAX })),
        field("prompt", Route(Kind::Text { bytes_max: TEXT_BYTES_MAX })),
        field("add_special", Route(Kind::Flag)),
        field("add_special_tokens", Route(Kind::Flag)),
        field("parse_special", Route(Kind::Flag)),
        field("with_pieces", Route(Kind::Flag)),
    ],
];

/// Tokens to text.
pub const DETOKENIZE: Table = &[
    MODEL,
    &[
        field("tokens", Route(Kind::Tokens { count_max: 1 << 20 })),
        field("skip_special_tokens", Route(Kind::Flag)),
    ],
];

/// Messages to the prompt's text.
pub const APPLY_TEMPLATE: Table = &[MODEL, CHAT];
