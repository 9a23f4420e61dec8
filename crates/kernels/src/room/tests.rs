//! What a thread gets for its items, and what it gives back.

use super::Room;

#[test]
fn room_is_zeros_whatever_it_held_before() {
    for len in [3, 100, 7] {
        let mut room = Room::of(len);
        assert_eq!(&*room, vec![0.0; len]);
        room.fill(1.0);
    }
}

#[test]
fn two_rooms_of_one_thread_are_apart() {
    let mut first = Room::of(4);
    let mut second = Room::of(4);
    first.fill(1.0);
    second.fill(2.0);
    assert_eq!((&*first, &*second), (&[1.0; 4][..], &[2.0; 4][..]));
}

#[test]
fn a_room_comes_back_to_the_thread_that_drops_it() {
    let room = Room::of(1000);
    let at = room.as_ptr();
    drop(room);
    assert_eq!(Room::of(10).as_ptr(), at);
}
