//! Where in a document something stands: a JSON pointer that grows and shrinks with the walk.

use super::{SCHEMA_DEPTH_MAX, SchemaError, SchemaProblem};

/// Longest path that is told in full; a longer one keeps its beginning.
const PATH_BYTES_MAX: usize = 400;

/// The way from the root to the present place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Path {
    steps: Vec<String>,
}

impl Path {
    /// The place that a pointer's decoded steps lead to.
    pub(crate) fn of(steps: Vec<String>) -> Self {
        Self { steps }
    }

    /// Goes one step down for the time of `work`.
    pub(crate) fn at<T>(&mut self, step: impl ToString, work: impl FnOnce(&mut Self) -> T) -> T {
        self.steps.push(step.to_string());
        let done = work(self);
        self.steps.pop();
        done
    }

    /// The decoded steps.
    pub(crate) fn steps(&self) -> &[String] {
        &self.steps
    }

    /// The path as a JSON pointer in a URI fragment.
    pub(crate) fn told(&self) -> String {
        let mut told = String::from("#");
        for step in &self.steps {
            if told.len() > PATH_BYTES_MAX {
                told.push_str("/…");
                break;
            }
            told.push('/');
            let short: String = step.chars().take(PATH_BYTES_MAX).collect();
            told.push_str(&pointer_token(&short));
        }
        told
    }

    /// A refusal of what stands here.
    pub(crate) fn refuse<T>(&self, problem: SchemaProblem) -> Result<T, SchemaError> {
        Err(SchemaError { path: self.told(), problem })
    }

    /// Refuses more of something than the limit.
    pub(crate) fn at_most(
        &self,
        what: &'static str,
        count: usize,
        limit: usize,
    ) -> Result<(), SchemaError> {
        if count > limit {
            let (count, limit) = (count as u64, limit as u64);
            return self.refuse(SchemaProblem::TooLarge { what, count, limit });
        }
        Ok(())
    }

    /// Refuses a place that is nested deeper than a schema may be.
    pub(crate) fn check_depth(&self) -> Result<(), SchemaError> {
        self.at_most("the nesting", self.steps.len(), SCHEMA_DEPTH_MAX)
    }

    /// A refusal of the value of `keyword`, which stands here.
    pub(crate) fn refuse_at<T>(
        &mut self,
        keyword: &str,
        problem: SchemaProblem,
    ) -> Result<T, SchemaError> {
        self.at(keyword, |path| path.refuse(problem))
    }
}

/// A name as a reference token of a JSON pointer (RFC 6901, 3).
pub(crate) fn pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
