//! What is written down without any request, and whether the documents name it.

use super::*;

const DOCUMENT: &str = include_str!("../../../../../docs/operation.md");

#[test]
fn every_metric_is_written_once_and_documented() {
    let ledger = Some((0, causeway_ledger::Written::default()));
    let kv_disk = Some(causeway_session::KvDiskCounts::default());
    let seen = Seen { models: vec![("m".to_owned(), Look::default())], ledger, kv_disk };
    let text = Metrics::default().text(seen);
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut names: Vec<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    let count = names.len();
    // The others are written from the first request on that they count.
    assert_eq!(count, 17, "{text}");
    for name in &names {
        let short = name.trim_start_matches("causeway_").trim_end_matches("_total");
        assert!(
            DOCUMENT.contains(&format!("`{short}`")),
            "docs/operation.md does not name {short}"
        );
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{text}");
    assert!(text.contains("causeway_kv_blocks{model=\"m\",kind=\"free\"} 0"), "{text}");
}
