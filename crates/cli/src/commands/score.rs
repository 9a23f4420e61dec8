//! `causeway score`: log-likelihood and bits per byte of a text.

use std::io::{Read as _, Write as _};

use causeway_request::TokenId;
use causeway_session::Loaded;
use serde_json::json;

use super::logits::{each_row, log_sum_exp};
use super::tokenize::answer_lines;
use crate::failure::{Failure, Outcome};
use crate::loaded::ModelFlags;

/// Arguments of `causeway score`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelFlags,
    /// The text; read from stdin where it is absent.
    #[arg(conflicts_with = "json")]
    text: Option<String>,
    /// Read `{"text": …}` from stdin, one a line, and write `{"tokens", "nats", "bits_per_byte"}`.
    #[arg(long)]
    json: bool,
}

/// One line of input.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    text: String,
}

/// How likely a text is.
struct Score {
    /// Tokens, BOS among them where the model has one.
    tokens: usize,
    /// `-sum of ln p(token | tokens before it)`, the first token left out.
    nats: f64,
    /// `nats / ln 2 / bytes` of all tokens but the first; nothing where there are none.
    bits_per_byte: Option<f64>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let loaded = args.model.open()?;
    let chunk = args.model.chunk()?.min(128);
    if args.json {
        return answer_lines(|line| {
            let Line { text } = serde_json::from_str(line)?;
            let Score { tokens, nats, bits_per_byte } = score(&loaded, &text, chunk)?;
            Ok(json!({ "tokens": tokens, "nats": nats, "bits_per_byte": bits_per_byte }))
        });
    }
    let text = match &args.text {
        Some(text) => text.clone(),
        None => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
    };
    let Score { tokens, nats, bits_per_byte } =
        score(&loaded, &text, chunk).map_err(Failure::caller)?;
    let bits = bits_per_byte.map_or_else(|| "-".to_owned(), |bits| format!("{bits:.4}"));
    writeln!(std::io::stdout(), "tokens {tokens}  nats {nats:.4}  bits per byte {bits}")?;
    Ok(())
}

fn score(loaded: &Loaded, text: &str, chunk: usize) -> anyhow::Result<Score> {
    let tokenizer = &loaded.text()?.tokenizer;
    let mut tokens = tokenizer.encode(text, false, false)?;
    if tokenizer.adds_bos()
        && let Some(bos) = tokenizer.special().bos
    {
        tokens.insert(0, TokenId(bos));
    }
    anyhow::ensure!(!tokens.is_empty(), "the text is empty: at least one token is needed");
    let mut nats = 0.0;
    each_row(&loaded.model, &tokens, chunk, |position, row| {
        if let Some(next) = tokens.get(position + 1) {
            nats += log_sum_exp(row) - f64::from(row[next.index()]);
        }
        Ok(())
    })
    .map_err(|failure| match failure {
        Failure::Caller(error) | Failure::World(error) => error,
        other => anyhow::anyhow!("{other:?}"),
    })?;
    let piece = |token: &TokenId| tokenizer.piece(*token).map_or(0, <[u8]>::len);
    let bytes: usize = tokens[1..].iter().map(piece).sum();
    #[expect(clippy::cast_precision_loss, reason = "texts are far below 2^53 bytes")]
    let per_byte = |bytes: usize| nats / std::f64::consts::LN_2 / bytes as f64;
    let bits_per_byte = (bytes > 0).then(|| per_byte(bytes));
    Ok(Score { tokens: tokens.len(), nats, bits_per_byte })
}
