//! Tools as each API spells them, made into one spelling: that of a chat completion.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::parts::{flag, known, object, other_type, part, text};
use crate::ask::{Answering, Ask};
use crate::error::ApiError;
use crate::fields::{Edit, Fields, wrong};
use crate::short::short;
use crate::state::State;

/// Which API's words tools come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// OpenAI's chat: a function inside the tool.
    Chat,
    /// OpenAI's responses: the tool is the function.
    Responses,
    /// Anthropic's messages: the same, with `input_schema`.
    Messages,
}

/// The tools of a request.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    /// As a chat completion has them.
    list: Vec<Value>,
    choice: Choice,
    /// Whether several calls may follow each other, where the request says so.
    parallel: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    Auto,
    None,
    Required,
    Named(String),
}

impl Tools {
    /// Reads `tools` with `tool_choice`, and whether calls may be several.
    ///
    /// # Errors
    /// A tool that is no function, a choice without tools or of a tool that is not among them.
    pub(crate) fn read(words: Words, fields: &Fields) -> Result<Self, ApiError> {
        let given = fields.value("tools").and_then(Value::as_array).into_iter().flatten();
        let list =
            given.enumerate().map(|(index, tool)| words.tool(&format!("tools[{index}]"), tool));
        let list = list.collect::<Result<Vec<Value>, ApiError>>()?;
        let (choice, parallel) = match fields.value("tool_choice") {
            None => (Choice::Auto, None),
            Some(Value::Object(choice)) => words.choice(choice)?,
            Some(word) => (self::word(word)?, None),
        };
        let said = fields.value("parallel_tool_calls").and_then(Value::as_bool);
        let tools = Self { list, choice, parallel: parallel.or(said) };
        tools.check_choice()?;
        Ok(tools)
    }

    fn check_choice(&self) -> Result<(), ApiError> {
        let text = match &self.choice {
            Choice::Required | Choice::Named(_) if self.list.is_empty() => {
                "`tool_choice` asks for a call, but there are no `tools`".to_owned()
            }
            Choice::Named(name) if !self.list.iter().any(|tool| named(tool) == Some(name)) => {
                let shown = short(name);
                format!("`tool_choice` asks for the tool `{shown}`, which is not among `tools`")
            }
            _ => return Ok(()),
        };
        Err(ApiError::field("tool_choice", text).with_code("invalid_value"))
    }

    /// Whether any may be called.
    fn may_be_called(&self) -> bool {
        !self.list.is_empty() && self.choice != Choice::None
    }

    /// What the chat template is told of them: nothing where none may be called.
    pub(crate) fn told(&self) -> Option<Value> {
        self.may_be_called().then(|| Value::Array(self.list.clone()))
    }

    /// The form of the answer: calls that it may be, or must be.
    pub(crate) fn edit(&self) -> Option<Edit> {
        if !self.may_be_called() {
            return None;
        }
        let mut asked = Map::new();
        asked.insert("tools".to_owned(), json!(self.list));
        let choice = match &self.choice {
            Choice::Required => json!("required"),
            Choice::Named(name) => json!({ "type": "function", "function": { "name": name } }),
            Choice::Auto | Choice::None => json!("auto"),
        };
        asked.insert("tool_choice".to_owned(), choice);
        if let Some(parallel) = self.parallel {
            asked.insert("parallel_tool_calls".to_owned(), json!(parallel));
        }
        let value = json!(Value::Object(asked).to_string());
        Some(Edit { field: "tools", path: "constraints.tools", value })
    }
}

/// The parts of a function in a chat's tool.
const FUNCTION: &[&str] = &["name", "description", "parameters", "strict"];

