//! Plans as readable lines: `id:first+count`, `*` where a token is chosen, `|` between passes.

use causeway_request::RequestId;

use crate::Scheduler;

/// `requests` are (prompt tokens, new tokens); runs to the end and compares all plans.
fn check(budget: usize, requests: &[(usize, usize)], want: &str) {
    let mut scheduler = Scheduler::new(budget);
    let mut left: Vec<usize> = requests.iter().map(|request| request.1).collect();
    for (id, request) in requests.iter().enumerate() {
        scheduler.add(RequestId(id as u64), request.0, 0);
    }
    let mut passes = Vec::new();
    // Every pass computes at least one token, so this many passes are enough.
    for _ in 0..requests.iter().map(|r| r.0 + r.1).sum() {
        let mut pass = Vec::new();
        for s in scheduler.plan() {
            let star = if s.samples { "*" } else { "" };
            pass.push(format!("{}:{}+{}{star}", s.id, s.first_position, s.token_count));
            if !s.samples {
                continue;
            }
            let id = usize::try_from(s.id.0).unwrap();
            left[id] -= 1;
            if left[id] == 0 {
                assert!(scheduler.remove(s.id));
            } else {
                scheduler.append(s.id);
            }
        }
        if pass.is_empty() {
            break;
        }
        passes.push(pass.join(" "));
    }
    assert_eq!(passes.join(" | "), want);
    assert_eq!(scheduler.running_count(), 0);
}

#[test]
fn one_request_is_prefilled_then_decoded() {
    check(8, &[(3, 3)], "0:0+3* | 0:3+1* | 0:4+1*");
}

#[test]
fn a_long_prompt_is_chunked_and_does_not_stop_decoding() {
    check(4, &[(2, 3), (6, 1)], "0:0+2* 1:0+2 | 0:2+1* 1:2+3 | 0:3+1* 1:5+1*");
}

#[test]
fn a_prompt_of_one_token_is_a_decode() {
    check(4, &[(5, 1), (1, 2)], "1:0+1* 0:0+3 | 1:1+1* 0:3+2*");
}

#[test]
fn a_rewound_request_is_computed_again() {
    let mut scheduler = Scheduler::new(16);
    scheduler.add(RequestId(0), 3, 0);
    assert!(scheduler.plan()[0].samples);
    scheduler.append(RequestId(0));
    scheduler.rewind(RequestId(0));
    let again = scheduler.plan();
    assert_eq!((again[0].first_position, again[0].token_count, again[0].samples), (0, 4, true));
}
