//! Any bytes are read as a record or refused, and what is read is written and read again.

#![no_main]

use causeway_ledger::{Pair, compare, from_slice, report, to_json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let stored = match from_slice(file) {
        Ok(stored) => stored,
        Err(refused) => {
            assert!(!refused.to_string().contains(char::is_control), "{refused}");
            return;
        }
    };
    // What a hand-edited record says of itself need not be true; asking may not panic.
    let _ = stored.edited();
    let json = to_json(&stored.record).expect("what was read can be written");
    let again = from_slice(json.as_bytes()).expect("what was written can be read");
    assert_eq!(again.record, stored.record);
    assert!(again.is_unchanged());
    let verdict = compare(&stored.record, &again.record);
    assert!(verdict.is_equal());
    let page = report(&verdict, &stored.record, &again.record, Pair { a: "A", b: "B" });
    assert!(!page.contains(|letter: char| letter.is_control() && letter != '\n'));
});
