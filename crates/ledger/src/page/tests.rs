//! The table and the page of a record, as a reader sees them.

use super::*;
use crate::tests::{golden, sample};
use crate::{FieldSpent, FieldsAccount, Filter, Store};

#[test]
fn a_table_has_a_line_for_each_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("l.sqlite")).unwrap();
    let mut long = sample();
    long.start.model.name = "/a/folder/of/models/with-a-long-name.gguf\u{1b}[2J".to_owned();
    long.end.account.times.ttft_ns = None;
    long.start.policy.canonical = r#"{"name":"ticket"}"#.to_owned();
    store.insert(sample()).unwrap();
    store.insert(long).unwrap();
    let page = table(&store.list(&Filter::default()).unwrap());
    assert_eq!(page.lines().count(), 3, "{page}");
    let heads = "record        time (UTC)           model";
    assert!(page.starts_with(heads), "{page}");
    for part in ["2023-11-14 22:13:20", "smollm2:135m", "max_tokens", "ticket ", "…", " -  "] {
        assert!(page.contains(part), "`{part}` is not in:\n{page}");
    }
    assert!(!page.contains('\u{1b}'), "a name may not drive the terminal");
    assert!(page.contains(&sample().id().to_string()[..12]), "{page}");
    assert_eq!(table(&[]).lines().count(), 1);
}

#[test]
fn the_page_of_a_record_says_all_of_its_account() {
    let stored = Stored::new(golden());
    let page = account_page(&stored, false);
    for part in [
        &stored.id.to_string(),
        &stored.answer_hash.to_string(),
        "2023-11-14 22:13:20 UTC",
        "smollm2:135m (Q4_1), weights ",
        "version 1, KV f16",
        "(drawn)",
        "seed 18446744073709551615, choice 1, at most 64 tokens",
        "engine 0.1.0, a CPU, avx2, 2 threads, chunk 512, batch 1, queue 0, cache cold",
        "eos (token 2)",
        "4 prompt (2 cached, 1 prefilled), 6 generated (5 visible, 0 reasoning, 1 forced)",
        "1 prefill, 3 decode",
        "\nanswer\n say\n\"é🦀!\n",
    ] {
        assert!(page.contains(part), "`{part}` is not in:\n{page}");
    }
    assert!(!page.contains("\nfields\n"), "{page}");
    assert!(!page.contains("\nsteps\n") && !page.contains('\0'));
    let with_steps = account_page(&stored, true);
    assert!(with_steps.starts_with(&page));
    let steps = &with_steps[page.len()..];
    assert_eq!(steps.lines().count(), 2 + 6, "{steps}");
    for part in ["forced", "visible", "hidden", r#""\xf0\x9f""#, "logprob -inf", "removed token 5"]
    {
        assert!(steps.contains(part), "`{part}` is not in:\n{steps}");
    }
}

#[test]
fn the_page_says_what_each_field_took() {
    let mut record = golden();
    let whole = FieldSpent { forced: 3, decode_passes: 1, decode_ns: 4_567_890, ..spent("") };
    let fields = vec![whole, FieldSpent { chosen: 12, ..spent("/a") }];
    record.end.set_fields(Some(FieldsAccount { fields, open: Some("/a\u{1b}".to_owned()) }));
    let page = account_page(&Stored::new(record), false);
    let want = "\nfields\n\
                field    chosen  forced  decode passes  decode ms\n\
                (whole)       0       3              1        4.5\n\
                /a           12       0              0        0.0\n\
                open at the end: /a\\u{1b}\n";
    assert!(page.ends_with(want), "{page}");
}

fn spent(path: &str) -> FieldSpent {
    FieldSpent { path: path.to_owned(), ..FieldSpent::default() }
}

/// Lines of a table whose cells begin below one another, whatever the names hold.
fn check_table(page: &str, heading: &str, lines: usize) {
    let column = |line: &str| line.chars().count();
    let start = page.lines().position(|line| line.starts_with(heading)).unwrap();
    let table: Vec<&str> = page.lines().skip(start).take(lines).collect();
    let widths: Vec<usize> = table.iter().map(|line| column(line)).collect();
    assert!(widths.iter().all(|width| *width == widths[0]), "{widths:?}\n{page}");
}

#[test]
fn no_name_forges_a_line_or_moves_a_column() {
    let mut record = golden();
    let forged = "/a\n/forged          12       0              0        0.0\u{1b}[2J";
    let fields = vec![spent("/b"), spent(forged), spent(&format!("/c{}", "x".repeat(5000)))];
    record.end.set_fields(Some(FieldsAccount { fields, open: Some(forged.to_owned()) }));
    record.start.model.name = "a\nrecord forged".to_owned();
    let page = account_page(&Stored::new(record.clone()), false);
    check_table(&page, "field ", 4);
    let is_forged = |line: &str| line.starts_with("/forged") || line.starts_with("record forged");
    assert!(!page.lines().any(is_forged) && !page.contains('\u{1b}'), "{page}");
    assert!(page.lines().all(|line| line.chars().count() < 200), "{page}");
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("l.sqlite")).unwrap();
    store.insert(record).unwrap();
    let mut other = golden();
    other.start.model.name = "m\u{1b}\u{1b}".to_owned();
    store.insert(other).unwrap();
    let page = table(&store.list(&Filter::default()).unwrap());
    assert_eq!(page.lines().count(), 3, "{page}");
    check_table(&page, "record ", 3);
}
