//! Plans: the same from the same seed, of the lengths asked for, and inside their limits.

use std::io::Write as _;

use super::*;

fn settings(arrivals: &str) -> PlanSettings {
    PlanSettings {
        arrivals: arrivals.parse().unwrap(),
        span: Some("100s".parse().unwrap()),
        requests: None,
        prompt_words: "64..1024".parse().unwrap(),
        output_tokens: "32..256".parse().unwrap(),
        shared_prefix: 0,
        disconnect_rate: 0.0,
        trace_speed: 1.0,
        seed: 1,
    }
}

fn plan(settings: PlanSettings) -> Plan {
    Plan::make(settings).unwrap()
}

fn all(plan: &Plan) -> Vec<Planned> {
    (0..2_000).map_while(|index| plan.planned(index)).collect()
}

#[test]
fn a_plan_follows_from_its_seed() {
    let (one, again) = (plan(settings("poisson:5")), plan(settings("poisson:5")));
    assert_eq!(all(&one), all(&again));
    assert_eq!(one.hash(), again.hash());
    let prompts = |plan: &Plan| all(plan).iter().map(|p| plan.prompt(p)).collect::<Vec<_>>();
    assert_eq!(prompts(&one), prompts(&again));
    let other = plan(PlanSettings { seed: 2, ..settings("poisson:5") });
    assert_ne!(one.hash(), other.hash());
    assert_ne!(prompts(&one)[0], prompts(&other)[0]);
    // The list of a shorter run is the beginning of the longer one's.
    let short = plan(PlanSettings { requests: Some(7), ..settings("poisson:5") });
    assert_eq!(all(&short), all(&one)[..7]);
}

#[test]
fn arrivals_are_in_order_and_inside_the_span() {
    for arrivals in ["poisson:5", "gamma:5,3"] {
        let plan = plan(settings(arrivals));
        let times: Vec<u64> = all(&plan).iter().map(|planned| planned.at_us.unwrap()).collect();
        assert!(times.is_sorted() && times.iter().all(|&us| us < 100_000_000), "{arrivals}");
        assert!((300..800).contains(&times.len()), "{arrivals}: {}", times.len());
        assert_eq!(plan.requests(), Some(times.len() as u64));
    }
}

#[test]
fn lengths_are_those_asked_for() {
    let plan = plan(PlanSettings { shared_prefix: 10, ..settings("poisson:10") });
    let requests = all(&plan);
    for planned in &requests {
        assert!((74..=1_034).contains(&planned.prompt_words), "{planned:?}");
        assert!((32..=256).contains(&planned.output_tokens), "{planned:?}");
        let words = plan.prompt(planned).split(' ').count();
        assert_eq!(words, usize::try_from(planned.prompt_words).unwrap());
    }
    let begins = |planned: &Planned, count| {
        plan.prompt(planned).split(' ').take(count).map(str::to_owned).collect::<Vec<_>>()
    };
    let (first, second) = (&requests[0], &requests[1]);
    assert_eq!(begins(first, 10), begins(second, 10));
    assert_ne!(begins(first, 15), begins(second, 15));
}

#[test]
fn a_closed_loop_has_no_times_and_perhaps_no_end() {
    let endless = plan(settings("concurrency:4"));
    assert_eq!((endless.requests(), endless.concurrency()), (None, Some(4)));
    assert_eq!(endless.planned(999_999).unwrap().at_us, None);
    let counted = plan(PlanSettings { requests: Some(3), ..settings("concurrency:4") });
    assert_eq!((counted.requests(), all(&counted).len()), (Some(3), 3));
}

#[test]
fn clients_hang_up_as_often_as_asked() {
    let check = |rate, range: std::ops::RangeInclusive<usize>| {
        let settings = PlanSettings { disconnect_rate: rate, ..settings("poisson:10") };
        let requests = all(&plan(settings));
        let leaving = requests.iter().filter(|planned| planned.hang_up.is_some());
        let share = leaving.clone().count() * 100 / requests.len();
        assert!(range.contains(&share), "{share} of 100 for {rate}");
        for planned in leaving {
            match planned.hang_up.unwrap() {
                HangUp::AfterUs(us) => assert!(us < 2_000_000),
                HangUp::AfterChunks(count) => assert!((1..=planned.output_tokens).contains(&count)),
            }
        }
    };
    check(0.0, 0..=0);
    check(0.2, 15..=25);
    check(1.0, 100..=100);
}

#[test]
fn a_trace_is_played_at_its_speed_and_keeps_its_prefixes() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let rows = "arrival_ms,prompt_tokens,output_tokens,prefix_hash_ids\n\
                0,600,5,0-1\n1000,1030,6,0 2-3\n4000,512,7,9\n";
    file.write_all(rows.as_bytes()).unwrap();
    let arrivals = Arrivals::Trace { path: file.path().to_owned() };
    let trace = PlanSettings { arrivals, span: None, trace_speed: 2.0, ..settings("poisson:1") };
    let plan = plan(trace.clone());
    let requests = all(&plan);
    let shown: Vec<_> =
        requests.iter().map(|p| (p.at_us.unwrap(), p.prompt_words, p.output_tokens)).collect();
    assert_eq!(shown, [(0, 600, 5), (500_000, 1_030, 6), (2_000_000, 512, 7)]);
    let words = |index: usize| {
        plan.prompt(&requests[index]).split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(words(0)[..512], words(1)[..512], "block 0 is the same text in both");
    assert_ne!(words(0)[512..], words(1)[512..600]);
    assert_ne!(words(0)[..512], words(2)[..]);
    let cut = Plan::make(PlanSettings { requests: Some(2), ..trace }).unwrap();
    assert_eq!((cut.requests(), cut.skipped()), (Some(2), 0));
}

#[test]
fn settings_out_of_range_are_refused() {
    let check = |settings: PlanSettings, want: &str| {
        let error = Plan::make(settings).unwrap_err();
        assert!(error.is_callers_mistake(), "{error}");
        assert!(error.to_string().contains(want), "{error}");
    };
    let base = || settings("poisson:5");
    check(PlanSettings { span: None, ..base() }, "nothing ends the run: give --duration or");
    check(
        PlanSettings { requests: Some(0), ..base() },
        "0 requests are out of range: 1 to 1000000",
    );
    check(PlanSettings { requests: Some(1_000_001), ..base() }, "1000001 requests");
    check(PlanSettings { disconnect_rate: 1.5, ..base() }, "hang up is 1.5, out of range: 0 to 1");
    check(PlanSettings { disconnect_rate: f64::NAN, ..base() }, "out of range: 0 to 1");
    check(PlanSettings { trace_speed: 0.0, ..base() }, "the speed of a trace is 0, out of range");
    check(settings("poisson:100000"), "1000001 requests are out of range");
}
