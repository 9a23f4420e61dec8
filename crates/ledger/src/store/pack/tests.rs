//! Packed steps: what they take, and bytes that are none.

use super::*;
use crate::tests::{golden, random_numbers, sample};

#[test]
fn a_step_takes_a_fraction_of_its_json() {
    let record = sample();
    let json: usize =
        record.steps.iter().map(|step| serde_json::to_string(step).unwrap().len()).sum();
    let packed = pack_steps(&record.steps).len();
    assert!(packed * 4 < json, "{packed} of {json}");
}

#[test]
fn numbers_of_every_length_read_back() {
    let mut numbers: Vec<u64> = (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit]).collect();
    numbers.push(u64::MAX);
    for number in numbers {
        let mut bytes = Vec::new();
        push_number(&mut bytes, number);
        let mut packed = Packed { bytes: &bytes, offset: 0 };
        assert_eq!(packed.number::<u64>(), Ok(number));
        assert_eq!(packed.end(), Ok(()));
        assert_eq!(unzigzag(zigzag(number)), number);
    }
}

#[test]
fn bytes_that_are_no_steps_are_refused() {
    let check = |bytes: &[u8], want: &str| {
        let error = unpack_steps(bytes).unwrap_err();
        assert_eq!(error.to_string(), want);
        assert!(!error.is_callers_mistake());
    };
    check(&[], "it ends at byte 0, inside a value");
    check(&[2], "packing version 2, where only 1 is known");
    check(&[1, 0x80], "it ends at byte 2, inside a value");
    check(&[1, 9, 0, 0], "a count of 9 does not fit into 2 bytes");
    check(&[1, 0, 0, 0, 7], "1 bytes follow its end");
    check(&[&[1], &[0xff; 11][..]].concat(), "a number at byte 1 is out of range");
    check(&[1, 0, 0xff, 0xff, 0xff, 0xff, 0x7f, 0], "a number at byte 2 is out of range");
    check(&[1, 0, 0, 1, 1, 0xff], "a text at byte 4 is not UTF-8");
    let mut packed = pack_steps(&golden().steps);
    // The first fraction of the first step lies behind its flags, token and piece.
    let piece = packed.windows(4).position(|bytes| bytes == b" say").unwrap();
    packed[piece + 4..piece + 12].copy_from_slice(&f64::NAN.to_le_bytes());
    check(&packed, &format!("a fraction at byte {} is not finite", piece + 4));
}

#[test]
fn a_huge_count_asks_for_no_memory() {
    let mut bytes = vec![VERSION];
    push_number(&mut bytes, u64::MAX);
    bytes.resize(1_000, 0);
    let refused = unpack_steps(&bytes);
    assert!(matches!(refused, Err(PackError::Count { count: u64::MAX, .. })), "{refused:?}");
    let refused = unpack_tokens::<1>(&bytes[1..]);
    assert!(matches!(refused, Err(PackError::Count { .. })), "{refused:?}");
}

/// Whatever the bytes: steps that pack again, or a refusal.
#[test]
fn bytes_changed_by_chance_are_read_or_refused() {
    let whole = pack_steps(&golden().steps);
    let mut numbers = random_numbers(5);
    let mut next = |below: usize| usize::try_from(numbers.next().unwrap()).unwrap() % below;
    let mut read = 0;
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + next(3) {
            let place = next(bytes.len());
            bytes[place] = u8::try_from(next(256)).unwrap();
        }
        bytes.truncate(bytes.len() - next(3));
        if let Ok(steps) = unpack_steps(&bytes) {
            assert_eq!(unpack_steps(&pack_steps(&steps)).unwrap(), steps);
            read += 1;
        }
    }
    assert!(read > 100, "{read}");
}

#[test]
fn token_lists_read_back() {
    let check = |lists: [&[u32]; 2]| {
        let bytes = pack_tokens(&lists);
        assert_eq!(unpack_tokens::<2>(&bytes).unwrap(), lists);
        assert!(unpack_tokens::<2>(&bytes[..bytes.len() - 1]).is_err());
        assert!(matches!(unpack_tokens::<1>(&bytes), Err(PackError::Long { .. })));
    };
    check([&[], &[]]);
    check([&[0, u32::MAX, 127, 128], &[1]]);
}
