//! Plans as readable lines.
//!
//! `id:first+count`, `*` where a token is chosen, `~` before drafts, `|` between passes.

mod simulation;
mod world;

use causeway_request::{Priority, RequestId};

use crate::{Arrival, Plan, Scheduler, Sizes};
use world::Counter;

const PATIENCE: u64 = 100;

fn arrival(id: u64, tokens: usize, priority: Priority) -> Arrival {
    Arrival { id: RequestId(id), tokens, priority, follows: None }
}

fn line(plan: &Plan) -> String {
    let part = |s: &crate::Scheduled| {
        let star = if s.samples { "*" } else { "" };
        let drafts = if s.drafts > 0 { format!("~{}", s.drafts) } else { String::new() };
        format!("{}:{}+{}{star}{drafts}", s.id, s.first_position, s.token_count)
    };
    let parts: Vec<String> = plan.scheduled.iter().map(part).collect();
    let lost = plan.preempted.iter().map(|id| format!("-{id}"));
    parts.into_iter().chain(lost).collect::<Vec<_>>().join(" ")
}

/// A case: (running requests, budget, blocks of 16), then per request (prompt tokens, new
/// tokens, priority), then all plans until everyone has ended.
fn check(
    (running_max, budget, blocks): (usize, usize, usize),
    requests: &[(usize, usize, Priority)],
    want: &str,
) {
    let mut scheduler = Scheduler::new(Sizes { running_max, budget, patience: PATIENCE });
    let mut room = Counter::new(blocks);
    let mut left: Vec<usize> = requests.iter().map(|request| request.1).collect();
    for (id, &(tokens, _, priority)) in requests.iter().enumerate() {
        scheduler.add(arrival(id as u64, tokens, priority));
    }
    let mut passes = Vec::new();
    // Every pass computes at least one token, and none here is computed more than three times.
    for _ in 0..3 * requests.iter().map(|r| r.0 + r.1).sum::<usize>() {
        let plan = scheduler.plan(&mut room);
        for s in plan.scheduled.iter().filter(|s| s.samples) {
            let id = usize::try_from(s.id.0).unwrap();
            left[id] -= 1;
            if left[id] == 0 {
                assert!(scheduler.remove(s.id));
                room.remove(s.id);
            } else {
                scheduler.append(s.id, 1);
            }
        }
        if plan == Plan::default() {
            break;
        }
        passes.push(line(&plan));
    }
    assert_eq!(passes.join(" | "), want);
    assert_eq!((scheduler.running_count(), scheduler.waiting_count()), (0, 0));
}

use Priority::{Batch, Idle, Interactive};

#[test]
fn one_request_is_prefilled_then_decoded() {
    check((4, 8, 99), &[(3, 3, Interactive)], "0:0+3* | 0:3+1* | 0:4+1*");
}

#[test]
fn a_long_prompt_is_chunked_and_does_not_stop_decoding() {
    let want = "0:0+2* 1:0+2 | 0:2+1* 1:2+3 | 0:3+1* 1:5+1*";
    check((4, 4, 99), &[(2, 3, Interactive), (6, 1, Interactive)], want);
}

#[test]
fn decodes_leave_a_share_to_a_prompt() {
    let three = [(1, 3, Interactive), (1, 3, Interactive), (1, 3, Interactive)];
    let requests = [three.as_slice(), &[(3, 1, Interactive)]].concat();
    let want = "0:0+1* 1:0+1* 2:0+1* 3:0+1 | 0:1+1* 1:1+1* 2:1+1* 3:1+1 | \
                0:2+1* 1:2+1* 2:2+1* 3:2+1*";
    check((4, 4, 99), &requests, want);
    // With one token a pass, both sides get it in turn, and the decodes take turns too.
    let want = "0:0+1* | 1:0+1* | 0:1+1* | 1:1+1*";
    check((4, 1, 99), &[(1, 2, Interactive), (1, 2, Interactive)], want);
}

#[test]
fn who_finds_no_slot_waits_in_order() {
    let want = "0:0+2* | 1:0+2* | 2:0+2*";
    check((1, 8, 99), &[(2, 1, Interactive), (2, 1, Interactive), (2, 1, Interactive)], want);
}

