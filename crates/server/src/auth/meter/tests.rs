//! Limits of a key over time.

use super::*;

fn meter(limits: KeyLimits) -> Arc<Meter> {
    Arc::new(Meter::new("shop", limits))
}

/// Status, message and seconds to wait of a refusal.
fn refusal<T: std::fmt::Debug>(outcome: Result<T, ApiError>) -> (u16, String, Option<u64>) {
    let error = outcome.unwrap_err();
    (error.status.as_u16(), error.message, error.retry_after_s)
}

#[test]
fn a_rate_holds_in_any_sixty_seconds() {
    let limits = KeyLimits { requests_per_minute: Some(2), ..KeyLimits::default() };
    let meter = meter(limits);
    let at = |seconds: u64| meter.count_request(seconds * 1_000_000_000);
    assert!(at(5).is_ok() && at(30).is_ok());
    let text = "API key `shop` sent 2 requests in the last minute, the limit is 2";
    assert_eq!(refusal(at(40)), (429, text.to_owned(), Some(25)));
    // What was refused counts for nothing.
    assert!(at(65).is_ok());
    assert_eq!(refusal(at(66)), (429, text.to_owned(), Some(24)));
    assert!(at(90).is_ok());
}

#[test]
fn places_are_given_back() {
    let meter = meter(KeyLimits { concurrency: Some(1), ..KeyLimits::default() });
    let lease = meter.lease(0).unwrap();
    let text = "API key `shop` has 1 answers under way, the limit is 1";
    assert_eq!(refusal(meter.lease(0)), (429, text.to_owned(), Some(1)));
    drop(lease);
    assert!(meter.lease(0).is_ok());
}

#[test]
fn tokens_are_of_a_utc_day() {
    let meter = meter(KeyLimits { tokens_per_day: Some(10), ..KeyLimits::default() });
    let lease = meter.lease(1_000).unwrap();
    lease.spend(9, 1_000);
    // One below the limit, another answer may begin, and an answer that has begun may end.
    meter.lease(DAY_S - 1).unwrap().spend(20, DAY_S - 10);
    let text = "API key `shop` used 29 tokens today (UTC), the limit is 10";
    assert_eq!(refusal(meter.lease(DAY_S - 10)), (429, text.to_owned(), Some(10)));
    assert!(meter.lease(DAY_S).is_ok());
}

#[test]
fn no_limits_refuse_nothing() {
    let meter = meter(KeyLimits::default());
    meter.spend(u64::MAX, 0);
    let leases: Vec<Lease> = (0..1_000).map(|_| meter.lease(0).unwrap()).collect();
    assert!((0..1_000).all(|_| meter.count_request(0).is_ok()));
    assert_eq!(leases.len(), 1_000);
}
