//! Packing, written from the drawing, and unpacking agree.

use super::KScales;

/// Packs as the drawing says: the last four scales and minimums are split over two bytes.
fn pack(scales: [u8; 8], mins: [u8; 8]) -> KScales {
    let mut bytes = [0; 12];
    for i in 0..4 {
        bytes[i] = scales[i] | (scales[i + 4] & 0b11_0000) << 2;
        bytes[i + 4] = mins[i] | (mins[i + 4] & 0b11_0000) << 2;
        bytes[i + 8] = (scales[i + 4] & 0b1111) | (mins[i + 4] & 0b1111) << 4;
    }
    KScales(bytes)
}

fn check(scales: [u8; 8], mins: [u8; 8]) {
    let packed = pack(scales, mins);
    assert_eq!((packed.scales(), packed.mins()), (scales, mins), "{packed:?}");
}

#[test]
fn each_value_comes_back_from_each_place() {
    for place in 0..8 {
        for value in 0..64 {
            let (mut one, mut rest) = ([0; 8], [63; 8]);
            (one[place], rest[place]) = (value, 63 - value);
            check(one, rest);
            check(rest, one);
        }
    }
}

#[test]
fn all_bits_of_the_twelve_bytes_are_used_once() {
    for bit in 0..96 {
        let mut bytes = [0_u8; 12];
        bytes[bit / 8] = 1 << (bit % 8);
        let packed = KScales(bytes);
        let ones: u32 = packed.scales().iter().chain(&packed.mins()).map(|n| n.count_ones()).sum();
        assert_eq!(ones, 1, "bit {bit}");
        assert_eq!(pack(packed.scales(), packed.mins()), packed);
    }
}

#[test]
fn what_is_packed_is_read_again() {
    let scales = [0, 63, 1, 62, 33, 16, 48, 15];
    let mins = [63, 0, 17, 32, 5, 59, 31, 47];
    let packed = KScales::pack(scales, mins);
    assert_eq!((packed.scales(), packed.mins()), (scales, mins));
}
