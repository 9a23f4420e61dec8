//! Ranges of counts: what is read, what is refused, and how they are drawn.

use super::*;

#[test]
fn ranges_are_read_or_refused() {
    let check = |text: &str, want: Result<&str, &str>| {
        let found = text.parse::<Counts>();
        let found = found.map(|counts| counts.to_string()).map_err(|error| error.to_string());
        match want {
            Ok(want) => assert_eq!(found.as_deref(), Ok(want)),
            Err(want) => assert!(found.as_ref().unwrap_err().contains(want), "{found:?}"),
        }
    };
    check("64..1024", Ok("64..1024"));
    check("7", Ok("7..7"));
    check(" 1 .. 2 ", Ok("1..2"));
    check("0..4", Err("counts from 0 to 4 are out of range: 1 to 1048576"));
    check("9..4", Err("the least first"));
    check("1..9999999", Err("out of range"));
    check("a..b", Err("`a..b` is no range of counts"));
    check("", Err("no range"));
    check("-3", Err("no range"));
}

#[test]
fn counts_are_log_uniform() {
    let counts = Counts::from_bounds(32, 256).unwrap();
    assert_eq!((counts.at(1e-12), counts.at(1.0 - 1e-12)), (32, 256));
    // Half of the draws lie below the geometric mean of the bounds.
    assert!((89..=92).contains(&counts.at(0.5)), "{}", counts.at(0.5));
    let mean =
        (0..10_000).map(|i| f64::from(counts.at((f64::from(i) + 0.5) / 10_000.0))).sum::<f64>();
    assert!((mean / 10_000.0 - counts.mean()).abs() < 0.05, "{mean} {}", counts.mean());
    assert!((counts.mean() - 107.5).abs() < 0.01);
    assert_eq!(Counts::from_bounds(5, 5).unwrap().at(0.9), 5);
}
