//! Known answers of the generator's authors (Random123, `kat_vectors`).

use super::philox;

fn check(counter: [u32; 4], key: [u32; 2], want: [u32; 4]) {
    assert_eq!(philox(counter, key), want, "counter {counter:08x?}, key {key:08x?}");
}

#[test]
fn the_published_vectors_come_out() {
    check([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    check([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    check(
        [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
        [0xa409_3822, 0x299f_31d0],
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
    );
}
