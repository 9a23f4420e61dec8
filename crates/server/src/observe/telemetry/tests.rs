//! Which environment sends what.

use super::*;

/// The signals that an environment turns on, or what is wrong with it.
fn check(variables: &[(&str, &str)], want: &str) {
    let value = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let found = match Collectors::from_variables(&value) {
        Ok(Collectors { traces, metrics }) => {
            format!(
                "{}{}",
                if traces.is_some() { "t" } else { "" },
                if metrics.is_some() { "m" } else { "" }
            )
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(found, want, "{variables:?}");
}

#[test]
fn the_usual_variables_turn_it_on() {
    let (all, url) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
    check(&[], "");
    check(&[(all, "")], "");
    check(&[(all, url)], "tm");
    check(&[(all, url), ("OTEL_SDK_DISABLED", "true")], "");
    check(&[(all, url), ("OTEL_TRACES_EXPORTER", "none")], "m");
    check(&[(all, url), ("OTEL_METRICS_EXPORTER", "none")], "t");
    check(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url)], "t");
    check(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", url)], "m");
    check(
        &[(all, "https://collector:4318")],
        "$OTEL_EXPORTER_OTLP_ENDPOINT is `https://collector:4318`, only http:// is supported",
    );
}