#[test]
fn the_more_urgent_go_first_and_take_slots() {
    let want = "1:0+2* | 1:2+1* | 0:0+2* | 2:0+2*";
    check((1, 8, 99), &[(2, 1, Batch), (2, 2, Interactive), (2, 1, Idle)], want);
    let mut scheduler = Scheduler::new(Sizes { running_max: 1, budget: 8, patience: PATIENCE });
    let mut room = Counter::new(9);
    scheduler.add(arrival(0, 3, Idle));
    assert_eq!(line(&scheduler.plan(&mut room)), "0:0+3*");
    scheduler.append(RequestId(0), 1);
    scheduler.add(arrival(1, 2, Batch));
    assert_eq!(line(&scheduler.plan(&mut room)), "1:0+2* -0");
    scheduler.append(RequestId(1), 1);
    scheduler.set_priority(RequestId(0), Interactive);
    assert_eq!(line(&scheduler.plan(&mut room)), "0:0+4* -1");
}

#[test]
fn who_came_last_gives_up_its_blocks_and_is_computed_again() {
    // Three blocks of 16: both prompts fit, both answers do not.
    let want = "0:0+15* 1:0+15* | 0:15+1* 1:15+1* | 0:16+1* -1 | 0:17+1* | 1:0+17* | 1:17+1*";
    check((2, 64, 3), &[(15, 4, Interactive), (15, 4, Interactive)], want);
}

#[test]
fn drafts_take_what_is_left_of_the_budget_and_live_for_one_plan() {
    let mut scheduler = Scheduler::new(Sizes { running_max: 2, budget: 8, patience: PATIENCE });
    let mut room = Counter::new(9);
    let mut next = |scheduler: &mut Scheduler| line(&scheduler.plan(&mut room));
    scheduler.add(arrival(0, 3, Interactive));
    scheduler.draft(RequestId(0), 3);
    assert_eq!(next(&mut scheduler), "0:0+3*");
    scheduler.append(RequestId(0), 1);
    scheduler.draft(RequestId(0), 3);
    assert_eq!(next(&mut scheduler), "0:3+1*~3");
    scheduler.accept(RequestId(0), 2);
    scheduler.append(RequestId(0), 1);
    assert_eq!(next(&mut scheduler), "0:6+1*");
    scheduler.append(RequestId(0), 1);
    scheduler.draft(RequestId(0), 3);
    scheduler.add(arrival(1, 5, Interactive));
    assert_eq!(next(&mut scheduler), "0:7+1*~2 1:0+5*");
}

#[test]
fn nobody_gives_way_for_a_draft() {
    let mut scheduler = Scheduler::new(Sizes { running_max: 2, budget: 8, patience: PATIENCE });
    let mut room = Counter::new(1);
    scheduler.add(arrival(0, 8, Interactive));
    assert_eq!(line(&scheduler.plan(&mut room)), "0:0+8*");
    scheduler.append(RequestId(0), 8);
    scheduler.draft(RequestId(0), 1);
    assert_eq!(line(&scheduler.plan(&mut room)), "0:8+8*");
}

#[test]
fn a_sibling_waits_for_the_prompt_and_a_lone_one_does_not() {
    let mut scheduler = Scheduler::new(Sizes { running_max: 4, budget: 4, patience: PATIENCE });
    let mut room = Counter::new(9);
    scheduler.add(arrival(0, 6, Interactive));
    scheduler.add(Arrival { follows: Some(RequestId(0)), ..arrival(1, 6, Interactive) });
    scheduler.add(Arrival { follows: Some(RequestId(77)), ..arrival(2, 2, Interactive) });
    assert_eq!(line(&scheduler.plan(&mut room)), "0:0+4");
    assert_eq!(line(&scheduler.plan(&mut room)), "0:4+2* 2:0+2*");
    scheduler.append(RequestId(0), 1);
    assert_eq!(line(&scheduler.plan(&mut room)), "0:6+1* 1:0+3");
}
