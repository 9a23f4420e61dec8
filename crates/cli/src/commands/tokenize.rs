//! `causeway tokenize`: turn text into token ids.

use std::io::{BufRead as _, Read as _, Write as _};

use anyhow::Context as _;
use causeway_text::{Text, TextError};
use causeway_weights::ModelFile;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::model_path;

/// Most bytes of one line of JSON.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// Arguments of `causeway tokenize`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The text; read from stdin where it is absent.
    #[arg(conflicts_with = "json")]
    text: Option<String>,
    /// Model name, .gguf file or folder.
    #[arg(short, long, default_value = causeway_models::DEFAULT_MODEL)]
    model: String,
    /// Read `{"text": …}` from stdin, one a line, and write `{"ids": […]}`.
    #[arg(long)]
    json: bool,
    /// Control tokens spelled in the text become those tokens.
    #[arg(long)]
    special: bool,
    /// Add BOS and EOS as the model says.
    #[arg(long)]
    add_special: bool,
    /// One token a line, with the text it stands for.
    #[arg(long, conflicts_with = "json")]
    pieces: bool,
}

/// One line of input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: String,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let text = open(&args.model)?;
    let encode = |input: &str| text.tokenizer.encode(input, args.special, args.add_special);
    if args.json {
        return answer_lines(|line| {
            let Line { text } = serde_json::from_str(line)?;
            let tokens = encode(&text)?;
            Ok(json!({ "ids": tokens.iter().map(|token| token.0).collect::<Vec<_>>() }))
        });
    }
    let tokens = encode(&given_or_stdin(args.text.as_deref())?).map_err(failure)?;
    let mut out = std::io::stdout().lock();
    if args.pieces {
        for token in tokens {
            let piece = text.tokenizer.piece(token).map_err(failure)?;
            writeln!(out, "{token}\t{:?}", String::from_utf8_lossy(piece))?;
        }
    } else {
        let ids: Vec<String> = tokens.iter().map(ToString::to_string).collect();
        writeln!(out, "{}", ids.join(" "))?;
    }
    Ok(())
}

/// The text side of the model that `name` means.
pub(super) fn open(name: &str) -> Result<Text, Failure> {
    let path = model_path::resolve(name)?;
    if path.is_dir() {
        return Text::from_folder(&path).map_err(failure);
    }
    let model = ModelFile::open(&path).map_err(|error| {
        let is_callers_mistake = error.is_callers_mistake();
        Failure::of(error, is_callers_mistake)
    })?;
    Text::open(&model).map_err(failure)
}

/// Whose mistake an error of the text room is.
pub(super) fn failure(error: TextError) -> Failure {
    let is_callers_mistake = error.is_callers_mistake();
    Failure::of(error, is_callers_mistake)
}

/// The argument, or all of stdin.
fn given_or_stdin(given: Option<&str>) -> Result<String, Failure> {
    if let Some(text) = given {
        return Ok(text.to_owned());
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(LINE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LINE_BYTES_MAX {
        return Err(too_long());
    }
    String::from_utf8(bytes).context("stdin is not valid UTF-8").map_err(Failure::caller)
}

/// Answers stdin line by line: what `answer` gives, or `{"error": …}`.
///
/// A line that cannot be answered does not end the run; the exit code at the end is 2.
pub(super) fn answer_lines(answer: impl Fn(&str) -> anyhow::Result<Value>) -> Outcome {
    let mut input = std::io::stdin().lock();
    let mut out = std::io::stdout().lock();
    let (mut lines, mut refused) = (0_u64, 0_u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() as u64 > LINE_BYTES_MAX {
            return Err(too_long());
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        lines += 1;
        let text = std::str::from_utf8(&line).context("the line is not valid UTF-8");
        let answered = text.and_then(&answer).unwrap_or_else(|error| {
            refused += 1;
            json!({ "error": format!("{error:#}") })
        });
        serde_json::to_writer(&mut out, &answered).map_err(std::io::Error::from)?;
        writeln!(out)?;
        out.flush()?;
    }
    if refused > 0 {
        return Err(Failure::caller(anyhow::anyhow!("{refused} of {lines} lines were refused")));
    }
    Ok(())
}

fn too_long() -> Failure {
    Failure::caller(anyhow::anyhow!("the input is longer than the limit of {LINE_BYTES_MAX} bytes"))
}
