//! Names of pre-tokenizers, the expressions behind each and two habits of them.

/// What one pass over the words does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// Each match is a word, and what lies between two is one.
    ///
    /// An expression that ends in `|\s+` means `|\s+(?!\S)|\s+`, which needs a look-ahead.
    Match(&'static str),
    /// As `Match`, but a run of white space is cut by the largest of 512, 256 … 4, 2, 1 that
    /// leaves some of it behind.
    Ladder(&'static str),
    /// Runs of the expression are cut into threes from their end.
    Threes { run: &'static str, edges: Edges },
}

/// What becomes of the two ends of a run that is cut into threes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edges {
    /// The run is cut off from what stands around it.
    Cut,
    /// As `Cut`, but a run before any other number stays whole: the models' expressions end in
    /// `\b`, which has numbers that are no digits for parts of a word, as this one has not.
    CutAtWordEnd,
    /// Nothing is cut but before a three.
    Joined,
}

use Rule::{Ladder, Match, Threes};

/// Contractions in either case, as `(?i:…)` of the models' own files has them.
macro_rules! contractions {
    () => {
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    };
}

/// Words with one leading sign, then digits, signs with line breaks, line breaks, white space.
macro_rules! words {
    ($digits:literal) => {
        concat!(r"[^\r\n\p{L}\p{N}]?\p{L}+|", $digits, r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+")
    };
}

/// Words of one case: capitals first, then small letters; `$less` narrows both classes.
macro_rules! cased {
    ($digits:literal, $contraction:expr, $breaks:literal, $less:literal) => {
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}",
            $less,
            r"]*[\p{Ll}\p{Lm}\p{Lo}\p{M}",
            $less,
            "]+",
            $contraction,
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}",
            $less,
            r"]+[\p{Ll}\p{Lm}\p{Lo}\p{M}",
            $less,
            "]*",
            $contraction,
            "|",
            $digits,
            r"| ?[^\s\p{L}\p{N}]+",
            $breaks,
            r"|\s*[\r\n]+|\s+"
        )
    };
}

