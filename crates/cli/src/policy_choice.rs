//! Which policy a command runs under: a file, the model's own or none, and flags over it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use causeway_policy::{Method, PolicyFile};
use causeway_session::{Defaults, Loaded, Opening};
use causeway_text::{NoTemplate, Templates};
use causeway_weights::ModelFile;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::failure::Failure;
use crate::loaded::session_failure;
use crate::policy_flags::PolicyFlags;

/// What flags and requests go over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Base {
    /// What the model's own file says of decoding.
    Model,
    /// Neither that nor a file.
    Nothing,
    File(PathBuf),
}

impl Base {
    /// Reads `model`, `none` or the path of a file; one of that name is `./model`.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().map(|text: OsString| match text.to_str() {
            Some("model") => Self::Model,
            Some("none") => Self::Nothing,
            _ => Self::File(text.into()),
        })
    }

    /// The policy file, where there is one.
    pub(crate) fn file(&self) -> Result<Option<PolicyFile>, Failure> {
        match self {
            Self::Model | Self::Nothing => Ok(None),
            Self::File(path) => read(path).map(Some),
        }
    }
}

/// A policy, and single fields over it.
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyChoice {
    /// Policy file; or `model`, what the model's file says of decoding; or `none`, neither. Where
    /// nothing says so and no flag asks for a draw, the answer is greedy.
    #[arg(long = "policy", value_name = "FILE", default_value = "model",
          value_parser = Base::parser())]
    base: Base,
    /// The model's chat template of this name [default: `tool_use` for chats with tools where
    /// there is one, else `default`].
    #[arg(long, value_name = "NAME", conflicts_with = "template")]
    chat_template: Option<String>,
    #[command(flatten)]
    flags: PolicyFlags,
}

/// The policy of a run.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) file: PolicyFile,
    /// The request's seed.
    pub(crate) seed: Option<u64>,
}

impl PolicyChoice {
    /// The effective policy as far as it is known before a model is loaded: what no model would
    /// put right is refused here. A policy file is read once, since it may be a pipe.
    pub(crate) fn early(&self) -> Result<Chosen, Failure> {
        self.over(self.base.file()?, &Defaults::default())
    }

    /// The effective policy for a model: the base's fields and then the flags'. Says on stderr
    /// what was taken from the model's file.
    pub(crate) fn for_model(&self, early: Chosen, loaded: &Loaded) -> Result<Chosen, Failure> {
        let defaults = match self.base {
            Base::Model => {
                let text = loaded.text.as_ref();
                Defaults::decoding(&loaded.file, text).map_err(session_failure)?
            }
            Base::Nothing | Base::File(_) => Defaults::default(),
        };
        let mut chosen = early;
        if defaults.policy().is_some() {
            let beneath = "beside what the model's file says, which `--policy none` leaves out";
            let over = self.over(None, &defaults);
            chosen = over.map_err(|failure| failure.within(beneath.to_owned()))?;
        }
        if let Some(name) = &self.chat_template {
            let text = loaded.text.as_ref().ok_or(NoTemplate::None).map_err(Failure::caller)?;
            let source = text.templates().named(name).map_err(Failure::caller)?;
            chosen.file.prompt.template = Some(source.to_owned());
        }
        if let Some(notice) = defaults.notice(&chosen.file) {
            eprintln!("causeway: {notice}");
        }
        Ok(chosen)
    }

    /// The flags over the base.
    ///
    /// A seed is the policy's only where the policy file fixes one: otherwise it belongs to the
    /// request, and runs of other seeds are runs of the same policy.
    fn over(&self, given: Option<PolicyFile>, defaults: &Defaults) -> Result<Chosen, Failure> {
        let is_given = given.is_some();
        let mut file = given.or_else(|| defaults.policy()).unwrap_or_default();
        let fixes_a_seed = file.choose.seed.is_some();
        self.flags.apply(&mut file)?;
        if !is_given && !self.flags.name_a_method() {
            let own = defaults.method().unwrap_or(Method::Greedy);
            let draws = self.flags.ask_for_a_draw();
            file.choose.method = if draws { Method::Sample } else { own };
        }
        file.check().map_err(Failure::caller)?;
        let seed = if !fixes_a_seed { file.choose.seed.take() } else { None };
        Ok(Chosen { file, seed })
    }
}

/// The policy that requests to a served model begin with where no policy file is given; says on
/// stderr what it took from the model's file.
///
/// A file that cannot be read has none: loading it says why.
pub(crate) fn of_served(
    base: &Base,
    opening: &Opening,
    chat_template: Option<&str>,
) -> Result<Option<PolicyFile>, Failure> {
    let Ok(file) = ModelFile::open(&opening.path) else { return Ok(None) };
    let defaults = match base {
        Base::Model => Defaults::of_file(&file).unwrap_or_default(),
        Base::Nothing | Base::File(_) => Defaults::default(),
    };
    let mut own = defaults.policy();
    if let Some(notice) = defaults.notice(&own.clone().unwrap_or_default()) {
        eprintln!("{}: {notice}", opening.name);
    }
    if let Some(name) = chat_template {
        let of_model = |failure: Failure| failure.within(format!("model `{}`", opening.name));
        let templates = Templates::of(&file).map_err(|error| session_failure(error.into()));
        let templates = templates.map_err(of_model)?;
        let source = templates.named(name).map_err(Failure::caller).map_err(of_model)?;
        own.get_or_insert_default().prompt.template = Some(source.to_owned());
    }
    Ok(own)
}

/// Largest policy file: templates are at most 1 MiB, and a file holds few long texts.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads a policy file.
pub(crate) fn read(path: &Path) -> Result<PolicyFile, Failure> {
    PolicyFile::from_toml(&text(path, "policy")?)
        .with_context(|| format!("policy `{}`", path.display()))
        .map_err(Failure::caller)
}

/// The text of a policy file, or of another one that a policy has; one that is not there is the
/// caller's mistake.
pub(crate) fn text(path: &Path, what: &str) -> Result<String, Failure> {
    let name = path.display();
    let unreadable = |error: io::Error| {
        let is_callers_mistake = error.kind() == io::ErrorKind::NotFound;
        let error = anyhow::Error::new(error);
        Failure::of(error.context(format!("cannot read the {what} `{name}`")), is_callers_mistake)
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let sentence = anyhow!("the {what} `{name}` has more than {FILE_BYTES_MAX} bytes");
        return Err(Failure::caller(sentence));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::caller(anyhow!("the {what} `{name}` is not UTF-8 text")))
}
