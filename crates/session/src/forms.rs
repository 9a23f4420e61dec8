//! What answers are held to: the forms that policies ask for, compiled once for each model.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use causeway_constraint::{
    Constraint, Environment, Held, Limits, Plan, ToolFormat, Whitespace, compile, read_schema,
    read_tools,
};
use causeway_policy::{Form, Guide as _, Whitespace as Spaces};
use causeway_request::TokenId;
use causeway_text::Text;
use serde_json::Value;

use crate::about::About;
use crate::error::FormError;

/// Plans that are kept; that of a large schema takes a few megabytes.
const PLANS_MAX: usize = 64;

/// A form as a plan, and the field of the policy that asked for it.
#[derive(Debug, Clone)]
pub struct FormPlan {
    pub field: &'static str,
    pub plan: Arc<Plan>,
}

/// The forms of one model's answers.
#[derive(Debug)]
pub struct Forms {
    text: Arc<Text>,
    rows: usize,
    ends: Vec<TokenId>,
    tools: Option<ToolFormat>,
    /// Built for the first form, since that takes a good part of a second.
    environment: OnceLock<Result<Environment, FormError>>,
    /// The plans that were used last, newest first.
    plans: Mutex<VecDeque<(Form, FormPlan)>>,
}

impl Forms {
    /// The forms of a model with this text side.
    #[must_use]
    pub fn new(text: Arc<Text>, about: &About) -> Self {
        Self {
            tools: tool_format(&text),
            text,
            rows: about.vocab_size,
            ends: about.end_tokens.clone(),
            environment: OnceLock::new(),
            plans: Mutex::default(),
        }
    }

    /// The model's text side.
    #[must_use]
    pub fn text(&self) -> &Arc<Text> {
        &self.text
    }

    /// How calls are written in answers under this plan; `None` where there are none.
    #[must_use]
    pub fn tools_of(&self, plan: &FormPlan) -> Option<ToolFormat> {
        self.tools.filter(|_| plan.field == "constraints.tools")
    }

    /// The plan of a form; `None` where the answer is free.
    ///
    /// Takes as long as compiling takes: milliseconds, and the first time a good part of a second.
    ///
    /// # Errors
    /// A form that is at odds with itself, uses what is not supported, or is beyond the limits.
    pub fn plan(&self, form: &Form) -> Result<Option<FormPlan>, FormError> {
        if form.asked().is_empty() {
            return Ok(None);
        }
        if let Some(known) = self.known(form) {
            return Ok(Some(known));
        }
        let Some((field, constraint)) = constraint(form, self.tools)? else { return Ok(None) };
        let environment = self.environment.get_or_init(|| {
            Environment::new(Arc::clone(&self.text.tokenizer), self.rows, &self.ends)
                .map_err(FormError::from)
        });
        let environment = environment.as_ref().map_err(Clone::clone)?;
        let plan = compile(&constraint, environment, &Limits::default());
        let plan = plan.map_err(|source| FormError::Refused { field, source: Box::new(source) })?;
        let plan = FormPlan { field, plan: Arc::new(plan) };
        self.keep(form.clone(), plan.clone());
        Ok(Some(plan))
    }

    fn known(&self, form: &Form) -> Option<FormPlan> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let place = plans.iter().position(|(known, _)| known == form)?;
        let found = plans.remove(place)?;
        let plan = found.1.clone();
        plans.push_front(found);
        Some(plan)
    }

    fn keep(&self, form: Form, plan: FormPlan) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.push_front((form, plan));
        plans.truncate(PLANS_MAX);
    }
}

impl FormPlan {
    /// Parts of a schema that have no effect, a sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.plan.warnings().iter().map(ToString::to_string).collect()
    }

    /// An answer that goes on behind `prefilled` tokens of its own.
    ///
    /// # Errors
    /// A response prefill that breaks the form, or leaves nothing to write.
    pub(crate) fn held(&self, prefilled: &[u32]) -> Result<Held, FormError> {
        let field = self.field;
        let mut held = Held::new(&self.plan);
        for (place, token) in prefilled.iter().enumerate() {
            held.read(TokenId(*token));
            if let Some(fault) = held.fault() {
                let reason = fault.to_string();
                return Err(FormError::PrefillBreaks { field, place, reason });
            }
        }
        if held.is_complete() {
            return Err(FormError::PrefillCompletes { field });
        }
        Ok(held)
    }
}

/// How a template writes calls, by the words that it writes them with.
fn tool_format(text: &Text) -> Option<ToolFormat> {
    let source = text.tool_template_source()?;
    if source.contains("<tool_call>") {
        return Some(ToolFormat::Qwen);
    }
    let is_llama = source.contains("tools") && source.contains("\"parameters\"");
    is_llama.then_some(ToolFormat::Llama3)
}

/// The constraint that a policy asks for, and the field that does.
fn constraint(
    form: &Form,
    format: Option<ToolFormat>,
) -> Result<Option<(&'static str, Constraint)>, FormError> {
    let Form { schema, json_object, regex, grammar, choice, tools, whitespace } = form;
    let whitespace = match whitespace {
        Spaces::Compact => Whitespace::Compact,
        Spaces::Flexible => Whitespace::Flexible,
    };
    Ok(if let Some(text) = schema {
        let schema = read_schema(text);
        let schema = schema.map_err(|source| FormError::Unread { source: Arc::new(source) })?;
        Some(("constraints.schema", Constraint::JsonSchema { schema, whitespace }))
    } else if *json_object {
        Some(("constraints.json_object", Constraint::JsonObject { whitespace }))
    } else if let Some(regex) = regex {
        Some(("constraints.regex", Constraint::Regex(regex.clone())))
    } else if let Some(grammar) = grammar {
        Some(("constraints.grammar", Constraint::Lark(grammar.clone())))
    } else if !choice.is_empty() {
        Some(("constraints.choice", Constraint::Choice(choice.clone())))
    } else if let Some(tools) = tools {
        let format = format.ok_or(FormError::NoToolFormat)?;
        let tree: Value = serde_json::from_str(tools).map_err(|_| FormError::ToolsUnread)?;
        let parallel = tree["parallel_tool_calls"].as_bool().unwrap_or(true);
        let calls = read_tools(&tree["tools"], tree.get("tool_choice"), parallel, format);
        let calls = calls.map_err(|source| FormError::Tools { source })?;
        calls.map(|calls| ("constraints.tools", Constraint::ToolCalls(calls)))
    } else {
        None
    })
}

#[cfg(test)]
mod tests;
