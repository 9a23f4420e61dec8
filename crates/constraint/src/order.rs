//! The order in which a schema's fields are written, and what each is conditioned on.

mod moves;
mod role;

use serde_json::{Map, Value};

use crate::schema::{Path, References, SchemaError, pointer_token};

pub use role::Role;

/// Most fields that are listed.
const FIELDS_MAX: usize = 1000;
/// Deepest nesting of parts that are followed, references included.
const DEPTH_MAX: usize = 200;

/// A schema read as a plan: its fields in the order in which an answer writes them.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub fields: Vec<Field>,
    pub warnings: Vec<OrderWarning>,
    /// The schema with each reasoning before its verdict; nothing where no move is needed or none
    /// would help.
    pub reordered: Option<Value>,
}

/// One field of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// JSON pointer into the answer; `*` stands for each item of an array.
    pub path: String,
    pub role: Role,
    /// The fields written before it in the same answer, by their places in the list.
    pub after: Vec<usize>,
    /// Whether it is written for each item of an array, and so after those of earlier items too.
    pub repeats: bool,
}

/// A verdict that is chosen before its reasoning is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderWarning {
    /// Paths of the two fields.
    pub verdict: String,
    pub reasoning: String,
}

/// How one step of a field's way through the schema was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A property, and the steps to the `properties` that declares it.
    Name { map: Vec<String>, name: String },
    /// One of several alternatives of the schema at these steps.
    Way { place: Vec<String>, index: usize },
    /// An item of an array: its place in `prefixItems`, or each of the others.
    Item(Option<usize>),
}

/// A field on its way to be told.
#[derive(Debug, Clone)]
struct Found {
    steps: Vec<Step>,
    role: Role,
}

/// Reads the order of a schema's fields.
///
/// Names that are declared come in their order; free names are not fields. A field that refers
/// back to a schema that it is part of is listed, and not what is in it.
///
/// # Errors
/// A reference that leads nowhere, a schema that is nested too deep or has too many fields.
pub fn order(schema: &Value) -> Result<Order, SchemaError> {
    let fields = found(schema)?;
    let pairs = pairs(&fields);
    let reordered = moves::reordered(schema, &fields, &pairs)?;
    let told = |&(verdict, reasoning): &(usize, usize)| OrderWarning {
        verdict: fields[verdict].path(),
        reasoning: fields[reasoning].path(),
    };
    let warnings = pairs.iter().map(told).collect();
    let listed = fields.iter().enumerate().map(|(index, field)| Field {
        path: field.path(),
        role: field.role,
        after: (0..index).filter(|&other| !field.excludes(&fields[other])).collect(),
        repeats: field.steps.contains(&Step::Item(None)),
    });
    Ok(Order { fields: listed.collect(), warnings, reordered })
}

/// The fields in the order of an answer.
fn found(schema: &Value) -> Result<Vec<Found>, SchemaError> {
    let references = References::of(schema)?;
    let mut walk = Walk { references, fields: Vec::new(), open: Vec::new(), depth: 0 };
    walk.schema(schema, &mut Path::default(), &mut Vec::new())?;
    Ok(walk.fields)
}

/// Verdicts and the reasoning that comes after them, each verdict with the first such.
fn pairs(fields: &[Found]) -> Vec<(usize, usize)> {
    let verdicts = (0..fields.len()).filter(|&at| fields[at].role == Role::Verdict);
    let pair = |verdict: usize| {
        let is_reasoning = |other: &usize| {
            fields[*other].role == Role::Reasoning && fields[verdict].is_beside(&fields[*other])
        };
        let names_it = |other: &usize| role::names(fields[*other].name(), fields[verdict].name());
        let is_reasoned = (0..verdict).any(|other| is_reasoning(&other));
        let mut later = (verdict + 1..fields.len()).filter(is_reasoning);
        // One that stands before the verdict serves, unless another is the verdict's by name.
        let mut before = (0..verdict).filter(is_reasoning);
        let found = match is_reasoned {
            true if before.any(|other| names_it(&other)) => None,
            true => later.find(names_it),
            false => later.next(),
        };
        found.map(|reasoning| (verdict, reasoning))
    };
    verdicts.filter_map(pair).collect()
}

impl Found {
    fn path(&self) -> String {
        let step = |step: &Step| match step {
            Step::Name { name, .. } => format!("/{}", pointer_token(name)),
            Step::Way { .. } => String::new(),
            Step::Item(None) => "/*".to_owned(),
            Step::Item(Some(index)) => format!("/{index}"),
        };
        self.steps.iter().map(step).collect()
    }

