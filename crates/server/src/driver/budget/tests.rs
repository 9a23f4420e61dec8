//! Cases of the budget: what it learns, and what it gives.

use super::*;

const MS: u64 = 1_000_000;

/// Passes of (rows, decodes, ms) under a target in ms; the budget after the last one.
fn check(target_ms: Option<u64>, passes: &[(usize, usize, u64)], want: usize) {
    let mut budget = Budget::new(target_ms.map(|ms| ms * MS), 512);
    let mut found = budget.budget(0);
    for &(rows, decodes, ms) in passes {
        found = budget.observe(Measured { rows, decodes, took_ns: ms * MS });
    }
    assert_eq!(found, want, "{target_ms:?} {passes:?}");
}

#[test]
fn a_budget_follows_the_target() {
    check(None, &[(512, 4, 900)], 512);
    check(Some(50), &[], 64);
    // 512 rows in 512 ms: a row takes 1 ms, so that 50 rows fit.
    check(Some(50), &[(512, 4, 512)], 50);
    // Nobody waits for a token.
    check(Some(50), &[(512, 0, 512)], 512);
    // Passes of decodes alone teach nothing.
    check(Some(50), &[(512, 4, 512), (4, 4, 90)], 50);
    // Never below the least, nor below the answers under way.
    check(Some(1), &[(512, 4, 512)], 16);
    check(Some(1), &[(512, 40, 512)], 40);
    // Faster passes let it grow again, bit by bit.
    check(Some(50), &[(512, 4, 512), (50, 4, 5)], 60);
}
