//! Calls of tools as a grammar: each call a schema of its own, between the template's markers.

use std::fmt::Write as _;

use llguidance::api::TopLevelGrammar;
use serde_json::{Map, Value, json};

use super::{Plan, blame, built, with_options};
use crate::environment::Environment;
use crate::error::ConstraintError;
use crate::kind::Limits;
use crate::schema::{Lowered, Path, SchemaError, SchemaWarning, Warned, lower, lower_object};
use crate::tools::{Tool, ToolCalls, ToolFormat};

/// Text without a call, then what opens one; the text ends at the first opening.
const QWEN_TEXT: &str = r#"TEXT: /(?s:.*)/ & ~/(?s:.*<tool_call>.*)/
lead[suffix="<tool_call>\n"]: TEXT
"#;
/// An answer that begins like an object would be a call that is none.
const LLAMA_TEXT: &str = "TEXT: /[^\\s{;](?s:.*)/\n";

/// The arguments of one tool as they are held, and what is said of that.
struct Arguments {
    lowered: Lowered,
    warnings: Vec<SchemaWarning>,
}

/// Compiles calls of tools.
pub(super) fn plan(
    calls: &ToolCalls,
    environment: &Environment,
    limits: &Limits,
) -> Result<Plan, ConstraintError> {
    let tools = calls.tools.iter();
    let arguments = tools.map(|(index, tool)| Arguments::of(*index, tool));
    let mut arguments = arguments.collect::<Result<Vec<Arguments>, ConstraintError>>()?;
    let whole = |arguments: &[Arguments]| {
        built(TopLevelGrammar::from_lark(grammar(calls, arguments)), environment, limits)
    };
    let refused = |reason| ConstraintError::Grammar { what: "list of tools", reason };
    let prototype = match whole(&arguments) {
        Ok(prototype) => prototype,
        Err(reason) => {
            let mut is_known = false;
            for ((index, tool), held) in calls.tools.iter().zip(&mut arguments) {
                let Some(error) = blamed(tool, calls, environment, limits) else { continue };
                *held = Arguments::any_unless_strict(*index, tool, error)?;
                is_known = true;
            }
            if !is_known {
                return Err(refused(reason));
            }
            whole(&arguments).map_err(refused)?
        }
    };
    let warnings = arguments.into_iter().flat_map(|held| held.warnings).collect();
    Ok(Plan { prototype, rows: environment.rows(), warnings })
}

fn grammar(calls: &ToolCalls, arguments: &[Arguments]) -> String {
    let mut lark = start(calls);
    let mut ways = Vec::new();
    for ((index, tool), held) in calls.tools.iter().zip(arguments) {
        let call = call(tool, &held.lowered, calls);
        let _ = writeln!(lark, "call_{index}: %json {}", Value::Object(call));
        ways.push(format!("call_{index}"));
    }
    let _ = writeln!(lark, "call: {}", ways.join(" | "));
    lark
}

/// What stands around the calls.
fn start(calls: &ToolCalls) -> String {
    let ToolCalls { required, parallel, format, tools: _, whitespace: _ } = calls;
    let more = if *parallel { r#" ("\n<tool_call>\n" call "\n</tool_call>")*"# } else { "" };
    match (format, required) {
        (ToolFormat::Qwen, true) => {
            format!("start: \"<tool_call>\\n\" call \"\\n</tool_call>\"{more}\n")
        }
        (ToolFormat::Qwen, false) => {
            format!("start: TEXT | lead call \"\\n</tool_call>\"{more}\n{QWEN_TEXT}")
        }
        (ToolFormat::Llama3, true) => "start: call\n".to_owned(),
        (ToolFormat::Llama3, false) => format!("start: call | TEXT\n{LLAMA_TEXT}"),
    }
}

impl Arguments {
    /// What the checker makes of a tool's schema.
    fn of(index: usize, tool: &Tool) -> Result<Self, ConstraintError> {
        match lower_object(&tool.parameters) {
            Ok(mut lowered) => {
                let mut warnings = std::mem::take(&mut lowered.warnings);
                for warning in &mut warnings {
                    warning.path = placed(index, &warning.path);
                }
                Ok(Self { lowered, warnings })
            }
            Err(error) => Self::any_unless_strict(index, tool, error),
        }
    }

    /// Any object where a schema cannot be held and need not be.
    fn any_unless_strict(
        index: usize,
        tool: &Tool,
        SchemaError { path, problem }: SchemaError,
    ) -> Result<Self, ConstraintError> {
        let path = placed(index, &path);
        if tool.strict {
            return Err(SchemaError { path, problem }.into());
        }
        let lowered = lower_object(&json!({})).expect("any object can be held");
        let what = Warned::AnyObject { tool: tool.name.clone(), problem };
        Ok(Self { lowered, warnings: vec![SchemaWarning { path, what }] })
    }
}

/// The object that states a call.
fn call(tool: &Tool, lowered: &Lowered, calls: &ToolCalls) -> Map<String, Value> {
    let mut arguments = lowered.schema.clone();
    // References are written from the root.
    let definitions = arguments.remove("$defs");
    let key = match calls.format {
        ToolFormat::Qwen => "arguments",
        ToolFormat::Llama3 => "parameters",
    };
    let mut whole = Map::new();
    whole.insert("type".to_owned(), json!("object"));
    whole
        .insert("properties".to_owned(), json!({ "name": { "const": tool.name }, key: arguments }));
    whole.insert("required".to_owned(), json!(["name", key]));
    whole.insert("additionalProperties".to_owned(), json!(false));
    if let Some(definitions) = definitions {
        whole.insert("$defs".to_owned(), definitions);
    }
    with_options(whole, lowered, calls.whitespace)
}

/// The part of a tool's schema that the engine refuses, if it refuses the tool by itself.
fn blamed(
    tool: &Tool,
    calls: &ToolCalls,
    environment: &Environment,
    limits: &Limits,
) -> Option<SchemaError> {
    let fails = |start: &Path| {
        let lowered = match start.steps() {
            [] => lower_object(&tool.parameters),
            _ => lower(&tool.parameters, start),
        };
        super::lowered_schema(&lowered.ok()?, calls.whitespace, environment, limits).err()
    };
    let reason = fails(&Path::default())?;
    Some(blame::blame(&tool.parameters, reason, fails))
}

/// A path in a tool's parameters as one in the request.
fn placed(index: usize, path: &str) -> String {
    let below = path.strip_prefix('#').unwrap_or(path);
    format!("#/tools/{index}/function/parameters{below}")
}
