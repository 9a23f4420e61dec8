//! GGUF files, good and bad: what is read, and the one sentence for each fault.

mod support;

use causeway_weights::{Value, gguf::Directory};
use support::{ARRAY, BOOL, F32, Gguf, I32, STRING, U8, U32, text};

/// The sentence that refuses the file.
fn refusal(file: &[u8]) -> String {
    match Directory::parse(file) {
        Ok(directory) => format!("read: {} tensors", directory.tensors.len()),
        Err(fault) => fault.to_string(),
    }
}

fn check(file: &[u8], want: &str) {
    assert_eq!(refusal(file), want);
}

/// A file with one f32 tensor of 8 bytes at offset 0, ready for a second one.
fn one_tensor() -> Gguf {
    Gguf::new().tensor("a", &[2], 0, &[0; 8])
}

#[test]
fn a_good_file_is_read_as_written() {
    for version in [2, 3] {
        let file = Gguf { version, ..Gguf::small() };
        let bytes = file.build();
        let directory = Directory::parse(&bytes).unwrap();
        assert_eq!((directory.version, directory.alignment), (version, 32));
        let metadata = &directory.metadata;
        assert_eq!(metadata.string("general.architecture").unwrap(), Some("llama"));
        assert_eq!(metadata.value("tokenizer.ggml.add_bos_token"), Some(&Value::Bool(true)));
        let tokens = metadata.strings("tokenizer.ggml.tokens").unwrap().unwrap();
        assert_eq!(tokens, ["<s>", "a", "ä", ""]);
        let lines = directory.tensors.iter().map(|entry| {
            assert_eq!(entry.offset % 32, 0, "{}", entry.name);
            format!("{} {} {:?} {}", entry.name, entry.dtype, entry.shape, entry.bytes)
        });
        let want = [
            "token_embd.weight Q4_0 [2, 32] 36",
            "output_norm.weight F32 [3] 12",
            "blk.0.attn_q.weight Q6_K [1, 256] 210",
            "blk.0.attn_k.weight F16 [2, 2, 2, 2] 32",
            "blk.0.ffn_up.weight Q8_0 [64] 68",
        ];
        assert_eq!(lines.collect::<Vec<String>>(), want);
        let last = &directory.tensors[4];
        assert_eq!(&bytes[last.offset..last.offset + last.bytes], [0x11; 68]);
    }
}

#[test]
fn dimensions_are_turned_outermost_first() {
    let file = Gguf::new().tensor("w", &[2, 3, 5], 0, &[0; 120]).build();
    assert_eq!(Directory::parse(&file).unwrap().tensors[0].shape, [5, 3, 2]);
}

#[test]
fn a_file_without_tensors_is_read() {
    check(&Gguf::new().string("general.architecture", "llama").build(), "read: 0 tensors");
    check(&Gguf::new().build(), "read: 0 tensors");
}

#[test]
fn another_alignment_is_followed() {
    for alignment in [1_u32, 8, 64, 4096] {
        let mut file = Gguf::new().u32("general.alignment", alignment);
        file.alignment = alignment as usize;
        let file = file.tensor("a", &[1], 0, &[1; 4]).tensor("b", &[1], 0, &[2; 4]).build();
        let directory = Directory::parse(&file).unwrap();
        let second = &directory.tensors[1];
        assert_eq!(&file[second.offset..second.offset + 4], [2; 4], "{alignment}");
    }
}

#[test]
fn what_is_not_gguf_is_told_by_its_looks() {
    check(b"", "not a GGUF file: it is empty");
    check(b"GGU", "not a GGUF file: it is 3 bytes long");
    check(
        b"<!DOCTYPE html><html><body>Sign in</body></html>",
        "not a GGUF file: it looks like an HTML page, perhaps a download that needed a login",
    );
    check(b"GGUG\x03\0\0\0", "not a GGUF file: it starts with the bytes GGUG");
}

#[test]
fn versions_and_byte_orders_that_are_not_read_are_named() {
    let of_version = |version| Gguf { version, ..Gguf::small() }.build();
    check(&of_version(0), "GGUF version 0 is not read, only versions 2 and 3 are");
    check(&of_version(1), "GGUF version 1 is not read, only versions 2 and 3 are");
    check(&of_version(4), "GGUF version 4 is not read, only versions 2 and 3 are");
    let big_endian =
        "wrong byte order: it is a big-endian GGUF file, only little-endian ones are read";
    check(&of_version(3_u32.swap_bytes()), big_endian);
    check(&of_version(2_u32.swap_bytes()), big_endian);
    check(b"FUGG\x03\0\0\0", big_endian);
}

/// A small file with these counts in its header.
fn counted(tensor_count: Option<u64>, key_count: Option<u64>) -> Vec<u8> {
    Gguf { tensor_count, key_count, ..Gguf::small() }.build()
}

