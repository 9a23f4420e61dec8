//! The tree keeps its own rules: walls between rooms, sizes, names, documents.

use causeway_tidy::walls::RATCHET;
use causeway_tidy::{breaches, root};

#[test]
fn the_tree_keeps_its_rules() {
    let breaches = breaches(root()).expect("the tree can be read");
    let is_old = |rule: &str, path: &str| RATCHET.contains(&(rule, path));
    let new: Vec<_> = breaches
        .iter()
        .filter(|breach| !is_old(breach.rule, &breach.path))
        .map(|breach| format!("  {breach}\n"))
        .collect();
    assert!(new.is_empty(), "{} breaches of the rules in STYLE.md:\n{}", new.len(), new.concat());
    for (rule, path) in RATCHET {
        let is_breached =
            breaches.iter().any(|breach| breach.rule == *rule && breach.path == *path);
        assert!(is_breached, "{path} keeps the rule `{rule}` again: take it off the ratchet");
    }
}
