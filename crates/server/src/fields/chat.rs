//! The fields of `POST /v1/chat/completions`.

use super::Rule::{Only, Refused, Route};
use super::shared::{
    CHOICES, DELIVERY, FORMS, OPENAI, SAMPLING, STOP, STOPPING, field, temperature, tokens_max,
};
use super::{Field, Kind, Plain, Table};

/// Most messages of one chat.
pub const MESSAGES_MAX: usize = 4096;
/// Most tools of one chat.
pub const TOOLS_MAX: usize = 128;
/// Most of the best tokens that are told beside each token.
pub const TOP_LOGPROBS_MAX: u64 = 20;

const OWN: &[Field] = &[
    field("messages", Route(Kind::List { count_max: MESSAGES_MAX })),
    CHOICES,
    STOP,
    temperature(2.0),
    tokens_max("max_tokens"),
    tokens_max("max_completion_tokens"),
    field("logprobs", Route(Kind::Flag)),
    field("top_logprobs", Route(Kind::Count { min: 0, max: TOP_LOGPROBS_MAX })),
    field("response_format", Route(Kind::Object)),
    field("chat_template_kwargs", Route(Kind::Object)),
    field("continue_final_message", Route(Kind::Flag)),
    field("add_generation_prompt", Only(&[Plain::Flag(true)], "an answer always has its header")),
    field("tools", Route(Kind::List { count_max: TOOLS_MAX })),
    field("tool_choice", Route(Kind::Any)),
    field("parallel_tool_calls", Route(Kind::Flag)),
    field("functions", Refused("it is superseded by `tools`")),
    field("function_call", Refused("it is superseded by `tool_choice`")),
    field("modalities", Route(Kind::List { count_max: 8 })),
    field("audio", Refused("answers are text")),
    field("prediction", Refused("nothing is predicted")),
    field("reasoning_effort", Route(Kind::Word(&["none"]))),
    field("verbosity", Refused("no model here is trained for it")),
    field("web_search_options", Refused("no model here searches the web")),
    field("moderation", Refused("answers are not moderated")),
    field("prompt_logprobs", Refused("only tokens of the answer have logprobs")),
];

/// Everything that a chat completion may hold.
pub const CHAT: Table = &[OWN, SAMPLING, STOPPING, FORMS, DELIVERY, OPENAI];
