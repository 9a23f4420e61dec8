//! Cases of choosing among a repository's files.

use super::{Chosen, choose};
use crate::hub::Wanted;

fn chosen(files: &[&str], wanted: &Wanted) -> String {
    let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
    match choose(&files, wanted) {
        Ok(Chosen::Gguf(files)) => files.join(" "),
        Ok(Chosen::Folder(files)) => format!("folder: {}", files.join(" ")),
        Err(fault) => fault.to_string(),
    }
}

fn check(files: &[&str], quant: Option<&str>, want: &str) {
    let wanted = quant.map_or(Wanted::Default, |quant| Wanted::Quant(quant.to_owned()));
    assert_eq!(chosen(files, &wanted), want, "{quant:?} of {files:?}");
}

fn check_file(files: &[&str], file: &str, want: &str) {
    assert_eq!(chosen(files, &Wanted::File(file.to_owned())), want, "{file}");
}

#[test]
fn a_quantisation_is_matched_exactly_and_then_without_case() {
    let files = ["m-Q4_K_M.gguf", "m-q8_0.gguf", "m-Q8_0.gguf", "m.f16.gguf", "README.md"];
    check(&files, Some("Q8_0"), "m-Q8_0.gguf");
    check(&files, Some("q8_0"), "m-q8_0.gguf");
    check(&files, Some("q4_k_m"), "m-Q4_K_M.gguf");
    check(&files, Some("F16"), "m.f16.gguf");
    check(&["m_Q5_0.gguf", "UD-Q4_K_XL.gguf"], Some("q5_0"), "m_Q5_0.gguf");
    check(&["x/m-UD-Q4_K_XL.gguf"], Some("UD-Q4_K_XL"), "x/m-UD-Q4_K_XL.gguf");
    let none = "no file has the quantisation `K`: there are `Q4_K_M`, `Q8_0`, `q8_0` and `f16`";
    check(&["m-Q4_K_M.gguf", "m-q8_0.gguf", "m-Q8_0.gguf", "n.f16.gguf"], Some("K"), none);
    let which = "which file is meant? There are `a-Q8_0.gguf` and `b-Q8_0.gguf`; name one as \
                 :quant or as /file.gguf";
    check(&["a-Q8_0.gguf", "b-Q8_0.gguf"], Some("Q8_0"), which);
}

#[test]
fn without_a_quantisation_it_is_the_usual_one_or_the_only_one() {
    check(&["m-Q8_0.gguf", "m-q4_k_m.gguf", "m-F16.gguf"], None, "m-q4_k_m.gguf");
    check(&["m-Q8_0.gguf", "mmproj-F16.gguf", "m.imatrix.gguf"], None, "m-Q8_0.gguf");
    let which =
        "which file is meant? There are `F16` and `Q8_0`; name one as :quant or as /file.gguf";
    check(&["m-Q8_0.gguf", "m-F16.gguf"], None, which);
}

#[test]
fn a_split_file_is_taken_whole() {
    let (one, two) = ("Q4_K_M/m-Q4_K_M-00001-of-00002.gguf", "Q4_K_M/m-Q4_K_M-00002-of-00002.gguf");
    let both = format!("{one} {two}");
    check(&[two, "m-F16.gguf", one], None, &both);
    check_file(&[two, one], two, &both);
    check(&[two], None, "the split file `Q4_K_M/m-Q4_K_M` has 1 of 2 parts");
    check_file(&[one], "m.gguf", "the repository has no file `m.gguf`");
    check_file(&["mmproj.gguf"], "mmproj.gguf", "mmproj.gguf");
}

#[test]
fn a_folder_is_its_config_its_tokenizer_and_its_shards() {
    let one = ["README.md", "config.json", "model.safetensors", "tokenizer.json", "x.bin"];
    check(&one, None, "folder: config.json tokenizer.json model.safetensors");
    let rag = "additional_chat_templates/rag.jinja";
    let named = [rag, "additional_chat_templates/notes.md", "config.json", "model.safetensors"];
    check(&named, None, &format!("folder: {rag} config.json model.safetensors"));
    let index = "model.safetensors.index.json";
    let (first, second) = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors");
    let sharded = [first, second, index, "config.json", "consolidated.safetensors", "m-Q8_0.gguf"];
    let want = format!("folder: config.json {index} {first} {second}");
    check(&sharded, Some("safetensors"), &want);
    check(&sharded, None, "m-Q8_0.gguf");
    let none = "the repository has neither GGUF nor safetensors files";
    check(&["config.json", "pytorch_model.bin"], None, none);
    check(&["model.safetensors"], None, none);
}
