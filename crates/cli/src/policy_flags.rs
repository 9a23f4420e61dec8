//! Policy fields as flags: every command that runs a policy takes the same ones.

use causeway_policy::{AccountLevel, Method, OnDisconnect, Peer, PolicyFile, Stage, Window};
use causeway_request::TokenId;

use crate::failure::Failure;
use form::FormFlags;

mod form;

/// Policy fields on the command line; each one overrides its field of the policy file.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyFlags {
    /// Follow another engine's order, windows and ties: vllm, sglang, llama.cpp, transformers,
    /// mistral.rs
    #[arg(long, value_name = "ENGINE", value_parser = peer)]
    like: Option<Peer>,
    /// Stages in the order they run, with commas
    #[arg(long, value_name = "STAGES", value_parser = order)]
    order: Option<Order>,
    #[command(flatten)]
    prompt: PromptFlags,
    #[command(flatten)]
    constraints: ConstraintFlags,
    #[command(flatten)]
    form: FormFlags,
    #[command(flatten)]
    shape: ShapeFlags,
    #[command(flatten)]
    run: RunFlags,
}

/// The texts around the request.
#[derive(Debug, Clone, Default, clap::Args)]
struct PromptFlags {
    /// A chat template in place of the model's own
    #[arg(long, value_name = "TEXT")]
    template: Option<String>,
    /// The system message
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The answer's first text
    #[arg(long, value_name = "TEXT")]
    prefill: Option<String>,
}

/// What may not be chosen, and what is made less likely.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Policy: constraints")]
struct ConstraintFlags {
    /// The only token ids allowed, with commas
    #[arg(long, value_name = "IDS", value_parser = ids)]
    allowed_tokens: Option<Ids>,
    /// Token ids never chosen
    #[arg(long, value_name = "IDS", value_parser = ids)]
    forbidden_tokens: Option<Ids>,
    /// A sequence of token ids never completed; may be given often
    #[arg(long, value_name = "IDS", value_parser = ids)]
    bad_words: Vec<Ids>,
    /// Added to logits: 12=1.5,13=-inf
    #[arg(long, value_name = "ID=BIAS", value_parser = biases, allow_hyphen_values = true)]
    logit_bias: Option<Biases>,
    /// Tokens before the run may end [default: 0]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    min_tokens: Option<u64>,
    /// Divides positive and multiplies negative logits of seen tokens [default: 1]
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    repetition_penalty: Option<f64>,
    /// Where it looks: all, output, or a number of last tokens
    #[arg(long, value_name = "WINDOW", value_parser = window)]
    repetition_window: Option<Window>,
    /// Off the logits of tokens that occur [default: 0]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    presence_penalty: Option<f64>,
    /// Off the logits of tokens, for each occurrence [default: 0]
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    frequency_penalty: Option<f64>,
    /// Where presence and frequency are counted: all, output, or a number of last tokens
    #[arg(long, value_name = "WINDOW", value_parser = window)]
    penalty_window: Option<Window>,
    /// Length of n-grams that may not repeat [default: 0, off]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    no_repeat_ngram: Option<u64>,
    /// Strength of the DRY repetition rule [default: 0, off]
    #[arg(long, value_name = "M", allow_negative_numbers = true)]
    dry_multiplier: Option<f64>,
    /// Growth of the DRY penalty per repeated token [default: 1.75]
    #[arg(long, value_name = "B", allow_negative_numbers = true)]
    dry_base: Option<f64>,
    /// Longest repeat that costs nothing [default: 2]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    dry_allowed_length: Option<u64>,
    /// Where DRY looks: all, output, or a number of last tokens
    #[arg(long, value_name = "WINDOW", value_parser = window)]
    dry_window: Option<Window>,
    /// A sequence of token ids that no repeat reaches across; may be given often
    #[arg(long, value_name = "IDS", value_parser = ids)]
    dry_breakers: Vec<Ids>,
}

/// What turns logits into a distribution.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Policy: shape")]
struct ShapeFlags {
    /// Divides the logits; 0 takes the best token [default: 1]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temperature: Option<f64>,
    /// Keeps the k best tokens [default: 0, off]
    #[arg(long, value_name = "K", value_parser = count, allow_negative_numbers = true)]
    top_k: Option<u64>,
    /// Keeps the smallest set with this mass [default: 1, off]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    top_p: Option<f64>,
    /// Keeps tokens of at least this share of the best one's probability [default: 0, off]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    min_p: Option<f64>,
    /// Keeps this mass of the tokens nearest to the entropy [default: 1, off]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    typical_p: Option<f64>,
    /// Keeps logits within this many standard deviations of the best [default: 0, off]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    top_n_sigma: Option<f64>,
    /// Keeps tokens of at least this probability [default: 0, off]
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon_cutoff: Option<f64>,
    /// The same, lowered where the entropy is high [default: 0, off]
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    eta_cutoff: Option<f64>,
}

