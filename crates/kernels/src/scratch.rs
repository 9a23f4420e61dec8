//! Short-lived buffers that a thread keeps, for work that would ask the heap for them at each item.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

thread_local! {
    /// What this thread is not using.
    static FREE: Cell<Vec<Vec<f32>>> = const { Cell::new(Vec::new()) };
}

/// Zeros to work on; their memory goes back to the thread that drops them.
#[derive(Debug)]
pub struct Scratch(Vec<f32>);

impl Scratch {
    /// Scratch of `len` numbers, all 0.
    #[must_use]
    pub fn of(len: usize) -> Self {
        let mut free = FREE.take();
        let mut numbers = free.pop().unwrap_or_default();
        FREE.set(free);
        numbers.clear();
        numbers.resize(len, 0.0);
        Self(numbers)
    }
}

impl Deref for Scratch {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut free = FREE.take();
        free.push(std::mem::take(&mut self.0));
        FREE.set(free);
    }
}

#[cfg(test)]
mod tests;
