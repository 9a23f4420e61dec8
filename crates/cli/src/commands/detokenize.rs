//! `causeway detokenize`: turn token ids into text.

use std::io::Write as _;

use anyhow::Context as _;
use causeway_request::TokenId;
use causeway_text::DetokenizeOptions;
use serde::Deserialize;
use serde_json::json;

use super::tokenize::{answer_lines, failure, open};
use crate::failure::{Failure, Outcome};

/// Arguments of `causeway detokenize`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Token ids, separated by spaces or commas.
    #[arg(conflicts_with = "json", required_unless_present = "json")]
    ids: Vec<String>,
    /// Model name, .gguf file or folder.
    #[arg(short, long, default_value = causeway_models::DEFAULT_MODEL)]
    model: String,
    /// Read `{"ids": […]}` from stdin, one a line, and write `{"text": …}`.
    #[arg(long)]
    json: bool,
    /// Leave control tokens out of the text.
    #[arg(long)]
    skip_special: bool,
}

/// One line of input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    ids: Vec<u32>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let text = open(&args.model)?;
    let options = DetokenizeOptions { show_control: !args.skip_special, continues: false };
    let decode = |ids: Vec<u32>| {
        let tokens: Vec<TokenId> = ids.into_iter().map(TokenId).collect();
        text.tokenizer.decode(&tokens, options)
    };
    if args.json {
        return answer_lines(|line| {
            let Line { ids } = serde_json::from_str(line)?;
            Ok(json!({ "text": decode(ids)? }))
        });
    }
    let ids = args.ids.iter().flat_map(|ids| ids.split([',', ' ']));
    let ids = ids
        .filter(|id| !id.is_empty())
        .map(|id| id.parse::<u32>().with_context(|| format!("`{id}` is not a token id")));
    let ids: Vec<u32> = ids.collect::<Result<_, _>>().map_err(Failure::caller)?;
    let decoded = decode(ids).map_err(failure)?;
    writeln!(std::io::stdout().lock(), "{decoded}")?;
    Ok(())
}