/// How a token is taken, what ends a run, and how it is watched.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Policy: choice, stop and account")]
struct RunFlags {
    /// sample or greedy [default: sample]
    #[arg(long, value_name = "METHOD", value_parser = method)]
    method: Option<Method>,
    /// Fixes every draw
    #[arg(long, value_parser = count, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Most tokens to generate
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true,
          alias = "max-tokens")]
    tokens_max: Option<u64>,
    /// A text that ends the run; may be given often
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// Token ids that end the run
    #[arg(long, value_name = "IDS", value_parser = ids)]
    stop_tokens: Option<Ids>,
    /// Treat end-of-text as an ordinary token
    #[arg(long)]
    ignore_eos: bool,
    /// Where the model's reasoning begins
    #[arg(long, value_name = "TEXT")]
    reasoning_open: Option<String>,
    /// Where the model's reasoning ends
    #[arg(long, value_name = "TEXT")]
    reasoning_close: Option<String>,
    /// Most reasoning tokens
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    reasoning_tokens_max: Option<u64>,
    /// How much of each step is recorded: full or tokens [default: full]
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    account: Option<AccountLevel>,
    /// What becomes of an abandoned run: cancel or finish [default: cancel]
    #[arg(long, value_name = "WHAT", value_parser = on_disconnect)]
    on_disconnect: Option<OnDisconnect>,
}

/// A list in one argument; clap reads a bare `Vec` as one value per element.
#[derive(Debug, Clone)]
pub(crate) struct Ids(pub(crate) Vec<TokenId>);
#[derive(Debug, Clone)]
struct Order(Vec<Stage>);
#[derive(Debug, Clone)]
struct Biases(Vec<(TokenId, f64)>);

impl PolicyFlags {
    /// Whether a flag was given that means nothing without a draw, even with its default value.
    pub(crate) fn ask_for_a_draw(&self) -> bool {
        let ShapeFlags {
            temperature,
            top_k,
            top_p,
            min_p,
            typical_p,
            top_n_sigma,
            epsilon_cutoff,
            eta_cutoff,
        } = &self.shape;
        let numbers =
            [temperature, top_p, min_p, typical_p, top_n_sigma, epsilon_cutoff, eta_cutoff];
        numbers.into_iter().any(Option::is_some)
            || top_k.is_some()
            || self.run.method.is_some()
            || self.run.seed.is_some()
    }

    /// Whether a flag says how a token is taken.
    pub(crate) fn name_a_method(&self) -> bool {
        self.run.method.is_some()
    }

    /// Puts every flag given in place of its field, and checks the whole.
    pub(crate) fn apply(&self, file: &mut PolicyFile) -> Result<(), Failure> {
        let Self { like, order, prompt, constraints, form, shape, run } = self;
        file.like = like.or(file.like);
        if let Some(Order(order)) = order {
            file.order = Some(order.clone());
        }
        prompt.apply(file);
        constraints.apply(file);
        form.apply(file)?;
        shape.apply(file);
        run.apply(file);
        file.check().map_err(Failure::caller)
    }
}

/// Replaces a value where another is given.
fn set<T: Clone>(field: &mut T, given: Option<&T>) {
    if let Some(value) = given {
        field.clone_from(value);
    }
}

/// The same for a field that may be unset.
fn set_some<T: Clone>(field: &mut Option<T>, given: Option<&T>) {
    if given.is_some() {
        *field = given.cloned();
    }
}

impl PromptFlags {
    fn apply(&self, file: &mut PolicyFile) {
        let Self { template, system, prefill } = self;
        set_some(&mut file.prompt.template, template.as_ref());
        set_some(&mut file.prompt.system, system.as_ref());
        set_some(&mut file.prompt.prefill, prefill.as_ref());
    }
}

impl ConstraintFlags {
    fn apply(&self, file: &mut PolicyFile) {
        let to = &mut file.constraints;
        set(&mut to.allowed_tokens, self.allowed_tokens.as_ref().map(|ids| &ids.0));
        set(&mut to.forbidden_tokens, self.forbidden_tokens.as_ref().map(|ids| &ids.0));
        let lists = |lists: &[Ids]| lists.iter().map(|ids| ids.0.clone()).collect::<Vec<_>>();
        if !self.bad_words.is_empty() {
            to.bad_words = lists(&self.bad_words);
        }
        set(&mut to.logit_bias, self.logit_bias.as_ref().map(|biases| &biases.0));
        set(&mut to.min_tokens, self.min_tokens.as_ref());
        set(&mut to.repetition_penalty, self.repetition_penalty.as_ref());
        set_some(&mut to.repetition_window, self.repetition_window.as_ref());
        set(&mut to.presence_penalty, self.presence_penalty.as_ref());
        set(&mut to.frequency_penalty, self.frequency_penalty.as_ref());
        set_some(&mut to.penalty_window, self.penalty_window.as_ref());
        set(&mut to.no_repeat_ngram, self.no_repeat_ngram.as_ref());
        set(&mut to.dry.multiplier, self.dry_multiplier.as_ref());
        set(&mut to.dry.base, self.dry_base.as_ref());
        set(&mut to.dry.allowed_length, self.dry_allowed_length.as_ref());
        set_some(&mut to.dry.window, self.dry_window.as_ref());
        if !self.dry_breakers.is_empty() {
            to.dry.breakers = lists(&self.dry_breakers);
        }
    }
}

