//! What is found again, and how much of it.

use causeway_request::TokenId;

use super::{Drafted, MATCH_MAX, MATCH_MIN, for_each, found};

fn tokens(ids: &[u32]) -> Vec<TokenId> {
    ids.iter().copied().map(TokenId).collect()
}

fn check(ids: &[u32], (match_len, count): (usize, usize), want: &[u32]) {
    assert_eq!(found(&tokens(ids), match_len, count), tokens(want), "{ids:?}");
}

#[test]
fn what_followed_the_last_place_is_drafted() {
    check(&[1, 2, 3, 4, 9, 1, 2], (2, 3), &[3, 4, 9]);
    check(&[1, 2, 3, 4, 9, 1, 2], (2, 1), &[3]);
    check(&[1, 2, 3, 1, 2, 4, 1, 2], (2, 1), &[4]);
    check(&[1, 2, 3, 1, 2], (3, 2), &[]);
    check(&[1, 2, 3], (2, 2), &[]);
    check(&[7, 7, 7, 7], (2, 3), &[7]);
    check(&[1, 2, 1, 2], (2, 3), &[1, 2]);
    check(&[1, 2, 5, 1, 2], (2, 0), &[]);
    check(&[1, 2], (2, 2), &[]);
    check(&[], (2, 2), &[]);
}

#[test]
fn few_runs_leave_room_for_drafts_and_many_do_not() {
    assert_eq!([0, 1, 2, 3, 4, 16].map(for_each), [3, 3, 1, 0, 0, 0]);
}

#[test]
fn what_fails_has_to_match_further_until_one_is_right() {
    let mut drafted = Drafted::none();
    let ids = tokens(&[1, 2, 3, 1, 2]);
    for failures in 0..8 {
        assert_eq!(drafted.match_len, MATCH_MAX.min(MATCH_MIN + failures));
        drafted.tokens = tokens(&[3]);
        assert_eq!(drafted.settle(), 0);
    }
    drafted.look_up(&ids, 3);
    assert!(drafted.tokens.is_empty(), "six tokens are not found again in five");
    assert_eq!(drafted.settle(), 0);
    assert_eq!(drafted.match_len, MATCH_MAX, "nothing was drafted, so nothing failed");
    drafted.tokens = tokens(&[3, 1]);
    assert!(drafted.is_next(TokenId(3)) && !drafted.is_next(TokenId(1)));
    drafted.accept();
    assert!(drafted.is_next(TokenId(1)));
    assert_eq!((drafted.settle(), drafted.match_len), (1, MATCH_MIN));
    drafted.look_up(&ids, 3);
    assert_eq!(drafted.tokens, tokens(&[3, 1, 2]));
}
