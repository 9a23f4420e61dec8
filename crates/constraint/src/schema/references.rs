//! Where a `$ref` leads: pointers, anchors and embedded resources of one document.

use std::collections::HashMap;

use serde_json::Value;

use super::keywords::{DOCUMENTS, Keyword, MAPS, keyword as keyword_of};
use super::{Path, SchemaError, SchemaProblem};

/// A document with the places that have names.
pub(crate) struct References<'a> {
    pub(super) root: &'a Value,
    /// `$id` of a resource without its fragment, or "" for the document, to the resource's place.
    resources: HashMap<String, Vec<String>>,
    /// (resource, anchor) to its place.
    anchors: HashMap<(String, String), Vec<String>>,
    /// Places where a resource begins, and its `$id`.
    starts: Vec<(Vec<String>, String)>,
}

impl<'a> References<'a> {
    /// Walks the whole document once; refuses what no part of it may have.
    pub(crate) fn of(root: &'a Value) -> Result<Self, SchemaError> {
        let mut found = Self {
            root,
            resources: HashMap::from([(String::new(), Vec::new())]),
            anchors: HashMap::new(),
            starts: vec![(Vec::new(), String::new())],
        };
        found.walk(root, &mut Path::default(), "")?;
        Ok(found)
    }

    /// Bytes of the document written compactly, without writing it.
    pub(super) fn bytes(&self) -> usize {
        let mut count = Count(0);
        serde_json::to_writer(&mut count, self.root).expect("a document can always be written");
        count.0
    }

    /// The place that `reference`, standing at `path`, leads to.
    pub(crate) fn resolve(
        &self,
        reference: &str,
        path: &Path,
    ) -> Result<(Path, &'a Value), SchemaError> {
        let nowhere = || SchemaProblem::Reference { reference: reference.to_owned() };
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = self.base(path);
        let uri = if uri.is_empty() { base.to_owned() } else { joined(base, uri) };
        let Some(start) = self.resources.get(&uri) else {
            return path.refuse(nowhere());
        };
        let Some(fragment) = unescaped(fragment) else {
            return path.refuse(nowhere());
        };
        let steps = if fragment.is_empty() {
            start.clone()
        } else if let Some(pointer) = fragment.strip_prefix('/') {
            let steps = pointer.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
            start.iter().cloned().chain(steps).collect()
        } else {
            match self.anchors.get(&(uri, fragment)) {
                Some(steps) => steps.clone(),
                None => return path.refuse(nowhere()),
            }
        };
        match place(self.root, &steps) {
            Some(value) => Ok((Path::of(steps), value)),
            None => path.refuse(nowhere()),
        }
    }

    /// The `$id` of the innermost resource that holds `path`.
    fn base(&self, path: &Path) -> &str {
        let inside = self.starts.iter().filter(|(start, _)| path.steps().starts_with(start));
        inside.max_by_key(|(start, _)| start.len()).map_or("", |(_, id)| id)
    }

    fn walk(&mut self, value: &Value, path: &mut Path, base: &str) -> Result<(), SchemaError> {
        path.check_depth()?;
        match value {
            Value::Array(list) => {
                let mut items = list.iter().enumerate();
                items.try_for_each(|(i, item)| path.at(i, |path| self.walk(item, path, base)))
            }
            Value::Object(map) => {
                let base = self.name(map, path, base)?;
                for (keyword, value) in map {
                    path.at(keyword, |path| self.walk_keyword(keyword, value, path, &base))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn walk_keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        path: &mut Path,
        base: &str,
    ) -> Result<(), SchemaError> {
        if keyword == "x-guidance" {
            return path.refuse(SchemaProblem::Unsupported { keyword: keyword.to_owned() });
        }
        if DOCUMENTS.contains(&keyword) {
            return depth(value, path, false);
        }
        if keyword_of(keyword) == Keyword::Unknown {
            return depth(value, path, true);
        }
        match value {
            // The names in here are free: none of them is a keyword.
            Value::Object(map) if MAPS.contains(&keyword) => {
                let mut fields = map.iter();
                fields.try_for_each(|(k, v)| path.at(k, |path| self.walk(v, path, base)))
            }
            _ => self.walk(value, path, base),
        }
    }

    /// Notes the names that an object gives itself; its base is what comes back.
    fn name(
        &mut self,
        map: &serde_json::Map<String, Value>,
        path: &Path,
        base: &str,
    ) -> Result<String, SchemaError> {
        let mut base = base.to_owned();
        if let Some(id) = map.get("$id").and_then(Value::as_str) {
            let (uri, fragment) = id.split_once('#').unwrap_or((id, ""));
            if !fragment.is_empty() {
                return path.refuse(SchemaProblem::UnsupportedValue {
                    what: "`$id` with a fragment,",
                    value: id.to_owned(),
                });
            }
            base = joined(&base, uri);
            self.resources.entry(base.clone()).or_insert_with(|| path.steps().to_vec());
            self.starts.push((path.steps().to_vec(), base.clone()));
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = map.get(keyword).and_then(Value::as_str) {
                let name = (base.clone(), anchor.to_owned());
                self.anchors.entry(name).or_insert_with(|| path.steps().to_vec());
            }
        }
        Ok(base)
    }
}

/// Counts what is written.
struct Count(usize);

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Refuses what is nested too deep, and what the engine would obey in a part that is unknown.
fn depth(value: &Value, path: &mut Path, is_schema: bool) -> Result<(), SchemaError> {
    path.check_depth()?;
    match value {
        Value::Array(list) => {
            let mut items = list.iter().enumerate();
            items.try_for_each(|(index, item)| path.at(index, |path| depth(item, path, is_schema)))
        }
        Value::Object(map) if is_schema && map.contains_key("x-guidance") => {
            let keyword = "x-guidance".to_owned();
            path.refuse_at("x-guidance", SchemaProblem::Unsupported { keyword })
        }
        Value::Object(map) => {
            let mut fields = map.iter();
            fields.try_for_each(|(name, field)| path.at(name, |path| depth(field, path, is_schema)))
        }
        _ => Ok(()),
    }
}

/// What stands at a pointer's steps.
pub(super) fn place<'a>(root: &'a Value, steps: &[String]) -> Option<&'a Value> {
    steps.iter().try_fold(root, |value, step| match value {
        Value::Object(map) => map.get(step),
        Value::Array(list) if step == "0" || !step.starts_with('0') => {
            list.get(step.parse::<usize>().ok()?)
        }
        _ => None,
    })
}

/// A URI reference joined to a base, as far as names of schemas need it (RFC 3986, 5.2).
fn joined(base: &str, uri: &str) -> String {
    if uri.split_once(':').is_some_and(|(scheme, _)| !scheme.contains('/')) {
        return uri.to_owned();
    }
    let root = base
        .find("://")
        .map_or(0, |at| base[at + 3..].find('/').map_or(base.len(), |slash| at + 3 + slash));
    if uri.starts_with('/') {
        return format!("{}{uri}", &base[..root]);
    }
    let folder = base[root..].rfind('/').map_or(root, |slash| root + slash + 1);
    format!("{}{uri}", &base[..folder])
}

/// Text without percent escapes; nothing where one is broken.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}
