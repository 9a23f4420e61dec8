//! Pre-tokenizers by name: where a byte-level vocabulary cuts text into words.

use std::ops::Range;

use regex::Regex;

use crate::error::VocabularyError;

/// Contractions in either case: ASCII letters only, so that `'\u{17f}` is none.
macro_rules! contractions {
    () => {
        r"'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"
    };
}

/// GPT-2's contractions and classes; the white-space run that ends it is `WHITE`'s.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";
const DIGIT: &str = r"\p{N}";
const DIGITS_TO_3: &str = r"\p{N}{1,3}";
const QWEN2: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const QWEN35: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}",
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const LLAMA3: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const BAILING: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+"
);
const SEED: &str = concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+"
);
/// Words of one case: capitals first, then small letters, as tekken and GPT-4o cut them.
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+"
);
const GPT4O: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    "(?:",
    contractions!(),
    ")?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    "(?:",
    contractions!(),
    ")?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+"
);
const CHINESE_KANA: &str = r"[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+";
const DEEPSEEK_V3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+"
);
/// From U+4E00 to U+9FA5 and from U+0800 to U+4E00, and Hangul: the ranges the model was made with.
const DEEPSEEK_ASIAN: &str = r"[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]+";
const NOT_PUNCTUATION: &str = r" ?[^(\s|.,!?…。，、।۔،)]+";

/// Names of one pre-tokenizer, its expressions in the order they cut, and two habits of it.
struct Entry {
    names: &'static [&'static str],
    expressions: &'static [&'static str],
    /// A word that is a token stays whole, without looking at the merges.
    whole_words: bool,
    /// BOS is added where the file does not say.
    adds_bos: bool,
}

const fn plain(names: &'static [&'static str], expressions: &'static [&'static str]) -> Entry {
    Entry { names, expressions, whole_words: false, adds_bos: false }
}

const fn whole(names: &'static [&'static str], expressions: &'static [&'static str]) -> Entry {
    Entry { names, expressions, whole_words: true, adds_bos: true }
}

/// Names as `tokenizer.ggml.pre` spells them. White space before `(?!\S)` is `Cut::trims`' work.
const ENTRIES: &[Entry] = &[
    plain(&["default"], &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]),
    plain(
        &[
            "gpt-2",
            "gpt2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "jina-es",
            "jina-de",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v2-code",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "trillion",
            "exaone4",
            "granite-docling",
        ],
        &[GPT2],
    ),
    plain(
        &[
            "smollm",
            "starcoder",
            "refact",
            "granite",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
        ],
        &[DIGIT, GPT2],
    ),
    plain(&["falcon"], &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
    plain(&["qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan"], &[QWEN2]),
    plain(&["qwen35"], &[QWEN35]),
    plain(&["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"], &[LLAMA3]),
    whole(
        &["llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "lfm2"],
        &[LLAMA3],
    ),
    whole(&["tekken"], &[TEKKEN]),
    plain(&["gpt-4o", "llama4"], &[GPT4O]),
    plain(&["bailingmoe", "bailingmoe2", "llada-moe"], &[BAILING]),
    plain(&["seed-coder"], &[SEED]),
    plain(&["deepseek-coder"], &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_ASIAN, DIGIT]),
    plain(
        &["deepseek-v3", "hunyuan-dense", "joyai-llm"],
        &[DIGITS_TO_3, CHINESE_KANA, DEEPSEEK_V3],
    ),
    plain(&["bloom", "poro-chat", "gpt3-finnish"], &[NOT_PUNCTUATION]),
    plain(&["viking"], &[NOT_PUNCTUATION, DIGIT]),
];

/// One expression and whether it leaves the last space of a run to the next word.
#[derive(Debug)]
struct Cut {
    expression: Regex,
    /// The expression ends in `\s+`, which stands for `\s+(?!\S)|\s+`.
    trims: bool,
    /// White space that ends in a line break is another alternative's and stays whole.
    keeps_lines: bool,
}

/// Cuts text into words, in time linear in the text.
#[derive(Debug)]
pub(crate) struct PreTokenizer {
    cuts: Vec<Cut>,
    pub(crate) whole_words: bool,
}

/// Whether a byte-level vocabulary with this pre-tokenizer adds BOS where its file is silent.
pub(crate) fn adds_bos(name: &str) -> bool {
    find(name).is_some_and(|entry| entry.adds_bos)
}

fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.names.contains(&name))
}

impl PreTokenizer {
    /// The pre-tokenizer of that name.
    pub(crate) fn named(name: &str) -> Result<Self, VocabularyError> {
        let entry =
            find(name).ok_or_else(|| VocabularyError::PreTokenizer { name: name.to_owned() })?;
        let cuts = entry.expressions.iter().map(|expression| Cut::new(expression)).collect();
        Ok(Self { cuts, whole_words: entry.whole_words })
    }

    /// The words of `text`, in order; together they are the whole text.
    pub(crate) fn words(&self, text: &str) -> Vec<Range<usize>> {
        let whole = 0..text.len();
        let mut words = if text.is_empty() { Vec::new() } else { vec![whole] };
        for cut in &self.cuts {
            let mut finer = Vec::with_capacity(words.len());
            for word in words {
                cut.apply(&text[word.clone()], word.start, &mut finer);
            }
            words = finer;
        }
        words
    }
}

impl Cut {
    fn new(expression: &str) -> Self {
        Self {
            expression: Regex::new(expression).expect("the table's expressions are valid"),
            trims: expression.ends_with(r"|\s+"),
            keeps_lines: expression.contains(r"\s*[\r\n]"),
        }
    }

    /// Appends the matches and the gaps between them, shifted by `offset`.
    fn apply(&self, text: &str, offset: usize, words: &mut Vec<Range<usize>>) {
        let mut done = 0;
        while done < text.len() {
            let Some(found) = self.expression.find_at(text, done) else { break };
            let end = self.end_of(text, found.start(), found.end());
            if found.start() > done {
                words.push(offset + done..offset + found.start());
            }
            words.push(offset + found.start()..offset + end);
            done = end;
        }
        if done < text.len() {
            words.push(offset + done..offset + text.len());
        }
    }

    /// Where a match ends: a run of white space before a word gives its last space to the word.
    ///
    /// This is `\s+(?!\S)|\s+` without a look-ahead, which a linear-time engine does not have:
    /// the run is greedy, so only its last character can be given back.
    fn end_of(&self, text: &str, start: usize, end: usize) -> usize {
        let run = &text[start..end];
        let last = run.chars().next_back().map_or(0, char::len_utf8);
        let is_line = self.keeps_lines && run.ends_with(['\r', '\n']);
        let gives_back = self.trims
            && end < text.len()
            && run.len() > last
            && !is_line
            && run.chars().all(char::is_whitespace);
        if gives_back { end - last } else { end }
    }
}

#[cfg(test)]
mod tests;
