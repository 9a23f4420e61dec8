//! Words of each kind of pre-tokenizer; `|` stands between them.

use super::*;

fn check(name: &str, text: &str, words: &str) {
    let pre_tokenizer = PreTokenizer::named(name).unwrap();
    let found: Vec<&str> = pre_tokenizer.words(text).into_iter().map(|word| &text[word]).collect();
    assert_eq!(found.join("|"), words, "{name} on {text:?}");
    assert_eq!(found.concat(), text);
}

#[test]
fn gpt2_and_its_kin() {
    check("gpt-2", "I'll go, it'S 123  abc  ", "I|'ll| go|,| it|'|S| 123| | abc|  ");
    check("gpt-2", "a\n\n b\n", "a|\n\n| b|\n");
    check("smollm", "a 12  7", "a| |1|2|  |7");
    check("starcoder", "x=10", "x|=|1|0");
    check("falcon", "a+1234", "a|+|123|4");
    check("default", "a+1234 b", "a|+|123|4| b");
}

#[test]
fn qwen2_takes_one_letter_that_is_none() {
    check("qwen2", "'llama I'LL 12 x\n\n  y", "'ll|ama| I|'LL| |1|2| x|\n\n| | y");
    check("qwen2", "(foo) ... \n\n z", "(foo|)| ...| \n\n| z");
    check("qwen35", "नमस्ते 1", "नमस्ते| |1");
    check("hunyuan", "a1", "a|1");
}

#[test]
fn llama3_takes_three_digits() {
    check("llama-bpe", "1234567 'Re", "123|456|7| '|Re");
    check("llama-bpe", "we'Re 12", "we|'Re| |12");
    check("dbrx", "\t\tx = 1;\n", "\t|\tx| =| |1|;\n");
}

#[test]
fn capitals_begin_words() {
    check("tekken", "HelloWorld ABCdef 12", "Hello|World| ABCdef| |1|2");
    check("gpt-4o", "HelloWorld's it's 1234", "Hello|World's| it's| |123|4");
    check("gpt-4o", "a /x/\n", "a| /|x|/\n");
}

#[test]
fn deepseek_in_its_three_kinds() {
    check("deepseek-coder", "a 中文b 12\n", "a| |中文|b| |1|2|\n");
    check("deepseek-v3", "ab中文カナ 1234 +x", "ab|中文カナ| |123|4| +|x");
    check("deepseek-r1-qwen", "12", "1|2");
}

#[test]
fn the_rest() {
    check("bloom", "Hello, world!", "Hello|,| world|!");
    check("viking", "a 12", "a| |1|2");
    check("bailingmoe", "a \n\nb", "a| \n\n|b");
    check("seed-coder", "a...\n1", "a|...|\n|1");
    check("gpt-2", "", "");
}

#[test]
fn white_space_gives_one_space_to_the_word() {
    for name in ["gpt-2", "qwen2", "llama-bpe", "tekken", "gpt-4o"] {
        check(name, "   a", "  | a");
        check(name, "a   ", "a|   ");
        check(name, "\u{3000}\u{3000}", "\u{3000}\u{3000}");
    }
}

#[test]
fn white_space_climbs_down_a_ladder() {
    check("jais-2", "x       y", "x|    |  | y");
    check("jais-2", "x   ", "x|  | ");
}

#[test]
fn digits_in_threes_from_the_end() {
    check("tiny_aya", "1234567 1234a", "1|234|567| |123|4|a");
    check("afmoe", "ab12345c", "ab|12|345|c");
    check("superbpe", "a b 12²345", "a b |12²|345");
}

#[test]
fn reference_cuts() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/tokenization/words.jsonl");
    let (mut wrong, mut built) = (Vec::new(), std::collections::BTreeMap::new());
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = case["text"].as_str().unwrap();
        for (names, lengths) in case["words"].as_object().unwrap() {
            let lengths: Vec<usize> = serde_json::from_value(lengths.clone()).unwrap();
            for name in names.split(' ') {
                let known = built.entry(name.to_owned());
                let known = known.or_insert_with(|| PreTokenizer::named(name).unwrap());
                let found: Vec<usize> =
                    known.words(text).into_iter().map(|word| word.len()).collect();
                if found != lengths {
                    wrong.push(format!("{name} {text:?}: {found:?}, wanted {lengths:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    // Each kind of the table has reference cuts.
    let bare =
        ENTRIES.iter().filter(|entry| !entry.names.iter().any(|name| built.contains_key(*name)));
    let bare: Vec<_> = bare.map(|entry| entry.names[0]).collect();
    assert_eq!(bare, ["dbrx", "glm4", "granite-embed-multi-97m"], "same expressions as others");
}

#[test]
fn no_name_stands_twice() {
    let mut names: Vec<_> = ENTRIES.iter().flat_map(|entry| entry.names).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn long_runs_take_no_square_of_time() {
    for name in ["jais-2", "tiny_aya", "superbpe", "afmoe", "exaone-moe", "deepseek-llm"] {
        let pre_tokenizer = PreTokenizer::named(name).unwrap();
        for run in [" ", "7", "a ", "\n"] {
            let text = run.repeat(1 << 16);
            assert!(!pre_tokenizer.words(&text).is_empty());
        }
    }
}

#[test]
fn every_name_of_the_table_is_built_and_unknown_ones_are_refused() {
    for name in ENTRIES.iter().flat_map(|entry| entry.names) {
        check(name, "a", "a");
    }
    assert!(adds_bos("llama-bpe") && !adds_bos("qwen2") && !adds_bos("no-such"));
    let refusal = PreTokenizer::named("no-such").unwrap_err().to_string();
    assert!(refusal.contains("`no-such`, which is none of"), "{refusal}");
}
