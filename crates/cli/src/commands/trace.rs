//! `causeway trace`: show every decoding step of a run as two tables.

use std::io::{self, Write as _};

use causeway_request::{StepOutput, TokenId};
use causeway_text::DetokenizeOptions;

use super::run::{self, account_line};
use super::tokenize::{failure, open};
use crate::failure::{Failure, Outcome};
use crate::generate::Watcher;

/// Arguments of `causeway trace`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    ask: run::Ask,
    /// Also the probability, rank, survivors and runner-up of each token.
    #[arg(long)]
    probs: bool,
}

/// Characters of a sequence that fit into a column; the newest are shown.
const SHOWN: usize = 44;

/// Keeps what the tables show.
#[derive(Default)]
struct Steps {
    steps: Vec<(StepOutput, String)>,
}

impl Watcher for Steps {
    fn step(&mut self, output: &StepOutput, piece: &[u8]) -> Result<(), Failure> {
        let piece = String::from_utf8_lossy(piece).into_owned();
        self.steps.push((output.clone(), piece));
        Ok(())
    }

    fn text(&mut self, _text: &str) -> Result<(), Failure> {
        Ok(())
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let mut steps = Steps::default();
    let record = run::answer(&args.ask, &mut steps)?;
    let effective = &record.start.request.effective;
    let prompt = effective.prompt_tokens.len();
    let prefilled = effective.prefilled_tokens.len();
    let shown_prompt = effective.prompt.clone().unwrap_or_else(|| {
        let ids: Vec<String> = effective.prompt_tokens.iter().map(u32::to_string).collect();
        ids.join(" ")
    });
    let prefill = prefill_text(&args.ask.model.model, &effective.prefilled_tokens)?;
    let mut page = String::new();
    over_what(&steps.steps, &(shown_prompt + &prefill), prompt + prefilled, &mut page);
    page.push('\n');
    prefixes(&steps.steps, prompt, (prefilled, &prefill), &mut page);
    if args.probs {
        page.push('\n');
        probabilities(&steps.steps, &mut page);
    }
    io::stdout().write_all(page.as_bytes())?;
    eprintln!("{}{}", account_line(&record), args.ask.kept(&record));
    run::ended_well(&record)
}

/// The text that a response prefill put before the first step.
fn prefill_text(model: &str, tokens: &[u32]) -> Result<String, Failure> {
    if tokens.is_empty() {
        return Ok(String::new());
    }
    let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId).collect();
    let options = DetokenizeOptions { show_control: true, continues: true };
    open(model)?.tokenizer.decode(&tokens, options).map_err(failure)
}

/// Per step: what the forward pass runs over, the token chosen, the sequence so far.
fn over_what(steps: &[(StepOutput, String)], prompt: &str, known: usize, page: &mut String) {
    let title = row([
        "step".to_owned(),
        "forward pass over".to_owned(),
        "token".to_owned(),
        "sequence so far".to_owned(),
    ]);
    page.push_str(&title);
    let mut sequence = prompt.to_owned();
    for (index, (output, piece)) in steps.iter().enumerate() {
        let over = if index == 0 {
            format!("{known} known tokens")
        } else {
            format!("1 new token ({} before it)", known + index - 1)
        };
        sequence.push_str(piece);
        let token = format!("{} {piece:?}", output.choice.token);
        page.push_str(&row([output.step.to_string(), over, token, newest(&sequence)]));
    }
}

/// Per step: prompt tokens, prefix tokens, and the prefix.
///
/// The prefix begins with the response prefill, given as its tokens' number and its text.
fn prefixes(
    steps: &[(StepOutput, String)],
    prompt: usize,
    (prefilled, prefill): (usize, &str),
    page: &mut String,
) {
    let title = ["step", "prompt tokens", "prefix tokens", "generation prefix"];
    page.push_str(&row(title.map(str::to_owned)));
    let mut prefix = prefill.to_owned();
    for (index, (output, piece)) in steps.iter().enumerate() {
        prefix.push_str(piece);
        let count = prefilled + index + 1;
        let cells =
            [output.step.to_string(), prompt.to_string(), count.to_string(), newest(&prefix)];
        page.push_str(&row(cells));
    }
}

/// Per step: how sure the model and the policy were, and what came second.
fn probabilities(steps: &[(StepOutput, String)], page: &mut String) {
    page.push_str(&format!(
        "{:<6}{:>12}{:>12}{:>7}{:>11}{:>10}  {}\n",
        "step", "model p", "policy p", "rank", "survivors", "entropy", "runner-up"
    ));
    for (output, _) in steps {
        let choice = &output.choice;
        let runner_up = choice.runner_up.map_or_else(
            || "-".to_owned(),
            |(token, probability)| format!("{token} at {probability:.6}"),
        );
        let removed = choice.removed_by.map_or_else(String::new, |stage| {
            format!("; the best token {} was removed by {stage}", choice.raw_best)
        });
        page.push_str(&format!(
            "{:<6}{:>12.6}{:>12.6}{:>7}{:>11}{:>10.4}  {runner_up}{removed}\n",
            output.step,
            libm::exp(choice.logprob),
            choice.probability,
            choice.rank,
            choice.survivors,
            choice.entropy,
        ));
    }
}

fn row([step, over, token, sequence]: [String; 4]) -> String {
    format!("{step:<6}{over:<30}{token:<24}{sequence}\n")
}

/// The end of a text, on one line.
fn newest(text: &str) -> String {
    let (mut tail, mut shown) = (Vec::new(), 0);
    for c in text.chars().rev() {
        let escaped = c.escape_debug();
        shown += escaped.len();
        if shown > SHOWN {
            tail.push("…".to_owned());
            break;
        }
        tail.push(escaped.to_string());
    }
    tail.reverse();
    tail.concat()
}
