//! The fields of `POST /v1/responses`.

use super::Rule::{Only, Refused, Route};
use super::chat::{TOOLS_MAX, TOP_LOGPROBS_MAX};
use super::shared::{DELIVERY, OPENAI, SAMPLING, STOP, STOPPING, field, temperature, tokens_max};
use super::{Field, Kind, Plain, Table};

/// Longest text of `instructions`, in bytes; most bodies end before it.
const TEXT_BYTES_MAX: usize = 64 << 20;
const STORED: &str = "answers are not stored for retrieval: send the whole conversation as `input`";

const OWN: &[Field] = &[
    field("input", Route(Kind::Any)),
    field("instructions", Route(Kind::Text { bytes_max: TEXT_BYTES_MAX })),
    tokens_max("max_output_tokens"),
    temperature(2.0),
    STOP,
    field("text", Route(Kind::Object)),
    field("include", Route(Kind::TextList { count_max: 16, bytes_max: 128 })),
    field("top_logprobs", Route(Kind::Count { min: 0, max: TOP_LOGPROBS_MAX })),
    field("chat_template_kwargs", Route(Kind::Object)),
    field("continue_final_message", Route(Kind::Flag)),
    field("background", Only(&[Plain::Flag(false)], "every answer has its own connection")),
    field("background_options", Refused("every answer has its own connection")),
    field("truncation", Only(&[Plain::Word("disabled")], "no message is left out in silence")),
    field("previous_response_id", Refused(STORED)),
    field("conversation", Refused(STORED)),
    field("prompt", Refused("no prompts are stored here: send `input`")),
    field("context_management", Refused("no message is left out in silence")),
    field("tools", Route(Kind::List { count_max: TOOLS_MAX })),
    field("tool_choice", Route(Kind::Any)),
    field("parallel_tool_calls", Route(Kind::Flag)),
    field("max_tool_calls", Refused("it counts calls of tools that are built in, and none is")),
    field("reasoning", Route(Kind::Object)),
    field("image", Refused("input is text")),
    field("moderation", Refused("answers are not moderated")),
    field("access_programs", Refused("there are none")),
];

/// Everything that a request for a response may hold.
pub const RESPONSES: Table = &[OWN, SAMPLING, STOPPING, DELIVERY, OPENAI];
