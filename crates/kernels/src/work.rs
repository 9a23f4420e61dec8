//! Plain loops of other rooms, compiled once for each width of vectors.

use crate::Isa;

/// Work over plain slices, such as a whole row of logits, that each path compiles for itself.
///
/// The source is the same for all: multiplies and adds stay apart, and a sum keeps its lanes, so
/// that every width gives the same bits. `run` has to be `#[inline(always)]`, and so has whatever
/// it should take along.
pub trait Work {
    type Out;

    fn run(self) -> Self::Out;
}

/// Does the work on the widest vectors that this CPU has.
pub fn widest<W: Work>(work: W) -> W::Out {
    Isa::best().run(work)
}