    /// The last name on the way.
    fn name(&self) -> &str {
        let mut names = self.steps.iter().rev();
        let name = names.find_map(|step| match step {
            Step::Name { name, .. } => Some(name.as_str()),
            _ => None,
        });
        name.unwrap_or_default()
    }

    /// Where the ways of two fields part.
    fn parting(&self, other: &Self) -> usize {
        self.steps.iter().zip(&other.steps).take_while(|(a, b)| a == b).count()
    }

    /// Whether no answer has both fields.
    fn excludes(&self, other: &Self) -> bool {
        let at = self.parting(other);
        match (self.steps.get(at), other.steps.get(at)) {
            (Some(Step::Way { place, .. }), Some(Step::Way { place: other, .. })) => place == other,
            _ => false,
        }
    }

    /// Whether both are fields of one object, or of objects in it, and of no array in between.
    fn is_beside(&self, other: &Self) -> bool {
        let at = self.parting(other);
        let is_item = |steps: &[Step]| steps[at..].iter().any(|step| matches!(step, Step::Item(_)));
        let is_apart = self.steps.len() > at && other.steps.len() > at;
        is_apart && !self.excludes(other) && !is_item(&self.steps) && !is_item(&other.steps)
    }
}

/// One schema being walked through.
struct Walk<'a> {
    references: References<'a>,
    fields: Vec<Found>,
    /// Places of the references that are being followed.
    open: Vec<Vec<String>>,
    depth: usize,
}

impl<'a> Walk<'a> {
    fn schema(
        &mut self,
        value: &'a Value,
        path: &mut Path,
        steps: &mut Vec<Step>,
    ) -> Result<(), SchemaError> {
        let Value::Object(map) = value else {
            return Ok(());
        };
        path.at_most("the nesting", self.depth + 1, DEPTH_MAX)?;
        self.depth += 1;
        for (keyword, value) in map {
            path.at(keyword, |path| self.keyword(keyword, value, path, steps))?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &'a Value,
        path: &mut Path,
        steps: &mut Vec<Step>,
    ) -> Result<(), SchemaError> {
        match (keyword, value) {
            ("properties", Value::Object(names)) => self.properties(names, path, steps),
            ("allOf", Value::Array(parts)) => {
                for (index, part) in parts.iter().enumerate() {
                    path.at(index, |path| self.schema(part, path, steps))?;
                }
                Ok(())
            }
            ("anyOf" | "oneOf", Value::Array(ways)) => {
                for (index, way) in ways.iter().enumerate() {
                    steps.push(Step::Way { place: path.steps().to_vec(), index });
                    path.at(index, |path| self.schema(way, path, steps))?;
                    steps.pop();
                }
                Ok(())
            }
            ("prefixItems", Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    steps.push(Step::Item(Some(index)));
                    path.at(index, |path| self.schema(item, path, steps))?;
                    steps.pop();
                }
                Ok(())
            }
            ("items", Value::Object(_)) => {
                steps.push(Step::Item(None));
                self.schema(value, path, steps)?;
                steps.pop();
                Ok(())
            }
            ("$ref", Value::String(reference)) => {
                let (mut target, value) = self.references.resolve(reference, path)?;
                let place = target.steps().to_vec();
                if self.open.contains(&place) || path.steps().starts_with(&place) {
                    return Ok(());
                }
                self.open.push(place);
                self.schema(value, &mut target, steps)?;
                self.open.pop();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn properties(
        &mut self,
        names: &'a Map<String, Value>,
        path: &mut Path,
        steps: &mut Vec<Step>,
    ) -> Result<(), SchemaError> {
        for (name, schema) in names {
            path.at_most("the number of fields", self.fields.len() + 1, FIELDS_MAX)?;
            steps.push(Step::Name { map: path.steps().to_vec(), name: name.clone() });
            let role = path.at(name, |path| self.role(name, schema, path))?;
            // A name that two parts declare is one field.
            let field = Found { steps: steps.clone(), role };
            if !self
                .fields
                .iter()
                .any(|other| other.path() == field.path() && !field.excludes(other))
            {
                self.fields.push(field);
            }
            path.at(name, |path| self.schema(schema, path, steps))?;
            steps.pop();
        }
        Ok(())
    }

    /// The role of a property, through its references.
    fn role(&self, name: &str, schema: &'a Value, path: &Path) -> Result<Role, SchemaError> {
        let (mut schema, mut path) = (schema, path.clone());
        for _ in 0..DEPTH_MAX {
            let role = role::of(name, schema);
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                return Ok(role);
            };
            if role != Role::Plain {
                return Ok(role);
            }
            path = path.at("$ref", |path| path.clone());
            (path, schema) = self.references.resolve(reference, &path)?;
        }
        Ok(Role::Plain)
    }
}

#[cfg(test)]
mod tests;
