//! Walks a policy's fields once for reading and once for writing, so that no field can be forgotten.

use serde_json::{Map, Value};

use super::problem::Problem;
use super::slot::{Fault, Slot, kind_of};

/// Either direction of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

/// One table of the tree on its way in or out.
///
/// Reading takes each field it knows out of the table; what is left at the end is unknown.
#[derive(Debug)]
pub(super) struct Binder<'a> {
    way: Way,
    path: String,
    table: Map<String, Value>,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Binder<'a> {
    pub(super) fn reader(table: Map<String, Value>, problems: &'a mut Vec<Problem>) -> Self {
        Self { way: Way::Read, path: String::new(), table, problems }
    }

    pub(super) fn writer(problems: &'a mut Vec<Problem>) -> Self {
        Self { way: Way::Write, path: String::new(), table: Map::new(), problems }
    }

    /// One field. A `null` counts as left out.
    pub(super) fn field(&mut self, name: &'static str, mut slot: impl Slot) {
        match self.way {
            Way::Write => {
                self.table.insert(name.to_owned(), slot.write());
            }
            Way::Read => {
                let Some(value) = self.table.remove(name).filter(|value| !value.is_null()) else {
                    return;
                };
                if let Err(fault) = slot.read(&value) {
                    let problem = self.problem(name, fault);
                    self.problems.push(problem);
                }
            }
        }
    }

    /// A field that only later versions have: refused by its name.
    pub(super) fn not_yet(&mut self, name: &'static str) {
        if self.way == Way::Read && self.table.remove(name).is_some() {
            self.problems.push(Problem::NotSupported { path: self.path_of(name) });
        }
    }

    /// A table of fields.
    pub(super) fn section(&mut self, name: &'static str, bind: impl FnOnce(&mut Binder<'_>)) {
        let path = self.path_of(name);
        let table = match self.table.remove(name) {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(table)) => table,
            Some(other) => {
                self.problems.push(wrong_type(path, &other, "a table"));
                return;
            }
        };
        let mut inner = Binder { way: self.way, path, table, problems: self.problems };
        bind(&mut inner);
        let table = inner.finish();
        if self.way == Way::Write {
            self.table.insert(name.to_owned(), Value::Object(table));
        }
    }

    /// A list of tables, each bound by itself.
    pub(super) fn tables<T: Default>(
        &mut self,
        name: &'static str,
        rows: &mut Vec<T>,
        bind: impl Fn(&mut Binder<'_>, &mut T),
    ) {
        let entries = match self.table.remove(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(entries)) => entries,
            Some(other) => {
                let path = self.path_of(name);
                self.problems.push(wrong_type(path, &other, "a list of tables"));
                return;
            }
        };
        if self.way == Way::Read {
            rows.clear();
            rows.resize_with(entries.len(), T::default);
        }
        let mut written = Vec::new();
        let mut entries = entries.into_iter();
        for (index, row) in rows.iter_mut().enumerate() {
            let path = format!("{}[{index}]", self.path_of(name));
            let table = match entries.next() {
                None => Map::new(),
                Some(Value::Object(table)) => table,
                Some(other) => {
                    self.problems.push(wrong_type(path, &other, "a table"));
                    continue;
                }
            };
            let mut inner = Binder { way: self.way, path, table, problems: self.problems };
            bind(&mut inner, row);
            written.push(Value::Object(inner.finish()));
        }
        if self.way == Way::Write {
            self.table.insert(name.to_owned(), Value::Array(written));
        }
    }

    /// Ends the table: on reading, every name left is unknown; on writing, it is handed back.
    pub(super) fn finish(self) -> Map<String, Value> {
        if self.way == Way::Write {
            return self.table;
        }
        for name in self.table.keys() {
            let path =
                if self.path.is_empty() { name.clone() } else { format!("{}.{name}", self.path) };
            self.problems.push(Problem::UnknownField { path, nearest: None });
        }
        Map::new()
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn problem(&self, name: &str, fault: Fault) -> Problem {
        let path = self.path_of(name);
        match fault {
            Fault::Type { found, wanted } => Problem::WrongType { path, found, wanted },
            Fault::Range { value, range } => Problem::OutOfRange { path, value, range },
            Fault::Word { value, choices } => Problem::UnknownWord { path, value, choices },
            Fault::Repeated { value } => Problem::Repeated { path, value },
        }
    }
}

fn wrong_type(path: String, found: &Value, wanted: &'static str) -> Problem {
    Problem::WrongType { path, found: kind_of(found), wanted }
}
