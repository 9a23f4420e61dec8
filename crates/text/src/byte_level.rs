//! Byte-level byte pair encoding (`gpt2` vocabularies): words to tokens by ranked merges.

use std::collections::HashMap;

use crate::bytes::byte_letters;
use crate::error::VocabularyError;
use crate::merge::{Merger, NO_TOKEN};
use crate::split::PreTokenizer;
use crate::vocabulary::{TokenType, Vocabulary};

/// What a file lacks that was made without them, as some of `kimi-k2` are.
const MERGES: &str = "merges, which put its words together: the model's folder with its \
                      `tokenizer.json` has them";

/// (left, right) to (rank, joined).
type Merges = HashMap<(u32, u32), (u32, u32)>;

/// The merges and the letters of one vocabulary.
#[derive(Debug)]
pub(crate) struct ByteLevel {
    pre_tokenizer: PreTokenizer,
    letters: [char; 256],
    /// Token of each single byte; `NO_TOKEN` where the vocabulary lacks it.
    byte_tokens: [u32; 256],
    merges: Merges,
    /// Whole words, where the pre-tokenizer looks for them before it merges.
    words: HashMap<String, u32>,
}

impl ByteLevel {
    /// Builds from a vocabulary that `Vocabulary::check` has passed.
    ///
    /// Of tokens with one spelling the lowest id counts. A merge that makes a token which text
    /// may not become (a control token, a hole) is left out.
    pub(crate) fn new(vocabulary: &Vocabulary) -> Result<Self, VocabularyError> {
        let pre_tokenizer = PreTokenizer::named(&vocabulary.pre_tokenizer)?;
        let mut ids: HashMap<&str, u32> = HashMap::with_capacity(vocabulary.tokens.len());
        for (id, text) in (0u32..).zip(&vocabulary.tokens) {
            ids.entry(text).or_insert(id);
        }
        let becomes = |id: u32| {
            matches!(vocabulary.token_type(id as usize), TokenType::Normal | TokenType::UserDefined)
        };
        let mut byte_tokens = [NO_TOKEN; 256];
        for (token, letter) in byte_tokens.iter_mut().zip(byte_letters()) {
            let id = ids.get(letter.encode_utf8(&mut [0; 4]) as &str);
            *token = id.copied().filter(|id| becomes(*id)).unwrap_or(NO_TOKEN);
        }
        let merges = ranked_merges(vocabulary, &ids, becomes)?;
        // Without them every text would fall into bytes, and a model would read what it never saw.
        let is_word = |(id, text): (usize, &String)| {
            vocabulary.token_type(id) == TokenType::Normal && text.chars().count() > 1
        };
        if merges.is_empty() && vocabulary.tokens.iter().enumerate().any(is_word) {
            return Err(VocabularyError::Missing { what: MERGES });
        }
        let mut words = HashMap::new();
        if pre_tokenizer.whole_words {
            let spelled = ids.iter().filter(|(_, id)| becomes(**id));
            words = spelled.map(|(text, id)| ((*text).to_owned(), *id)).collect();
        }
        Ok(Self { pre_tokenizer, letters: byte_letters(), byte_tokens, merges, words })
    }

    /// Appends the tokens of `text`; a byte that no token spells vanishes, as the reference has it.
    pub(crate) fn encode(&self, text: &str, tokens: &mut Vec<u32>) {
        let mut merger = Merger::default();
        for word in self.pre_tokenizer.words(text) {
            let word = &text[word];
            if let Some(token) = self.whole_word(word) {
                tokens.push(token);
                continue;
            }
            merger.clear();
            for byte in word.bytes() {
                merger.push(self.byte_tokens[usize::from(byte)], 1);
            }
            merger.merge(|left, right| self.merges.get(&(left.token, right.token)).copied());
            let found = merger.symbols().map(|symbol| symbol.token);
            tokens.extend(found.filter(|token| *token != NO_TOKEN));
        }
    }

    fn whole_word(&self, word: &str) -> Option<u32> {
        if self.words.is_empty() {
            return None;
        }
        let spelled: String = word.bytes().map(|byte| self.letters[usize::from(byte)]).collect();
        self.words.get(&spelled).copied()
    }
}

/// Every merge as ids; the first of two merges of one pair counts.
fn ranked_merges(
    vocabulary: &Vocabulary,
    ids: &HashMap<&str, u32>,
    becomes: impl Fn(u32) -> bool,
) -> Result<Merges, VocabularyError> {
    let mut merges = HashMap::with_capacity(vocabulary.merges.len());
    let mut spelling = String::new();
    for (rank, merge) in (0u32..).zip(&vocabulary.merges) {
        let joined = merge.split_once(' ').and_then(|(left, right)| {
            spelling.clear();
            spelling.push_str(left);
            spelling.push_str(right);
            Some((*ids.get(left)?, *ids.get(right)?, *ids.get(spelling.as_str())?))
        });
        let Some((left, right, joined)) = joined else {
            let merge = merge.chars().take(80).collect();
            return Err(VocabularyError::Merge { index: rank as usize, merge });
        };
        if becomes(joined) {
            merges.entry((left, right)).or_insert((rank, joined));
        }
    }
    Ok(merges)
}

#[cfg(test)]
mod tests;
