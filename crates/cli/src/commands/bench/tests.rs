//! The median is the middle figure, or the mean of the middle two.

use super::Spread;
use super::machine::Resident;

#[test]
fn the_median_is_the_middle() {
    let check = |figures: &[f64], want: [f64; 3]| {
        let Spread { min, median, max } = Spread::of(figures.to_vec());
        assert_eq!([min, median, max].map(f64::to_bits), want.map(f64::to_bits));
    };
    check(&[3.0], [3.0, 3.0, 3.0]);
    check(&[3.0, 1.0], [1.0, 2.0, 3.0]);
    check(&[5.0, 1.0, 2.0], [1.0, 2.0, 5.0]);
    check(&[4.0, 1.0, 2.0, 9.0], [1.0, 3.0, 9.0]);
}

#[test]
fn resident_memory_is_read_in_bytes() {
    let check = |status: &str, resident_bytes, peak_bytes| {
        assert_eq!(
            Resident::of_status(status),
            Resident { resident_bytes, peak_bytes },
            "{status}"
        );
    };
    check("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n", Some(1 << 20), Some(2 << 20));
    check("VmRSS:\t    7 kB\n", Some(7 << 10), None);
    check("VmRSS: many\nVmHWM: 5 MB\n", None, None);
    check("", None, None);
}
