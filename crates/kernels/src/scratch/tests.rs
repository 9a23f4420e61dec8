//! What a thread gets for its items, and what it gives back.

use super::Scratch;

#[test]
fn scratch_is_zeros_whatever_it_held_before() {
    for len in [3, 100, 7] {
        let mut scratch = Scratch::of(len);
        assert_eq!(&*scratch, vec![0.0; len]);
        scratch.fill(1.0);
    }
}

#[test]
fn two_of_one_thread_are_apart() {
    let mut first = Scratch::of(4);
    let mut second = Scratch::of(4);
    first.fill(1.0);
    second.fill(2.0);
    assert_eq!((&*first, &*second), (&[1.0; 4][..], &[2.0; 4][..]));
}

#[test]
fn scratch_comes_back_to_the_thread_that_drops_it() {
    let scratch = Scratch::of(1000);
    let at = scratch.as_ptr();
    drop(scratch);
    assert_eq!(Scratch::of(10).as_ptr(), at);
}
