//! Cases of tokens that go round in circles.

use causeway_request::TokenId;

use super::circle;

fn check(tokens: &[u32], want: Option<usize>) {
    let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId).collect();
    assert_eq!(circle(&tokens), want, "{tokens:?}");
}

#[test]
fn a_circle_is_seen_three_times_round() {
    check(&[7; 10], Some(1));
    check(&[7, 7, 7], Some(1));
    check(&[7, 7], None);
    check(&[1, 2, 1, 2, 1, 2, 1], Some(2));
    check(&[1, 2, 1, 2], None);
    check(&[1, 2, 3, 1, 2, 3, 1, 2, 3, 1], Some(3));
    check(&[1, 2, 3, 4, 1, 2, 3, 4, 1, 2], None);
    check(&[7, 7, 7, 7, 8], None);
    check(&[], None);
}