/// GPT-2's contractions and classes.
const GPT2: Rule = Match(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+");
const DIGIT: Rule = Match(r"\p{N}");
const DIGITS: Rule = Match(r"\p{N}+");
const DIGITS_TO_3: Rule = Match(r"\p{N}{1,3}");
const THREE_DIGITS: Rule = Match("[0-9][0-9][0-9]");
const LINES: Rule = Match(r"[^\n]+|[\n]+");
const QWEN2: Rule = Match(concat!(contractions!(), "|", words!(r"\p{N}")));
const QWEN35: Rule = Match(concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}",
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
));
const LLAMA3_TEXT: &str = concat!(contractions!(), "|", words!(r"\p{N}{1,3}"));
const LLAMA3: Rule = Match(LLAMA3_TEXT);
const MINICPM5: Rule = Match(concat!(contractions!(), "|", words!(r"\p{N}+")));
/// Without contractions: a Turkish suffix stays with its apostrophe.
const UFAKZEKA: Rule = Match(words!(r"\p{N}"));
const BAILING: Rule = Match(concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+"
));
const SEED: Rule = Match(concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+"
));
/// Several words are one, as long as single spaces stand between them.
const EXAONE_MOE: Rule = Match(concat!(
    contractions!(),
    r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+"
));
const TEKKEN: Rule = Match(cased!(r"\p{N}", "", r"[\r\n/]*", ""));
const GPT4O: Rule = Match(cased!(r"\p{N}{1,3}", concat!(contractions!(), "?"), r"[\r\n/]*", ""));
const YOUTU: Rule = Match(cased!(r"\p{N}", concat!(contractions!(), "?"), r"[\r\n/]*", ""));
const YOUTU_ASIAN: Rule = Match(concat!(
    r"[\u{ac00}-\u{d7a3}\u{3131}-\u{318e}]+",
    r"|[\u{ff01}\u{2026}\u{201c}\u{201d}\u{2018}\u{2019}\u{2014}\u{ff1a}\u{ff1b}\u{ff0c}",
    r"\u{3001}-\u{303f}\u{fe30}-\u{fe4f}]+",
    r"|[\u{3105}-\u{312f}]+|[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+"
));
/// Chinese characters stand apart from letters of other scripts.
const KIMI: Rule = Match(concat!(
    r"\p{Han}+|",
    cased!(r"\p{N}{1,3}", concat!(contractions!(), "?"), r"[\r\n]*", r"&&[^\p{Han}]")
));
const CHINESE_KANA: Rule = Match(r"[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+");
const DEEPSEEK_V3: Rule = Match(concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+"
));
const SPARK: Rule = Match(concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##,
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
    r"| ?[\p{P}\p{S}]+|[\r\n]|\s+"
));
const LINE_BREAK: Rule = Match(r"[\r\n]");
/// From U+4E00 to U+9FA5 and from U+0800 to U+4E00, and Hangul: the ranges the model was made with.
const DEEPSEEK_ASIAN: Rule = Match(r"[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]+");
/// The letters that have a case, of the Unicode version that the model was made with.
const DEEPSEEK_LETTERS: Rule = Match(concat!(
    r"\s?[",
    r"A-Za-z\u{b5}\u{c0}-\u{d6}\u{d8}-\u{f6}\u{f8}-\u{1ba}\u{1bc}-\u{1bf}\u{1c4}-\u{293}",
    r"\u{295}-\u{2af}\u{370}-\u{373}\u{376}\u{377}\u{37b}-\u{37d}\u{37f}\u{386}",
    r"\u{388}-\u{38a}\u{38c}\u{38e}-\u{3a1}\u{3a3}-\u{3f5}\u{3f7}-\u{481}\u{48a}-\u{52f}",
    r"\u{531}-\u{556}\u{10a0}-\u{10c5}\u{13a0}-\u{13f5}\u{13f8}-\u{13fd}\u{1c90}-\u{1cba}",
    r"\u{1cbd}-\u{1cbf}\u{1d00}-\u{1d2b}\u{1d6b}-\u{1d77}\u{1d79}-\u{1d9a}",
    r"\u{1e00}-\u{1f15}\u{1f18}-\u{1f1d}\u{1f20}-\u{1f45}\u{1f48}-\u{1f4d}",
    r"\u{1f50}-\u{1f57}\u{1f59}\u{1f5b}\u{1f5d}\u{1f5f}-\u{1f7d}\u{1f80}-\u{1fb4}",
    r"\u{1fb6}-\u{1fbc}\u{1fbe}\u{1fc2}-\u{1fc4}\u{1fc6}-\u{1fcc}\u{1fd0}-\u{1fd3}",
    r"\u{1fd6}-\u{1fdb}\u{1fe0}-\u{1fec}\u{1ff2}-\u{1ff4}\u{1ff6}-\u{1ffc}\u{2102}\u{2107}",
    r"\u{210a}-\u{2113}\u{2115}\u{2119}-\u{211d}\u{2124}\u{2126}\u{2128}\u{212a}-\u{212d}",
    r"\u{212f}-\u{2134}\u{2139}\u{213c}-\u{213f}\u{2145}-\u{2149}\u{214e}\u{2183}\u{2184}",
    r"\u{2c00}-\u{2c7b}\u{2c7e}-\u{2ce4}\u{2ceb}-\u{2cee}\u{2cf2}\u{2cf3}\u{a640}-\u{a66d}",
    r"\u{a680}-\u{a69b}\u{a722}-\u{a76f}\u{a771}-\u{a787}\u{a78b}-\u{a78e}",
    r"\u{ab70}-\u{abbf}\u{fb00}-\u{fb06}\u{fb13}-\u{fb17}\u{ff21}-\u{ff3a}",
    r"\u{ff41}-\u{ff5a}\u{10400}-\u{1044f}\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}",
    r"\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}\u{118a0}-\u{118df}\u{1e900}-\u{1e943}",
    "]+"
));
const DEEPSEEK_SIGNS: Rule = Match(concat!(
    r"\s?[!-/:-~\u{ff01}-\u{ff0f}\u{ff1a}-\u{ff5e}",
    r"\u{2018}-\u{201f}\u{3000}-\u{3002}]+"
));
/// Chinese, Japanese and Korean, and the scripts that write no spaces.
const AFMOE_ASIAN: Rule = Match(concat!(
    r"[\u{4e00}-\u{9fff}\u{3400}-\u{4dbf}\u{f900}-\u{faff}\u{3040}-\u{309f}\u{30a0}-\u{30ff}",
    r"\u{ff65}-\u{ff9f}\u{2f00}-\u{2fdf}\u{e40}-\u{e7f}\u{e80}-\u{eff}\u{1780}-\u{17ff}",
    r"\u{1000}-\u{109f}\u{aa60}-\u{aa7f}\u{a9e0}-\u{a9ff}\u{ac00}-\u{d7af}\u{1100}-\u{11ff}]+"
));
const NOT_PUNCTUATION: Rule = Match(r" ?[^(\s|.,!?…。，、।۔،)]+");
const CHAMELEON: &[Rule] = &[
    Match("<sentinel:[0-9]+>"),
    Match("IMGIMG[A-I]{1,4}Z"),
    Match(r"[\t\n]|    |  "),
    DIGIT,
    Match(r"[\p{P}!-/:-@\[-`{-~]"),
    GPT2,
];

