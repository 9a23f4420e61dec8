//! no sentence
// f64 in a comment breaks nothing, and neither does "unsafe".

struct QueueManager {
    load: f32,
}

fn do_plan() -> &'static str {
    todo!("f64")
}

#[allow(dead_code)]
fn peek(bytes: &[u8]) -> u8 {
    // TODO: check the length.
    unsafe { *bytes.get_unchecked(0) }
}

mod tests {
    #[test]
    #[ignore]
    fn waits() {}
}
