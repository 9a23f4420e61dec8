//! The packed 6-bit scales, one value at a time.

use bytemuck::Zeroable;

use super::BlockQ3_K;

/// Packs sixteen scales, −32 to 31, as the drawing says.
fn pack(scales: [i8; 16]) -> [u8; 12] {
    let mut bytes = [0; 12];
    for (group, scale) in scales.into_iter().enumerate() {
        let six = (scale + 32).cast_unsigned();
        bytes[group % 8] |= (six & 15) << (if group < 8 { 0 } else { 4 });
        bytes[8 + group % 4] |= (six >> 4) << (2 * (group / 4));
    }
    bytes
}

#[test]
fn each_scale_comes_back_from_each_place() {
    for place in 0..16 {
        for scale in -32..32 {
            for rest in [-32, 31] {
                let mut scales = [rest; 16];
                scales[place] = scale;
                let block = BlockQ3_K { scales: pack(scales), ..BlockQ3_K::zeroed() };
                assert_eq!(block.scales(), scales);
            }
        }
    }
}

#[test]
fn a_zero_in_the_mask_subtracts_four() {
    let block = BlockQ3_K { qs: [0b1110_0100; 64], ..BlockQ3_K::zeroed() };
    let quants = block.quants();
    assert_eq!((quants[0], quants[32], quants[64], quants[96]), (-4, -3, -2, -1));
    let quants = BlockQ3_K { hmask: [0xff; 32], ..block }.quants();
    assert_eq!((quants[128], quants[160], quants[192], quants[224]), (0, 1, 2, 3));
}
