//! Cases of asking before something is removed.

use super::asked;

fn check(answer: &str, want: bool) {
    let mut said = Vec::new();
    let agreed = asked("remove it? ", answer.as_bytes(), &mut said).expect("memory is read");
    assert_eq!((agreed, said.as_slice()), (want, &b"remove it? "[..]), "{answer:?}");
}

#[test]
fn only_a_line_that_says_yes_is_one() {
    for yes in ["y\n", "Y\n", "yes\n", "YES\r\n", " y \n", "y"] {
        check(yes, true);
    }
    let long = format!("{}y\n", " ".repeat(300));
    for no in ["", "\n", "n\n", "no\n", "yess\n", "y n\n", "ja\n", "\ny\n", &long] {
        check(no, false);
    }
}