/// The parts of these names that are there, in their order.
fn kept(given: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let parts = given.iter().filter(|(name, value)| {
        let name: &str = name;
        names.contains(&name) && !value.is_null()
    });
    parts.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The name of a tool in a chat completion's spelling.
fn named(tool: &Value) -> Option<&str> {
    tool["function"]["name"].as_str()
}

/// OpenAI's choices of one word.
fn word(word: &Value) -> Result<Choice, ApiError> {
    match word.as_str() {
        Some("none") => Ok(Choice::None),
        Some("auto") => Ok(Choice::Auto),
        Some("required") => Ok(Choice::Required),
        _ => {
            let wanted = "`none`, `auto`, `required` or an object that names a function";
            Err(wrong("tool_choice", word, wanted))
        }
    }
}

/// Anthropic's choices, which also say whether calls may be several.
fn choice_of_messages(given: &Map<String, Value>) -> Result<(Choice, Option<bool>), ApiError> {
    let (at, said) = ("tool_choice", "disable_parallel_tool_use");
    let kind = part(given, "type");
    let (choice, names): (_, &[&str]) = match kind.as_str() {
        Some("none") => (Choice::None, &["type"]),
        Some("auto") => (Choice::Auto, &["type", said]),
        Some("any") => (Choice::Required, &["type", said]),
        Some("tool") => {
            (Choice::Named(text(at, given, "name")?.to_owned()), &["type", "name", said])
        }
        _ => return Err(other_type(at, kind, &["auto", "any", "tool", "none"])),
    };
    known(at, given, names)?;
    Ok((choice, flag(at, given, said)?.map(|is_single| !is_single)))
}

impl Words {
    /// What such a tool's `type` is.
    fn kind(self) -> &'static str {
        if self == Self::Messages { "custom" } else { "function" }
    }

    /// Where such a tool has the schema of its arguments.
    fn schema(self) -> &'static str {
        if self == Self::Messages { "input_schema" } else { "parameters" }
    }

    /// One tool.
    fn tool(self, at: &str, tool: &Value) -> Result<Value, ApiError> {
        let given = object(at, tool)?;
        let (kind, wanted) = (part(given, "type"), self.kind());
        let is_plain = self == Self::Messages && kind.is_null();
        if !is_plain && *kind != json!(wanted) {
            return Err(other_type(at, kind, &[wanted]));
        }
        if self == Self::Chat {
            known(at, given, &["type", "function"])?;
            let at = format!("{at}.function");
            let function = object(&at, part(given, "function"))?;
            self.function(&at, function, FUNCTION)?;
            // The template is told of a chat's tool in the order in which it came.
            let mut tool = kept(given, &["type", "function"]);
            tool.insert("function".to_owned(), Value::Object(kept(function, FUNCTION)));
            return Ok(Value::Object(tool));
        }
        let names = ["type", "name", "description", "strict", self.schema()];
        let function = self.function(at, given, &names)?;
        Ok(json!({ "type": "function", "function": function }))
    }

    /// A function whose parts have these names, as a chat completion has it.
    fn function(
        self,
        at: &str,
        given: &Map<String, Value>,
        names: &[&str],
    ) -> Result<Map<String, Value>, ApiError> {
        known(at, given, names)?;
        let mut function = Map::new();
        function.insert("name".to_owned(), json!(text(at, given, "name")?));
        if !part(given, "description").is_null() {
            function.insert("description".to_owned(), json!(text(at, given, "description")?));
        }
        let schema = part(given, self.schema());
        if schema.is_object() {
            function.insert("parameters".to_owned(), schema.clone());
        } else if !schema.is_null() || self == Self::Messages {
            return Err(wrong(&format!("{at}.{}", self.schema()), schema, "an object"));
        }
        if let Some(strict) = flag(at, given, "strict")? {
            function.insert("strict".to_owned(), json!(strict));
        }
        Ok(function)
    }

    /// A choice that is an object, and what it says of several calls.
    fn choice(self, choice: &Map<String, Value>) -> Result<(Choice, Option<bool>), ApiError> {
        match self {
            Self::Messages => choice_of_messages(choice),
            Self::Chat | Self::Responses => {
                Ok((Choice::Named(self.function_chosen(choice)?.to_owned()), None))
            }
        }
    }

    /// The name of the function that one of OpenAI's choices asks for.
    fn function_chosen(self, choice: &Map<String, Value>) -> Result<&str, ApiError> {
        let kind = part(choice, "type");
        if *kind != json!("function") {
            return Err(other_type("tool_choice", kind, &["function"]));
        }
        // A chat's choice has the name in a function of its own, or beside the type.
        if self == Self::Responses || !part(choice, "name").is_null() {
            known("tool_choice", choice, &["type", "name"])?;
            return text("tool_choice", choice, "name");
        }
        known("tool_choice", choice, &["type", "function"])?;
        let at = "tool_choice.function";
        let Some(given) = choice.get("function").filter(|given| !given.is_null()) else {
            return Err(wrong(&format!("{at}.name"), &Value::Null, "a text"));
        };
        let function = object(at, given)?;
        known(at, function, &["name"])?;
        text(at, function, "name")
    }

    /// Submits a request whose tools came in these words, in which it is told of them.
    ///
    /// # Errors
    /// As `State::begin`.
    pub(crate) async fn begin(self, state: &Arc<State>, ask: Ask) -> Result<Answering, ApiError> {
        let mut answering = state.begin(ask).await.map_err(|error| self.error(error))?;
        for warning in &mut answering.warnings {
            *warning = self.placed(warning);
        }
        Ok(answering)
    }

    /// An error about tools, with its place where the request has it.
    pub(crate) fn error(self, error: ApiError) -> ApiError {
        ApiError { message: self.placed(&error.message), ..error }
    }

    /// Places of a chat completion's tools in a sentence, as these words have them.
    fn placed(self, sentence: &str) -> String {
        if self == Self::Chat {
            return sentence.to_owned();
        }
        for (open, slash) in [("#/tools/", "/"), ("`tools[", ".")] {
            let Some(start) = sentence.find(open).map(|at| at + open.len()) else { continue };
            let digits = sentence[start..].bytes().take_while(u8::is_ascii_digit).count();
            let (before, rest) = sentence.split_at(start + digits);
            let (bracket, rest) = match rest.strip_prefix(']') {
                Some(rest) => ("]", rest),
                None => ("", rest),
            };
            let Some(rest) = rest.strip_prefix(&format!("{slash}function")) else { continue };
            let parameters = format!("{slash}parameters");
            return match rest.strip_prefix(&parameters) {
                Some(rest) => format!("{before}{bracket}{slash}{}{rest}", self.schema()),
                None => format!("{before}{bracket}{rest}"),
            };
        }
        sentence.to_owned()
    }
}

#[cfg(test)]
mod tests;
