//! The fields of `POST /v1/messages` and of the count of its tokens.

use super::Rule::{Only, Recorded, Refused, Route};
use super::chat::{MESSAGES_MAX, TOOLS_MAX};
use super::shared::{DELIVERY, NAME_BYTES_MAX, SAMPLING, STOPPING, field, temperature, tokens_max};
use super::{Field, Kind, Plain, Rule, Table};

/// The prompt: what the count of tokens has as well.
const PROMPT: &[Field] = &[
    field("messages", Route(Kind::List { count_max: MESSAGES_MAX })),
    field("system", Route(Kind::Any)),
    field("chat_template_kwargs", Route(Kind::Object)),
    field("tools", Route(Kind::List { count_max: TOOLS_MAX })),
    field("tool_choice", Route(Kind::Object)),
    field("thinking", Route(Kind::Object)),
    field(
        "cache_control",
        Only(&[Plain::Typed("ephemeral")], "prefixes are cached as long as there is room"),
    ),
    field(
        "output_config",
        Only(&[Plain::EmptyObject], "answers are text of no set form or effort"),
    ),
    field("speed", Only(&[Plain::Word("standard")], "there is one speed")),
    field("context_management", Refused("no message is left out in silence")),
    field("mcp_servers", Refused("tools are called by whoever asks, not by the server")),
    field("user_profile_id", Refused("there are no profiles")),
    field("workspace_id", Refused("there are no workspaces")),
];

const OWN: &[Field] = &[
    tokens_max("max_tokens"),
    temperature(1.0),
    field(
        "stop_sequences",
        Rule::Policy("stop.strings", Kind::TextList { count_max: 64, bytes_max: 1024 }),
    ),
    field("metadata", Recorded(Kind::Object)),
    field("service_tier", Route(Kind::Word(&["auto", "standard_only"]))),
    field("container", Refused("nothing is executed here")),
    field("diagnostics", Refused("the `causeway` object says what there is to say")),
    field("inference_geo", Refused("answers are made where the server is")),
    field("compaction", Refused("no message is left out in silence")),
    field("billing_policy", Refused("nothing is billed here")),
    field("fallbacks", Refused("a model that is asked for answers, or none does")),
    field("fallback_credit_token", Refused("nothing is billed here")),
    field("thread", Refused("answers are not stored for retrieval: send all `messages`")),
];

const MODEL: &[Field] = &[field("model", Route(Kind::Text { bytes_max: NAME_BYTES_MAX }))];

/// Everything that a request for a message may hold.
pub const MESSAGES: Table = &[PROMPT, OWN, SAMPLING, STOPPING, DELIVERY];

/// Everything that a request for the count of a prompt's tokens may hold.
pub const COUNT_TOKENS: Table = &[PROMPT, MODEL];
