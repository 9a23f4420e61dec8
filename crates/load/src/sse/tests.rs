//! Server-sent events: every line end, every field, every cut.

use super::*;

/// Events of a text fed in pieces of `size` bytes: texts as they are, errors after `!`.
fn events(text: &[u8], size: usize) -> Result<Vec<String>, Fault> {
    let mut decoder = Decoder::default();
    let mut all = Vec::new();
    for piece in text.chunks(size) {
        for event in decoder.feed(piece)? {
            all.push(match event {
                Event::Text(text) => text,
                Event::Error(text) => format!("!{text}"),
            });
        }
    }
    Ok(all)
}

#[test]
fn events_are_the_same_however_their_bytes_are_cut() {
    let check = |text: &str, want: &[&str]| {
        for size in 1..=text.len() {
            assert_eq!(events(text.as_bytes(), size).unwrap(), want, "{text:?} by {size}");
        }
    };
    check("data: a\n\ndata: b\n\n", &["a", "b"]);
    check("data: a\r\n\r\ndata:b\r\n\r\n", &["a", "b"]);
    check("data: a\r\rdata: b\r\r", &["a", "b"]);
    check("data: a\ndata: b\n\n", &["a\nb"]);
    check("data\n\n", &[""]);
    check("data:  two spaces\n\n", &[" two spaces"]);
    check("\u{feff}data: a\n\n", &["a"]);
    check(": keep-alive\n\n: again\n\ndata: é 猫\n\n", &["é 猫"]);
    check("event: message\nid: 7\nretry: 10\ndata: x\n\n", &["x"]);
    check("error: {\"code\":500}\n\n", &["!{\"code\":500}"]);
    check("\n\n\ndata: a\n\n", &["a"]);
    // An event that its empty line does not end is none.
    check("data: a\n\ndata: b\n", &["a"]);
}

#[test]
fn what_is_no_stream_is_refused() {
    assert_eq!(events(b"data: \xff\xfe\n\n", 3), Err(Fault::Encoding));
    let long = vec![b'x'; EVENT_BYTES_MAX + 1];
    assert_eq!(events(&long, 1 << 16), Err(Fault::Long));
    let lines = b"data: 0123456789abcdef\n".repeat(EVENT_BYTES_MAX / 16 + 2);
    assert_eq!(events(&lines, 1 << 16), Err(Fault::Long));
}
