//! What can be wrong with a policy file: one sentence for each mistake.

use std::fmt;

use thiserror::Error;

/// One mistake in a policy file; its text is one sentence that names the field.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Problem {
    /// A name that no field has.
    #[error("unknown field `{path}`{}", nearest_clause(*nearest))]
    UnknownField { path: String, nearest: Option<&'static str> },
    /// A field that later versions of the file will have.
    #[error("`{path}` is not supported yet")]
    NotSupported { path: String },
    /// A field given both in its section and in its short form.
    #[error("`{name}` is given twice, at the top and in `{section}`")]
    GivenTwice { name: String, section: String },
    /// A field that the file cannot do without.
    #[error("`{path}` is missing: write `{path} = {wanted}`")]
    Missing { path: &'static str, wanted: &'static str },
    /// A value of another type than the field's.
    #[error("`{path}` is {found}, but must be {wanted}")]
    WrongType { path: String, found: String, wanted: &'static str },
    /// A value outside the field's range.
    #[error("`{path}` is {value}, but must be {range}")]
    OutOfRange { path: String, value: String, range: String },
    /// A word that is not one of the field's words.
    #[error("`{path}` is `{value}`, but must be one of {choices}")]
    UnknownWord { path: String, value: String, choices: String },
    /// An entry that stands twice where once is meant.
    #[error("`{path}` names {value} twice")]
    Repeated { path: String, value: String },
    /// Two fields that each say what the whole answer is.
    #[error("`{first}` and `{second}` are both set, but an answer has one form")]
    TwoForms { first: &'static str, second: &'static str },
    /// A rule that is set but has no place in the order.
    #[error("`{field}` is set, but `order` has no place for it")]
    NotInOrder { field: &'static str },
    /// A rule that is set but that the engine named by `like` does not have.
    #[error("`{field}` is set, but {peer} has no such rule (give an `order` to use it anyway)")]
    NotOfPeer { field: &'static str, peer: &'static str },
    /// A value that the engine named by `like` would silently turn into another.
    #[error("`{field}` is {value}, but {peer} takes {range}")]
    OutsidePeer { field: &'static str, value: String, peer: &'static str, range: &'static str },
}

fn nearest_clause(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(": did you mean `{name}`?"))
}

/// Every mistake found in one file, in the order of the file's fields; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Why a policy file was refused.
#[derive(Debug, Error)]
pub enum FileError {
    /// The text is not TOML.
    #[error("the policy file is not valid TOML: {}", first_line(source))]
    Toml {
        /// Boxed, since it is far larger than the other variant.
        source: Box<toml::de::Error>,
    },
    /// The text is TOML, but not a policy.
    #[error(transparent)]
    Problems(#[from] Problems),
}

impl FileError {
    /// Always: a policy file is the caller's own text.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }

    /// The mistakes one by one; empty where the text is not TOML at all.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Toml { .. } => &[],
            Self::Problems(problems) => &problems.0,
        }
    }
}

/// The parser's message without the picture of the line, which would break the one sentence.
fn first_line(error: &toml::de::Error) -> String {
    error.message().lines().collect::<Vec<_>>().join(", ")
}
