//! The rules still bite: a tree that breaks each of them is told so, line for line.

use std::collections::BTreeSet;
use std::path::Path;

use causeway_tidy::{breaches, rules};

/// Every breach of the tree in `tests/canary`, sorted by rule.
const WANT: &str = include_str!("canary/want.txt");

#[test]
fn a_tree_that_breaks_every_rule_is_told_each() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/canary");
    let found = breaches(&root).expect("the canary can be read");
    let lines: String = found.iter().map(|breach| format!("{breach}\n")).collect();
    assert_eq!(lines, WANT, "\n{lines}");
    let bitten: BTreeSet<_> = found.iter().map(|breach| breach.rule).collect();
    assert_eq!(bitten, rules().collect(), "a rule without a canary is a rule without a test");
}
