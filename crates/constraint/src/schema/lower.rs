//! A schema written anew: every keyword read, checked, and put down in the form that is compiled.

use serde_json::{Map, Value, json};

use super::format::{Format, format, length_max};
use super::keywords::{Keyword, annotation, is_idle, keyword};
use super::references::{References, place};
use super::{Path, SCHEMA_BYTES_MAX, SchemaError, SchemaProblem, SchemaWarning, Warned};
use super::{bounds, cost, finite, pattern, prove, values};

/// Where the lowered schema keeps what references lead to.
const DEFINITION: &str = "#/$defs/d";
/// Deepest nesting of all definitions together; the engine follows references by recursion.
const LEVELS_MAX: usize = 20_000;
/// Most definitions that references lead to.
const DEFINITIONS_MAX: usize = 2000;

/// A schema that is ready to be compiled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lowered {
    /// An object with `$defs` of its own.
    pub(crate) schema: Map<String, Value>,
    pub(crate) warnings: Vec<SchemaWarning>,
    /// Whether control characters may be written as `\u00NN`.
    pub(crate) allows_unicode_escapes: bool,
}

/// Reads the schema that stands at `start` in the document `root`.
///
/// # Errors
/// The first thing that cannot be held, and where.
pub(crate) fn lower(root: &Value, start: &Path) -> Result<Lowered, SchemaError> {
    let references = References::of(root)?;
    Path::default().at_most("the length in bytes", references.bytes(), SCHEMA_BYTES_MAX)?;
    let mut lowering = Lowering {
        references,
        places: std::collections::HashMap::new(),
        origins: Vec::new(),
        definitions: Map::new(),
        warnings: Vec::new(),
        levels: 0,
        controls: None,
        open_names: false,
    };
    let value = place(root, start.steps()).unwrap_or(root);
    let schema = lowering.whole(value, &mut start.clone())?;
    lowering.finished(schema, start)
}

/// The number of the definition that a lowered reference names.
pub(super) fn definition(reference: &str) -> Option<usize> {
    reference.strip_prefix(DEFINITION)?.parse().ok()
}

/// One schema on its way.
struct Lowering<'a> {
    references: References<'a>,
    /// Steps of a reference's target to the number of its definition.
    places: std::collections::HashMap<Vec<String>, usize>,
    origins: Vec<Path>,
    definitions: Map<String, Value>,
    warnings: Vec<SchemaWarning>,
    levels: usize,
    /// Where a text holds a control character without a short escape.
    controls: Option<Path>,
    /// Whether some object has properties by name and takes others too.
    open_names: bool,
}

impl<'a> Lowering<'a> {
    /// Lowers a schema and everything that it refers to.
    fn whole(&mut self, value: &'a Value, path: &mut Path) -> Result<Value, SchemaError> {
        let schema = self.schema(value, path)?;
        let mut done = 0;
        while let Some(origin) = self.origins.get(done) {
            let mut path = origin.clone();
            if done == DEFINITIONS_MAX {
                let (count, limit) = (self.origins.len() as u64, DEFINITIONS_MAX as u64);
                let what = "the number of places referred to";
                return path.refuse(SchemaProblem::TooLarge { what, count, limit });
            }
            let value = place(self.references.root, path.steps());
            let value = value.expect("a reference was followed to its place");
            let definition = self.schema(value, &mut path)?;
            self.definitions.insert(format!("d{done}"), definition);
            done += 1;
        }
        Ok(schema)
    }

