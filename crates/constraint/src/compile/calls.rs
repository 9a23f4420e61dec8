//! Calls of tools as a grammar: each call a schema of its own, between the template's markers.

use std::fmt::Write as _;

use llguidance::api::TopLevelGrammar;
use serde_json::{Map, Value, json};

use super::{Plan, blame, built, with_options};
use crate::environment::Environment;
use crate::error::ConstraintError;
use crate::kind::Limits;
use crate::schema::{Lowered, Path, SchemaError, SchemaWarning, lower};
use crate::tools::{Tool, ToolCalls, ToolFormat};

/// Text without a call, then what opens one; the text ends at the first opening.
const QWEN_TEXT: &str = r#"TEXT: /(?s:.*)/ & ~/(?s:.*<tool_call>.*)/
lead[suffix="<tool_call>\n"]: TEXT
"#;
/// An answer that begins like an object would be a call that is none.
const LLAMA_TEXT: &str = "TEXT: /[^\\s{;](?s:.*)/\n";

/// Compiles calls of tools.
pub(super) fn plan(
    calls: &ToolCalls,
    environment: &Environment,
    limits: &Limits,
) -> Result<Plan, ConstraintError> {
    let mut warnings = Vec::new();
    let mut lark = start(calls);
    let mut ways = Vec::new();
    for (index, tool) in &calls.tools {
        let lowered = parameters(*index, tool, &mut warnings)?;
        let call = call(tool, lowered, calls);
        let _ = writeln!(lark, "call_{index}: %json {}", Value::Object(call));
        ways.push(format!("call_{index}"));
    }
    let _ = writeln!(lark, "call: {}", ways.join(" | "));
    match built(TopLevelGrammar::from_lark(lark), environment, limits) {
        Ok(prototype) => Ok(Plan { prototype, rows: environment.rows(), warnings }),
        Err(reason) => Err(blamed(calls, reason, environment, limits)),
    }
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

/// The schema of the arguments; where it cannot be held and need not be, any object.
fn parameters(
    index: usize,
    tool: &Tool,
    warnings: &mut Vec<SchemaWarning>,
) -> Result<Lowered, ConstraintError> {
    match lower(&tool.parameters, &Path::default()) {
        Ok(lowered) => {
            let told = lowered.warnings.iter();
            warnings.extend(told.map(|warning| SchemaWarning {
                path: placed(index, &warning.path),
                keyword: warning.keyword.clone(),
            }));
            Ok(lowered)
        }
        Err(error) if tool.strict => Err(at_tool(index, error).into()),
        Err(error) => {
            let path = placed(index, &error.path);
            warnings.push(SchemaWarning { path, keyword: error.problem.to_string() });
            let any = json!({ "type": "object" });
            Ok(lower(&any, &Path::default()).expect("any object can be held"))
        }
    }
}

/// The object that states a call.
fn call(tool: &Tool, mut lowered: Lowered, calls: &ToolCalls) -> Map<String, Value> {
    let mut arguments = std::mem::take(&mut lowered.schema);
    // References are written from the root.
    let definitions = arguments.remove("$defs");
    // Arguments are an object, whether the schema says so or not.
    arguments.entry("type").or_insert_with(|| json!("object"));
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
    with_options(whole, &lowered, calls.whitespace)
}

/// The tool that the engine refuses by itself, and the part of its schema.
fn blamed(
    calls: &ToolCalls,
    reason: String,
    environment: &Environment,
    limits: &Limits,
) -> ConstraintError {
    for (index, tool) in &calls.tools {
        let fails = |start: &Path| {
            let lowered = lower(&tool.parameters, start).ok()?;
            super::lowered_schema(&lowered, calls.whitespace, environment, limits).err()
        };
        if let Some(reason) = fails(&Path::default()) {
            return at_tool(*index, blame::blame(&tool.parameters, reason, fails)).into();
        }
    }
    ConstraintError::Grammar { what: "list of tools", reason }
}

fn at_tool(index: usize, error: SchemaError) -> SchemaError {
    SchemaError { path: placed(index, &error.path), problem: error.problem }
}

/// A path in a tool's parameters as one in the request.
fn placed(index: usize, path: &str) -> String {
    let below = path.strip_prefix('#').unwrap_or(path);
    format!("#/tools/{index}/function/parameters{below}")
}
