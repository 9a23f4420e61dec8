//! Small vocabularies for tests, with the rules of the large ones.

use crate::vocabulary::{SpecialIds, TokenType, Vocabulary, VocabularyKind};

/// Byte-level: every byte's letter, then the merges' products, then `<|im_end|>` and `<tool>`.
pub(crate) fn byte_level() -> Vocabulary {
    let mut tokens: Vec<String> =
        crate::bytes::byte_letters().iter().map(char::to_string).collect();
    let merges = ["h e", "l l", "he ll", "hell o", "Ġ hello"].map(str::to_owned);
    tokens.extend(merges.iter().map(|merge| merge.replace(' ', "")));
    tokens.extend(["<|im_end|>".to_owned(), "<tool>".to_owned()]);
    let mut types = vec![TokenType::Normal; tokens.len() - 2];
    types.extend([TokenType::Control, TokenType::UserDefined]);
    Vocabulary {
        kind: VocabularyKind::ByteLevel,
        pre_tokenizer: "gpt-2".to_owned(),
        special: SpecialIds { bos: Some(261), eos: Some(261), ..SpecialIds::default() },
        tokens,
        scores: Vec::new(),
        types,
        merges: merges.to_vec(),
        add_bos: false,
        add_eos: false,
        add_space_prefix: false,
    }
}

/// SentencePiece as the first Llama models have it: `<unk>`, `<s>`, `</s>`, 256 bytes, pieces.
pub(crate) fn sentence_piece() -> Vocabulary {
    let mut tokens = ["<unk>", "<s>", "</s>"].map(str::to_owned).to_vec();
    let mut types = vec![TokenType::Unknown, TokenType::Control, TokenType::Control];
    tokens.extend((0..256).map(|byte| format!("<0x{byte:02X}>")));
    types.extend([TokenType::Byte; 256]);
    let pieces = "▁ H e l o T h i s . ▁▁ ▁▁▁ He ll Hell Hello ▁Hello hi his This ▁This is ▁is";
    tokens.extend(pieces.split(' ').map(str::to_owned));
    types.resize(tokens.len(), TokenType::Normal);
    // Longer pieces are better here, earlier ones among equals, and runs of spaces come last.
    let scores = tokens.iter().enumerate().map(|(id, text)| {
        let letters = u16::try_from(text.chars().count()).unwrap();
        let id = u16::try_from(id).unwrap();
        let score = f32::from(letters) - f32::from(id) / 1000.0;
        if text.starts_with("▁▁") { score - 100.0 } else { score }
    });
    Vocabulary {
        kind: VocabularyKind::SentencePiece,
        pre_tokenizer: "default".to_owned(),
        scores: scores.collect(),
        special: SpecialIds {
            bos: Some(1),
            eos: Some(2),
            unknown: Some(0),
            ..SpecialIds::default()
        },
        tokens,
        types,
        merges: Vec::new(),
        add_bos: true,
        add_eos: false,
        add_space_prefix: true,
    }
}
