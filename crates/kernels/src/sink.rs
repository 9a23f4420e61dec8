//! Where the outputs of a product go.

use crate::LANES;
use crate::parallel::Tile;

/// Columns of some rows of an output, as a product hands its groups over.
///
/// It gives places and not a closure that stores: one would be compiled for any processor, and
/// sixteen outputs take four stores there.
#[derive(Debug)]
pub(crate) struct Sink<'s, 't> {
    tile: &'s mut Tile<'t>,
    /// Row of the weights whose outputs are the tile's first column.
    column: usize,
    /// Row of activations whose outputs are the tile's first row.
    row: usize,
    /// Whether two rows of activations add up to one of the output.
    in_pairs: bool,
}

impl<'s, 't> Sink<'s, 't> {
    /// The columns of a tile, for all rows of activations, or for pairs of them.
    pub(crate) fn columns(tile: &'s mut Tile<'t>, in_pairs: bool) -> Self {
        let column = tile.column();
        Self { tile, column, row: 0, in_pairs }
    }

    /// A whole tile, for the outputs from `row` of the activations and `column` on.
    pub(crate) fn part(tile: &'s mut Tile<'t>, (row, column): (usize, usize)) -> Self {
        Self { tile, column, row, in_pairs: false }
    }

    /// Whether this row of activations is added to the row before it.
    #[inline]
    pub(crate) fn adds(&self, row: usize) -> bool {
        self.in_pairs && row % 2 == 1
    }

    /// Where the sixteen outputs of one group and row of activations go; nothing of a last group
    /// that has fewer, whose outputs `put_part` takes.
    #[inline]
    pub(crate) fn place(&mut self, group: usize, row: usize) -> Option<&mut [f32; LANES]> {
        self.outputs(group, row).first_chunk_mut()
    }

    /// The tile's part of one row, from the outputs of a group on.
    #[inline]
    fn outputs(&mut self, group: usize, row: usize) -> &mut [f32] {
        let from = group * LANES - self.column;
        &mut self.tile.row((row - self.row) >> u32::from(self.in_pairs))[from..]
    }

    /// Stores the outputs of a last group that has fewer than sixteen rows. Kept apart, so that
    /// a whole group stays one store and does not become a call that copies any length.
    #[cold]
    #[inline(never)]
    pub(crate) fn put_part(&mut self, group: usize, row: usize, lanes: &[f32; LANES]) {
        let adds = self.adds(row);
        for (to, lane) in self.outputs(group, row).iter_mut().zip(lanes) {
            *to = if adds { *to + lane } else { *lane };
        }
    }

    /// Stores sixteen outputs of one group and row of activations, as many as there are.
    #[inline]
    pub(crate) fn put(&mut self, group: usize, row: usize, lanes: &[f32; LANES]) {
        let adds = self.adds(row);
        match self.place(group, row) {
            Some(to) if adds => to.iter_mut().zip(lanes).for_each(|(to, lane)| *to += lane),
            Some(to) => *to = *lanes,
            None => self.put_part(group, row, lanes),
        }
    }
}