    /// Checks what only the whole shows, and puts the parts together.
    fn finished(mut self, mut schema: Value, start: &Path) -> Result<Lowered, SchemaError> {
        let endless = finite::Definitions { map: &self.definitions }.endless();
        if let Some(&index) = endless.first() {
            return self.origins[index].refuse(SchemaProblem::Endless);
        }
        start.at_most("the nesting of all definitions", self.levels, LEVELS_MAX)?;
        let nodes = cost::nodes(&schema, &self.definitions);
        if nodes > cost::NODES_MAX {
            let what = "the size with all parts multiplied out";
            return start.refuse(SchemaProblem::TooLarge {
                what,
                count: nodes,
                limit: cost::NODES_MAX,
            });
        }
        self.definitions = prove::all(&mut schema, self.definitions, start, &self.origins)?;
        if let (Some(path), true) = (&self.controls, self.open_names) {
            // A name spelled with an escape would pass for another name.
            let what = "control character beside names that are free";
            return path.refuse(SchemaProblem::UnsupportedValue { what, value: "\\u".to_owned() });
        }
        let mut schema = match schema {
            Value::Object(map) => map,
            Value::Bool(false) => return start.refuse(SchemaProblem::Impossible),
            _ => Map::new(),
        };
        if !self.definitions.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(self.definitions));
        }
        Ok(Lowered { schema, warnings: self.warnings, allows_unicode_escapes: !self.open_names })
    }

    fn schema(&mut self, value: &'a Value, path: &mut Path) -> Result<Value, SchemaError> {
        self.levels += 1;
        let map = match value {
            Value::Bool(is) => return Ok(Value::Bool(*is)),
            Value::Object(map) => map,
            _ => return path.refuse(SchemaProblem::Malformed { want: "an object or a boolean" }),
        };
        let mut lowered = Map::new();
        for (name, value) in map {
            match keyword(name) {
                Keyword::Held => {
                    path.at(name, |path| self.keyword(name, value, path, &mut lowered))?;
                }
                Keyword::Annotation => path.at(name, |path| annotation(name, value, path))?,
                Keyword::Unsupported if is_idle(name, value, map) => {}
                Keyword::Unsupported => {
                    let keyword = name.clone();
                    return path.refuse_at(name, SchemaProblem::Unsupported { keyword });
                }
                Keyword::Unknown => self.warn(name, path),
            }
        }
        bounds::check(&lowered, path)?;
        self.object(&mut lowered, path)?;
        Ok(Value::Object(lowered))
    }

    fn keyword(
        &mut self,
        name: &str,
        value: &'a Value,
        path: &mut Path,
        lowered: &mut Map<String, Value>,
    ) -> Result<(), SchemaError> {
        let kept = match name {
            "type" => values::types(value, path)?,
            "const" => {
                values::document(value, path)?;
                self.texts(value, path);
                value.clone()
            }
            "enum" => {
                self.texts(value, path);
                Value::Array(values::values(value, path)?)
            }
            "minLength" | "minItems" | "minProperties" => match values::count(value, path)? {
                Some(count) => json!(count),
                None => return path.refuse(SchemaProblem::Impossible),
            },
            "maxLength" | "maxItems" | "maxProperties" => match values::count(value, path)? {
                Some(count) => json!(count),
                None => return Ok(()),
            },
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                values::number(value, path)?;
                value.clone()
            }
            "multipleOf" => {
                values::divisor(value, path)?;
                value.clone()
            }
            "pattern" => json!(held_pattern(values::text(value, path)?, path)?),
            "format" => return self.format(values::text(value, path)?, path, lowered),
            "required" => {
                self.texts(value, path);
                let names = values::names(value, path)?;
                values::name_count(names.len(), path)?;
                Value::Array(names)
            }
            "$ref" => self.reference(values::text(value, path)?, path)?,
            "properties" => self.properties(value, path)?,
            "patternProperties" => self.pattern_properties(value, path)?,
            "items" if value.is_array() => {
                return path.refuse(SchemaProblem::UnsupportedValue {
                    what: "list form of `items`, which this draft calls `prefixItems`,",
                    value: "[…]".to_owned(),
                });
            }
            "items" | "additionalProperties" => self.schema(value, path)?,
            // What is left holds a list of schemas.
            _ => self.list(value, path)?,
        };
        insert(lowered, name, kept);
        Ok(())
    }

    fn list(&mut self, value: &'a Value, path: &mut Path) -> Result<Value, SchemaError> {
        let items = values::list(value, path)?.iter().enumerate();
        let lowered: Result<Vec<Value>, SchemaError> =
            items.map(|(index, item)| path.at(index, |path| self.schema(item, path))).collect();
        Ok(Value::Array(lowered?))
    }

    fn properties(&mut self, value: &'a Value, path: &mut Path) -> Result<Value, SchemaError> {
        let mut lowered = Map::new();
        let map = values::map(value, path)?;
        values::name_count(map.len(), path)?;
        for (name, property) in map {
            self.text(name, path);
            let schema = path.at(name, |path| self.schema(property, path))?;
            lowered.insert(name.clone(), schema);
        }
        Ok(Value::Object(lowered))
    }

    fn pattern_properties(
        &mut self,
        value: &'a Value,
        path: &mut Path,
    ) -> Result<Value, SchemaError> {
        let mut lowered = Map::new();
        for (name, property) in values::map(value, path)? {
            let (name, schema) = path.at(name, |path| {
                Ok::<_, SchemaError>((held_pattern(name, path)?, self.schema(property, path)?))
            })?;
            if lowered.insert(name.clone(), schema).is_some() {
                let reason = "another pattern means the same".to_owned();
                return path.refuse_at(&name, SchemaProblem::Pattern { reason });
            }
        }
        Ok(Value::Object(lowered))
    }

    fn reference(&mut self, reference: &str, path: &Path) -> Result<Value, SchemaError> {
        let (target, _) = self.references.resolve(reference, path)?;
        let next = self.origins.len();
        let index = *self.places.entry(target.steps().to_vec()).or_insert(next);
        if index == next {
            self.origins.push(target);
        }
        Ok(json!(format!("{DEFINITION}{index}")))
    }

    fn format(
        &mut self,
        name: &str,
        path: &mut Path,
        lowered: &mut Map<String, Value>,
    ) -> Result<(), SchemaError> {
        match format(name) {
            Format::Held(pattern) => {
                let mut part = json!({ "pattern": pattern });
                if let Some(most) = length_max(name) {
                    part["maxLength"] = json!(most);
                }
                insert(lowered, "allOf", json!([part]));
                Ok(())
            }
            Format::Unsupported => path
                .refuse(SchemaProblem::UnsupportedValue { what: "format", value: name.to_owned() }),
            Format::Unknown => {
                self.unknown(format!("format: {name}"), path);
                Ok(())
            }
        }
    }

    /// What the keywords of an object mean together.
    fn object(
        &mut self,
        lowered: &mut Map<String, Value>,
        path: &mut Path,
    ) -> Result<(), SchemaError> {
        let is_closed = lowered.get("additionalProperties") == Some(&Value::Bool(false));
        self.open_names |= !is_closed
            && ["properties", "required", "patternProperties"]
                .iter()
                .any(|keyword| lowered.contains_key(*keyword));
        let required = lowered.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        let least = lowered.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
        // Free names may repeat, so of those beyond the required ones only one is sure to count.
        if least > required as u64 + 1 {
            let what = "`minProperties` beyond the required names and one more,";
            let value = least.to_string();
            return path
                .refuse_at("minProperties", SchemaProblem::UnsupportedValue { what, value });
        }
        Ok(())
    }

    fn texts(&mut self, value: &Value, path: &Path) {
        match value {
            Value::String(text) => self.text(text, path),
            Value::Array(list) => list.iter().for_each(|item| self.texts(item, path)),
            Value::Object(map) => map.iter().for_each(|(name, field)| {
                self.text(name, path);
                self.texts(field, path);
            }),
            _ => {}
        }
    }

    fn text(&mut self, text: &str, path: &Path) {
        let is_long = |c: char| c < ' ' && !matches!(c, '\n' | '\r' | '\t' | '\u{8}' | '\u{c}');
        if self.controls.is_none() && text.chars().any(is_long) {
            self.controls = Some(path.clone());
        }
    }

    fn warn(&mut self, name: &str, path: &mut Path) {
        path.at(name, |path| self.unknown(name.to_owned(), path));
    }

    fn unknown(&mut self, keyword: String, path: &Path) {
        let what = Warned::Unknown { keyword };
        self.warnings.push(SchemaWarning { path: path.told(), what });
    }
}

/// Puts a keyword down; a second list of `allOf` joins the first.
pub(super) fn insert(lowered: &mut Map<String, Value>, name: &str, value: Value) {
    match (lowered.get_mut(name), value) {
        (Some(Value::Array(list)), Value::Array(more)) if name == "allOf" => list.extend(more),
        (_, value) => {
            lowered.insert(name.to_owned(), value);
        }
    }
}

fn held_pattern(text: &str, path: &Path) -> Result<String, SchemaError> {
    match pattern::translated(text) {
        Ok(pattern) => Ok(pattern),
        Err(reason) => path.refuse(SchemaProblem::Pattern { reason }),
    }
}
