//! Arrivals: what is read, what is refused, and how gaps are spread.

use super::*;

#[test]
fn arrivals_are_read_or_refused() {
    let check = |text: &str, want: Result<&str, &str>| {
        let found = text.parse::<Arrivals>();
        let found = found.map(|arrivals| arrivals.to_string()).map_err(|error| error.to_string());
        match want {
            Ok(want) => assert_eq!(found.as_deref(), Ok(want)),
            Err(want) => assert!(found.as_ref().unwrap_err().contains(want), "{found:?}"),
        }
    };
    check("poisson:0.6", Ok("poisson:0.6"));
    check("gamma:2,3.5", Ok("gamma:2,3.5"));
    check("trace:a:b.csv", Ok("trace:a:b.csv"));
    check("concurrency:16", Ok("concurrency:16"));
    check("poisson:0", Err("the rate of arrivals is 0, out of range"));
    check("poisson:nan", Err("out of range"));
    check("poisson:inf", Err("out of range"));
    check("gamma:1", Err("is no arrivals: poisson:RATE"));
    check("gamma:1,0", Err("the coefficient of variation is 0, out of range: 0.05 to 50"));
    check("concurrency:0", Err("0 at a time is out of range: 1 to 10000"));
    check("concurrency:1.5", Err("is no arrivals"));
    check("trace:", Err("is no arrivals"));
    check("uniform:1", Err("`uniform:1` is no arrivals"));
    check("poisson", Err("is no arrivals"));
}

#[test]
fn gaps_have_the_mean_and_the_variation_asked_for() {
    let check = |text: &str, want_mean: f64, want_cv: f64| {
        let arrivals: Arrivals = text.parse().unwrap();
        let draws = Draws::of(11);
        let gaps: Vec<f64> =
            (0..20_000).map(|index| arrivals.gap_s(&draws, index).unwrap()).collect();
        assert!(gaps.iter().all(|gap| *gap >= 0.0 && gap.is_finite()));
        let mean = gaps.iter().sum::<f64>() / 20_000.0;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 20_000.0;
        let cv = variance.sqrt() / mean;
        assert!((mean / want_mean - 1.0).abs() < 0.06, "{text}: mean {mean}");
        assert!((cv / want_cv - 1.0).abs() < 0.06, "{text}: variation {cv}");
    };
    check("poisson:4", 0.25, 1.0);
    check("gamma:4,1", 0.25, 1.0);
    check("gamma:0.5,0.3", 2.0, 0.3);
    check("gamma:10,2.5", 0.1, 2.5);
}

#[test]
fn traces_and_closed_loops_draw_no_gaps() {
    for text in ["trace:t.csv", "concurrency:3"] {
        assert_eq!(text.parse::<Arrivals>().unwrap().gap_s(&Draws::of(0), 0), None);
    }
}
