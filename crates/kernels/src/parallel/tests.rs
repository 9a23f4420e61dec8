//! Shares of a job: every item once, whoever computes it.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

#[test]
fn every_item_is_computed_once_whatever_the_threads() {
    for threads in 0..5 {
        let pool = Pool::new(threads);
        for items in (0..20).chain([301]) {
            let counts: Vec<AtomicU32> = (0..items).map(|_| AtomicU32::new(0)).collect();
            pool.run(items, &|item| {
                counts[item].fetch_add(1, Ordering::Relaxed);
            });
            let once = counts.iter().all(|count| count.load(Ordering::Relaxed) == 1);
            assert!(once, "{threads} threads, {items} items");
        }
    }
}

#[test]
fn whoever_is_done_takes_over_from_the_others() {
    const TURNS_MAX: usize = 50_000_000;
    let pool = Pool::new(2);
    let others = AtomicU32::new(0);
    pool.run(10, &|item| {
        if item > 0 {
            others.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // The first item lasts until all others are done, those of its own share among them.
        let all_done = (0..TURNS_MAX).any(|_| {
            std::thread::yield_now();
            others.load(Ordering::Relaxed) == 9
        });
        assert!(all_done, "nobody took over");
    });
}

#[test]
fn a_barrier_brings_every_thread_and_ends() {
    for threads in 1..5 {
        let pool = Pool::new(threads);
        (0..100).for_each(|_| pool.barrier());
    }
}

#[test]
fn shares_differ_by_at_most_one_item() {
    let pool = Pool::new(3);
    let shared = &pool.shared;
    for items in 0..40 {
        let job = Job { work: &|_| (), items, before: 1000 };
        let ranges: Vec<_> = (0..3).map(|share| shared.range(job, share)).collect();
        let lens: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        assert_eq!(lens.iter().sum::<u64>(), items as u64);
        assert!(lens.iter().max().unwrap() - lens.iter().min().unwrap() <= 1, "{lens:?}");
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
    }
}

#[test]
fn a_number_of_an_earlier_job_is_no_number_of_this_one() {
    let share = Share(AtomicU64::new(0));
    let claims = |range: Range<u64>| std::iter::from_fn(|| share.claim(&range)).collect::<Vec<_>>();
    assert_eq!(claims(0..2), [0, 1]);
    assert_eq!(claims(10..12), [10, 11]);
    assert_eq!(claims(12..12), []);
    assert_eq!(claims(12..13), [12]);
}
