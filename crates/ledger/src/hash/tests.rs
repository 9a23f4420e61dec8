//! Hashes: a known value, both directions, and every refusal.

use super::*;

#[test]
fn the_hash_is_sha256() {
    // FIPS 180-4's example.
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(Sha256::of(b"abc").to_string(), abc);
    assert_eq!(Sha256::from_hex(abc), Ok(Sha256::of(b"abc")));
}

#[test]
fn a_digest_keeps_its_leading_zeros() {
    let digest = LogitsDigest(0xf00d);
    assert_eq!(digest.to_string(), "0000000000000000000000000000f00d");
    assert_eq!(LogitsDigest::from_hex(&digest.to_string()), Ok(digest));
    let most = LogitsDigest(u128::MAX);
    assert_eq!(LogitsDigest::from_hex(&most.to_string()), Ok(most));
}

#[test]
fn text_that_is_no_hash_is_refused_with_what_is_wrong() {
    let zeros = "0".repeat(64);
    check("", "a hash of 0 characters, where 64 lower-case hexadecimal digits are due");
    check(&zeros[1..], "a hash of 63 characters, where 64 lower-case hexadecimal digits are due");
    check(
        &zeros.replace("00", "0🦀"),
        "a hash with `🦀` in it, where only the digits 0-9 and a-f may stand",
    );
    check(
        &zeros.replace("00", "0A"),
        "a hash with `A` in it, where only the digits 0-9 and a-f may stand",
    );
}

fn check(text: &str, want: &str) {
    let error = Sha256::from_hex(text).unwrap_err();
    assert_eq!(error.to_string(), want);
    assert!(error.is_callers_mistake());
    let json = serde_json::to_string(text).unwrap();
    assert!(serde_json::from_str::<Sha256>(&json).is_err(), "{text}");
    assert!(serde_json::from_str::<LogitsDigest>(&json).is_err(), "{text}");
}