/// Names of one pre-tokenizer, its rules in the order they cut, and two habits of it.
pub(super) struct Entry {
    pub(super) names: &'static [&'static str],
    pub(super) rules: &'static [Rule],
    /// A word that is a token stays whole, without looking at the merges.
    pub(super) whole_words: bool,
    /// BOS is added where the file does not say.
    pub(super) adds_bos: bool,
}

const fn plain(names: &'static [&'static str], rules: &'static [Rule]) -> Entry {
    Entry { names, rules, whole_words: false, adds_bos: false }
}

const fn whole(names: &'static [&'static str], rules: &'static [Rule]) -> Entry {
    Entry { names, rules, whole_words: true, adds_bos: false }
}

const fn whole_with_bos(names: &'static [&'static str], rules: &'static [Rule]) -> Entry {
    Entry { names, rules, whole_words: true, adds_bos: true }
}

/// Names as `tokenizer.ggml.pre` spells them.
pub(super) const ENTRIES: &[Entry] = &[
    plain(&["default"], &[Match(r"[\p{P}\$\+<=>\^~\|]+"), GPT2, DIGITS, THREE_DIGITS]),
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
            "jina-v1-en",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v2-code",
            "roberta-bpe",
            "modern-bert",
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
            "mellum2",
        ],
        &[DIGIT, GPT2],
    ),
    plain(&["falcon"], &[Match(r"[\p{P}\$\+<=>\^~\|`]+"), GPT2, THREE_DIGITS]),
    plain(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "stablelm2",
            "hunyuan",
            "megrez",
            "kormo",
            "f2llmv2",
            "solar-open",
            "grok-2",
        ],
        &[QWEN2],
    ),
    plain(&["qwen35"], &[QWEN35]),
    plain(&["ufakzeka"], &[UFAKZEKA]),
    plain(&["laguna"], &[LINES, QWEN2]),
    plain(&["dbrx", "smaug-bpe", "chatglm-bpe"], &[LLAMA3]),
    whole(&["glm4", "glm5"], &[LLAMA3]),
    whole_with_bos(
        &[
            "llama3",
            "llama-v3",
            "llama-bpe",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        &[LLAMA3],
    ),
    plain(&["jais-2"], &[Ladder(LLAMA3_TEXT)]),
    whole(&["minicpm5"], &[DIGITS_TO_3, MINICPM5]),
    whole_with_bos(&["tekken"], &[TEKKEN]),
    plain(&["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"], &[GPT4O]),
    whole(&["granite-embed-multi-97m"], &[GPT4O]),
    plain(
        &["tiny_aya", "cohere2moe"],
        &[Threes { run: r"\p{Nd}+\b", edges: Edges::CutAtWordEnd }, GPT4O],
    ),
    whole(&["youtu"], &[YOUTU_ASIAN, YOUTU]),
    plain(&["kimi-k2"], &[KIMI]),
    plain(&["bailingmoe", "bailingmoe2", "llada-moe"], &[BAILING]),
    plain(&["exaone-moe"], &[EXAONE_MOE]),
    plain(&["seed-coder"], &[SEED]),
    plain(&["superbpe"], &[DIGITS, Threes { run: r"\p{Nd}+", edges: Edges::Joined }]),
    plain(
        &["deepseek-llm"],
        &[LINE_BREAK, DEEPSEEK_LETTERS, DEEPSEEK_SIGNS, Match(r"\s+$"), DEEPSEEK_ASIAN, DIGITS],
    ),
    plain(
        &["deepseek-coder"],
        &[LINE_BREAK, Match(r"\s?\p{L}+"), Match(r"\s?\p{P}+"), DEEPSEEK_ASIAN, DIGIT],
    ),
    plain(
        &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        &[DIGITS_TO_3, CHINESE_KANA, DEEPSEEK_V3],
    ),
    plain(&["spark2_5"], &[DIGITS_TO_3, CHINESE_KANA, SPARK, DIGIT]),
    plain(&["afmoe"], &[Threes { run: r"\p{N}+", edges: Edges::Cut }, AFMOE_ASIAN, DEEPSEEK_V3]),
    plain(&["bloom", "poro-chat", "gpt3-finnish"], &[NOT_PUNCTUATION]),
    plain(&["viking"], &[NOT_PUNCTUATION, DIGIT]),
    Entry { names: &["chameleon"], rules: CHAMELEON, whole_words: false, adds_bos: true },
];