#[test]
fn counts_are_held_against_the_file() {
    let bytes = Gguf::small().build().len();
    let no_room = |declared: &str, room: usize| {
        format!(
            "the file is cut short or damaged: it declares {declared}, and its {bytes} bytes have \
             room for {room} at most"
        )
    };
    let room = (bytes - 24) / 32;
    check(&counted(Some(1 << 60), None), &no_room("1152921504606846976 tensors", room));
    check(&counted(Some(room as u64 + 1), None), &no_room(&format!("{} tensors", room + 1), room));
    let room = (bytes - 24) / 13;
    check(&counted(None, Some(u64::MAX)), &no_room("18446744073709551615 metadata keys", room));
    let long = Gguf::new().array("long", U8, 4_000_000, &vec![0; 4_000_000]);
    check(
        &Gguf { tensor_count: Some(65_537), ..long.clone() }.build(),
        "65537 tensors are declared, the limit is 65536",
    );
    check(
        &Gguf { key_count: Some(65_537), ..long }.build(),
        "65537 metadata keys are declared, the limit is 65536",
    );
    // Within the room that is left, but more than there are.
    assert!(!refusal(&counted(None, Some(12))).starts_with("read"));
    assert!(!refusal(&counted(Some(7), None)).starts_with("read"));
}

#[test]
fn lengths_of_strings_are_held_against_the_file() {
    let long = |length: u64| [&length.to_le_bytes()[..], b"key"].concat();
    for length in [68, 1 << 20, u64::MAX, u64::MAX - 3] {
        let file = Gguf::new().raw_key(&long(length)).raw_key(&[0; 64]);
        let sentence = refusal(&Gguf { key_count: Some(1), ..file }.build());
        assert!(!sentence.starts_with("read"), "{length}: {sentence}");
    }
    check(
        &Gguf::new()
            .raw_key(&[&text("key")[..], &STRING.to_le_bytes(), &[255; 8]].concat())
            .build(),
        "the file is cut short: it ends at byte 47, inside the value of `key`, which needs \
         18446744073709551615 bytes from byte 47",
    );
    check(
        &Gguf::new().u32(&"k".repeat(65_536), 0).build(),
        "65536 bytes of a name are declared, the limit is 65535",
    );
}

#[test]
fn text_that_is_not_utf_8_is_refused() {
    let bad = [&2_u64.to_le_bytes()[..], b"\xff\xfe"].concat();
    let key = [&bad[..], &U8.to_le_bytes(), &[0]].concat();
    check(&Gguf::new().raw_key(&key).build(), "metadata key 1 is not UTF-8 text");
    let value = Gguf::new().number("name", STRING, &bad).build();
    check(&value, "the value of `name` is not UTF-8 text");
    let list = Gguf::new().array("names", STRING, 1, &bad).build();
    check(&list, "the value of `names` is not UTF-8 text");
    let entry = [&bad[..], &[0; 24]].concat();
    check(&Gguf::new().raw_entry(&entry).build(), "tensor entry 1 is not UTF-8 text");
}

#[test]
fn values_of_no_known_type_are_refused() {
    let file = |value_type, value: &[u8]| Gguf::new().number("key", value_type, value).build();
    let unknown = "metadata key `key` has the value type 13, which is none of the 13 known types";
    check(&file(13, &[0; 8]), unknown);
    check(&file(ARRAY, &[&13_u32.to_le_bytes()[..], &[0; 8]].concat()), unknown);
    check(
        &file(ARRAY, &[&ARRAY.to_le_bytes()[..], &[0; 32]].concat()),
        "metadata key `key` is an array of arrays, which is not read",
    );
    let not_bool = "metadata key `key` holds the byte 2 as a truth value, only 0 and 1 are";
    check(&file(BOOL, &[2]), not_bool);
    check(&Gguf::new().array("key", BOOL, 3, &[0, 1, 2]).build(), not_bool);
}

#[test]
fn arrays_longer_than_the_file_are_refused() {
    for (element_type, count) in [(U8, 17), (F32, 5), (I32, 1 << 62), (STRING, 3), (12, u64::MAX)] {
        let sentence = refusal(&Gguf::new().array("key", element_type, count, &[0; 16]).build());
        let want = "the file is cut short: it ends at byte 67, inside the value of `key`";
        assert!(sentence.starts_with(want), "{sentence}");
    }
}

#[test]
fn a_key_or_a_tensor_that_stands_twice_is_refused() {
    let file = Gguf::new().u32("a", 1).u32("b", 2).u32("a", 3).build();
    check(&file, "metadata key `a` stands twice");
    let file = one_tensor().tensor("a", &[2], 0, &[0; 8]).build();
    check(&file, "tensor `a` is listed twice");
}

#[test]
fn alignments_that_are_none_are_refused() {
    let file = |alignment| one_tensor().u32("general.alignment", alignment).build();
    check(&file(0), "`general.alignment` is 0, it must be a power of two");
    check(&file(33), "`general.alignment` is 33, it must be a power of two");
    check(&file(u32::MAX), "`general.alignment` is 4294967295, it must be a power of two");
    // A power of two that puts the tensors past the end.
    check(&file(1 << 31), "tensor `a` lies outside the file: it ends at byte 2147483656 of 104");
    check(
        &one_tensor().string("general.alignment", "32").build(),
        "metadata key `general.alignment` has the type string, wanted u32",
    );
}