impl ShapeFlags {
    fn apply(&self, file: &mut PolicyFile) {
        let to = &mut file.shape;
        set(&mut to.temperature, self.temperature.as_ref());
        set(&mut to.top_k, self.top_k.as_ref());
        set(&mut to.top_p, self.top_p.as_ref());
        set(&mut to.min_p, self.min_p.as_ref());
        set(&mut to.typical_p, self.typical_p.as_ref());
        set(&mut to.top_n_sigma, self.top_n_sigma.as_ref());
        set(&mut to.epsilon_cutoff, self.epsilon_cutoff.as_ref());
        set(&mut to.eta_cutoff, self.eta_cutoff.as_ref());
    }
}

impl RunFlags {
    fn apply(&self, file: &mut PolicyFile) {
        set(&mut file.choose.method, self.method.as_ref());
        set_some(&mut file.choose.seed, self.seed.as_ref());
        set_some(&mut file.stop.tokens_max, self.tokens_max.as_ref());
        if !self.stop.is_empty() {
            file.stop.strings.clone_from(&self.stop);
        }
        set(&mut file.stop.tokens, self.stop_tokens.as_ref().map(|ids| &ids.0));
        file.stop.ignore_eos |= self.ignore_eos;
        set_some(&mut file.reasoning.open, self.reasoning_open.as_ref());
        set_some(&mut file.reasoning.close, self.reasoning_close.as_ref());
        set_some(&mut file.reasoning.tokens_max, self.reasoning_tokens_max.as_ref());
        set(&mut file.operation.account, self.account.as_ref());
        set(&mut file.operation.on_disconnect, self.on_disconnect.as_ref());
    }
}

fn peer(text: &str) -> Result<Peer, String> {
    let names = || Peer::ALL.map(Peer::name).join(", ");
    Peer::from_name(text).ok_or_else(|| format!("must be one of {}", names()))
}

fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}

fn order(text: &str) -> Result<Order, String> {
    let stage =
        |name: &str| Stage::from_name(name).ok_or_else(|| format!("there is no stage `{name}`"));
    text.split(',').map(|name| stage(name.trim())).collect::<Result<_, _>>().map(Order)
}

/// Token ids with commas.
pub(crate) fn ids(text: &str) -> Result<Ids, String> {
    let id = |part: &str| {
        part.trim().parse().map(TokenId).map_err(|_| format!("`{}` is no token id", part.trim()))
    };
    text.split(',').map(id).collect::<Result<_, _>>().map(Ids)
}

fn biases(text: &str) -> Result<Biases, String> {
    let bias = |part: &str| {
        let pair = part.split_once('=');
        let parsed = pair.and_then(|(id, bias)| {
            Some((TokenId(id.trim().parse().ok()?), bias.trim().parse::<f64>().ok()?))
        });
        parsed.ok_or_else(|| format!("`{part}` is not of the form ID=BIAS"))
    };
    text.split(',').map(bias).collect::<Result<_, _>>().map(Biases)
}

fn window(text: &str) -> Result<Window, String> {
    match text {
        "all" => Ok(Window::All),
        "output" => Ok(Window::Output),
        _ => text.parse().map(Window::Last).map_err(|_| "must be all, output or a number".into()),
    }
}

fn method(text: &str) -> Result<Method, String> {
    one_of(text, &[("sample", Method::Sample), ("greedy", Method::Greedy)])
}

fn level(text: &str) -> Result<AccountLevel, String> {
    one_of(text, &[("full", AccountLevel::Full), ("tokens", AccountLevel::Tokens)])
}

fn on_disconnect(text: &str) -> Result<OnDisconnect, String> {
    one_of(text, &[("cancel", OnDisconnect::Cancel), ("finish", OnDisconnect::Finish)])
}

fn one_of<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let names = || words.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or ");
    let found = words.iter().find(|(name, _)| *name == text);
    found.map(|&(_, value)| value).ok_or_else(|| format!("must be {}", names()))
}