/// What is said of a tensor with these dimensions (innermost first) and this type.
fn check_tensor(dimensions: &[u64], dtype: u32, offset: u64, want: &str) {
    let file = one_tensor().entry("w", dimensions, dtype, offset).build();
    check(&file, &format!("tensor `w` {want}"));
}

#[test]
fn shapes_that_cannot_be_are_refused() {
    check_tensor(&[], 0, 0, "has 0 dimensions, the limits are 1 and 4");
    check_tensor(&[1, 1, 1, 1, 1], 0, 0, "has 5 dimensions, the limits are 1 and 4");
    check_tensor(&[4, 0], 0, 0, "has a dimension of 0");
    check_tensor(&[0], 2, 0, "has a dimension of 0");
    let too_large = |shape: &[u64]| {
        format!("has the shape {shape:?}, whose size in bytes does not fit in 64 bits")
    };
    check_tensor(&[1 << 32, 1 << 32], 0, 0, &too_large(&[1 << 32, 1 << 32]));
    check_tensor(&[u64::MAX - 3], 0, 0, &too_large(&[u64::MAX - 3]));
    check_tensor(&[u64::MAX - 31, 32], 2, 0, &too_large(&[32, u64::MAX - 31]));
    check_tensor(
        &[1152, (1 << 42) + 1],
        0,
        0,
        &format!(
            "lies outside the file: it ends at byte {} of 136",
            4608 * ((1_u64 << 42) + 1) + 128
        ),
    );
    let count = u32::MAX;
    let entry = [&text("w")[..], &count.to_le_bytes(), &[0; 64]].concat();
    check(
        &one_tensor().raw_entry(&entry).build(),
        "tensor `w` has 4294967295 dimensions, the limits are 1 and 4",
    );
}

#[test]
fn types_that_are_none_are_refused() {
    for id in [200, 4, 31, 1000, u32::MAX] {
        let want = format!("has the type {id}, which is none of the known types");
        check_tensor(&[32], id, 0, &want);
    }
}

#[test]
fn rows_of_part_blocks_are_refused() {
    let want = "has rows of 33 elements, not a multiple of the 32 of a Q4_0 block";
    check_tensor(&[33], 2, 0, want);
    let want = "has rows of 128 elements, not a multiple of the 256 of a Q4_K block";
    check_tensor(&[128, 2], 12, 0, want);
}

#[test]
fn tensors_outside_the_file_or_on_each_other_are_refused() {
    check_tensor(&[2], 0, 32, "lies outside the file: it ends at byte 136 of 104");
    check_tensor(&[3], 0, 0, "lies outside the file: it ends at byte 108 of 104");
    let far = u64::MAX - 31;
    let want = format!("lies outside the file: it ends at byte {} of 104", u128::from(far) + 104);
    check_tensor(&[2], 0, far, &want);
    check_tensor(&[1], 0, 4, "starts at 4, which is not a multiple of the alignment 32");
    check(&one_tensor().entry("w", &[2], 0, 0).build(), "tensor `w` overlaps tensor `a`");
    let file = Gguf::new().tensor("a", &[16], 0, &[0; 64]).entry("w", &[1], 0, 32).build();
    check(&file, "tensor `w` overlaps tensor `a`");
}

#[test]
fn types_that_are_only_listed_are_listed() {
    let file = Gguf::new().tensor("w", &[64, 2], 40, &[0; 72]).build();
    let entry = &Directory::parse(&file).unwrap().tensors[0];
    assert_eq!((entry.dtype.name(), entry.dtype.is_readable()), ("NVFP4", false));
}

#[test]
fn vocabulary_lists_of_the_wrong_type_are_refused_by_their_reader() {
    let file = Gguf::new()
        .array("tokenizer.ggml.scores", U8, 4, &[0; 4])
        .array("tokenizer.ggml.token_type", U32, 1, &[0; 4])
        .build();
    let metadata = Directory::parse(&file).unwrap().metadata;
    assert_eq!(
        metadata.f32s("tokenizer.ggml.scores").unwrap_err().to_string(),
        "metadata key `tokenizer.ggml.scores` must be array of f32, the file has array of u8",
    );
    assert_eq!(
        metadata.i32s("tokenizer.ggml.token_type").unwrap_err().to_string(),
        "metadata key `tokenizer.ggml.token_type` must be array of i32, the file has array of u32",
    );
}

#[test]
fn names_of_hostile_files_cannot_break_the_line() {
    let file = one_tensor().entry("w\r\n\u{1b}[2J", &[0], 0, 0).build();
    check(&file, "tensor `w\\r\\n\\u{1b}[2J` has a dimension of 0");
}
