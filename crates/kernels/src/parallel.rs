//! A small pool of threads that shares out work items, each computed exactly once.
//!
//! Results cannot depend on timing: who computes an item is free, what it computes is not.
#![expect(unsafe_code, reason = "work borrows the caller's stack and writes disjoint parts")]

use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};

use crate::QuantisedRows;
use crate::activations::{ActivationBlock, BlockPlaces};

/// Turns of the waiting loop before a worker parks: some tens of microseconds.
const SPINS: u32 = 4_000;
/// Turns of the loop that waits for the other threads before it lets others run.
const SPINS_BEFORE_YIELD: u32 = 2_000;
/// Set in `Shared::gate` while a job may be joined; the rest counts who is inside.
const OPEN: usize = 1 << 31;

type Work<'a> = &'a (dyn Fn(usize) + Sync);
/// Computes some rows, the first of which is named, and their blocks.
type RowsWork<'a> = &'a (dyn Fn(usize, &mut [f32], &mut BlockCell<'_>) + Sync);

/// One call of `Pool::run`, as the workers see it.
#[derive(Clone, Copy)]
struct Job {
    work: Work<'static>,
    items: usize,
    /// Items of all jobs before.
    before: u64,
}

/// Where a thread's share of the items goes on, on a cache line of its own: claiming from it costs
/// another core's answer only once that core has run out of items.
///
/// Items are numbered on from job to job, so that a number of an earlier job lies below the share
/// and nobody has to set it back.
#[repr(align(128))]
struct Share(AtomicU64);

impl Share {
    /// The next number of a range that lies above those of all jobs before.
    fn claim(&self, range: &Range<u64>) -> Option<u64> {
        let after = |number: u64| {
            let claimed = number.max(range.start);
            (claimed < range.end).then_some(claimed + 1)
        };
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after);
        before.ok().map(|number| number.max(range.start))
    }
}

struct Shared {
    /// Counts the jobs; a change wakes the spinning workers.
    epoch: AtomicUsize,
    gate: AtomicUsize,
    /// Of each thread, the caller's first.
    shares: Box<[Share]>,
    stopping: AtomicBool,
    job: UnsafeCell<Option<Job>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `job` is written only while the gate is closed and nobody is inside, and read only by
// workers that passed the open gate; everything else in it is synchronised by itself.
unsafe impl Sync for Shared {}
// SAFETY: as above; the job's borrow is `Sync`, so it may be used from any thread.
unsafe impl Send for Shared {}

struct Worker {
    thread: Thread,
    parked: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
}

/// A fixed number of threads, the caller's among them.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    /// One job at a time; counts the items of all.
    turn: Mutex<u64>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish_non_exhaustive()
    }
}

impl Pool {
    /// Most threads a pool may have.
    pub const THREADS_MAX: usize = 256;

    /// Starts `threads - 1` workers beside the caller; a thread the system refuses is left out.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let threads = threads.clamp(1, Self::THREADS_MAX);
        let shared = Arc::new(Shared {
            epoch: AtomicUsize::new(0),
            gate: AtomicUsize::new(0),
            shares: (0..threads).map(|_| Share(AtomicU64::new(0))).collect(),
            stopping: AtomicBool::new(false),
            job: UnsafeCell::new(None),
            panic: Mutex::new(None),
        });
        let start = |index: usize| {
            let (shared, parked) = (Arc::clone(&shared), Arc::new(AtomicBool::new(false)));
            let seen = Arc::clone(&parked);
            let builder = std::thread::Builder::new().name(format!("causeway-{index}"));
            let handle = builder.spawn(move || worker_loop(&shared, index, &seen)).ok()?;
            Some(Worker { thread: handle.thread().clone(), parked, handle: Some(handle) })
        };
        let workers = (1..threads).filter_map(start).collect();
        Self { shared, workers, turn: Mutex::new(0) }
    }

    /// Threads that compute, the caller's among them.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `work` once for every item below `items`, on all threads, and returns when all ran.
    ///
    /// # Panics
    /// Passes on the first panic of `work`, once every item that had started has ended.
    pub fn run(&self, items: usize, work: Work<'_>) {
        if self.workers.is_empty() || items <= 1 {
            (0..items).for_each(work);
            return;
        }
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: only the lifetime changes, and this function does not return before the gate
        // is closed and everyone has left, so no worker keeps the borrow any longer.
        let work: Work<'static> = unsafe { std::mem::transmute::<Work<'_>, Work<'static>>(work) };
        let job = Job { work, items, before: *turn };
        *turn += items as u64;
        // SAFETY: the gate is closed and nobody is inside: the last job waited for that.
        unsafe { *self.shared.job.get() = Some(job) };
        self.shared.gate.store(OPEN, Ordering::Release);
        self.shared.epoch.fetch_add(1, Ordering::SeqCst);
        for worker in &self.workers {
            if worker.parked.load(Ordering::SeqCst) {
                worker.thread.unpark();
            }
        }
        self.shared.work_through(job, 0);
        self.close();
        drop(turn);
        let panic = self.shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Lets nobody new in and waits until everyone has left.
    fn close(&self) {
        self.shared.gate.fetch_and(!OPEN, Ordering::AcqRel);
        wait_for_zero(&self.shared.gate);
    }

    /// A step in which each thread only waits for all others: what handing work over costs.
    pub fn barrier(&self) {
        let missing = AtomicUsize::new(self.threads());
        self.run(self.threads(), &|_| {
            missing.fetch_sub(1, Ordering::AcqRel);
            wait_for_zero(&missing);
        });
    }

    /// Cuts `slice` into chunks of `len` and computes each chunk once.
    ///
    /// # Panics
    /// If `len` is 0 while the slice is not empty.
    pub fn chunks<T: Send>(
        &self,
        slice: &mut [T],
        len: usize,
        work: &(dyn Fn(usize, &mut [T]) + Sync),
    ) {
        if slice.is_empty() {
            return;
        }
        let (total, base) = (slice.len(), SendPtr(slice.as_mut_ptr()));
        self.run(total.div_ceil(len), &|index| {
            let start = index * len;
            // SAFETY: `start` is below `total`, so the pointer stays inside the slice.
            let first = unsafe { base.get().add(start) };
            // SAFETY: chunks of different items do not overlap, each item runs once, and the
            // slice is borrowed until `run` returns.
            let chunk = unsafe { std::slice::from_raw_parts_mut(first, len.min(total - start)) };
            work(index, chunk);
        });
    }

    /// Cuts rows of numbers and the quantised ones that they become at `bounds`, and computes each
    /// interval once: its first row, its rows, and all their blocks.
    ///
    /// # Panics
    /// If `x` has not as many rows, or the bounds do not ascend.
    pub(crate) fn rows_and_blocks(
        &self,
        (x, row_len): (&mut [f32], usize),
        rows: &mut QuantisedRows,
        bounds: &[usize],
        work: RowsWork<'_>,
    ) {
        assert!(bounds.last().is_none_or(|&end| end * row_len <= x.len()), "rows there are");
        let base = SendPtr(x.as_mut_ptr());
        let cut = Cut { rows: bounds, width: rows.blocks.max(1) };
        self.block_cells(rows, cut, &|item, cell| {
            let (start, end) = (bounds[item] * row_len, bounds[item + 1] * row_len);
            // SAFETY: `start` lies inside the slice: the bounds ascend to at most its rows.
            let first = unsafe { base.get().add(start) };
            // SAFETY: intervals of different items do not overlap, each item runs once, and the
            // slice is borrowed until `run` returns.
            let x = unsafe { std::slice::from_raw_parts_mut(first, end - start) };
            work(bounds[item], x, cell);
        });
    }

    /// Cuts quantised rows along `cut` and computes each cell once.
    ///
    /// # Panics
    /// If the cut's rows do not ascend.
    pub(crate) fn block_cells(
        &self,
        rows: &mut QuantisedRows,
        cut: Cut<'_>,
        work: &(dyn Fn(usize, &mut BlockCell<'_>) + Sync),
    ) {
        let (places, blocks) = (rows.places(), rows.blocks);
        let base = SendPtr(rows.tiles.as_mut_ptr());
        let len = rows.tiles.len();
        self.run(cut.cells(blocks), &|item| {
            let (rows, columns) = cut.cell(item, blocks);
            let borrow = PhantomData;
            work(item, &mut BlockCell { base: base.get(), len, places, rows, columns, borrow });
        });
    }

    /// Cuts `out`, rows of `row_len` numbers, along `cut` and computes each cell once.
    ///
    /// # Panics
    /// If the cut's rows do not ascend, or `out` has fewer.
    pub fn cells(
        &self,
        (out, row_len): (&mut [f32], usize),
        cut: Cut<'_>,
        work: &(dyn Fn(usize, &mut Cell<'_>) + Sync),
    ) {
        assert!(cut.rows.last().is_none_or(|&end| end * row_len <= out.len()), "rows there are");
        let base = SendPtr(out.as_mut_ptr());
        self.run(cut.cells(row_len), &|item| {
            let (rows, columns) = cut.cell(item, row_len);
            let borrow = PhantomData;
            work(item, &mut Cell { base: base.get(), row_len, rows, columns, borrow });
        });
    }

    /// Cuts the columns of every output into tiles of its width and computes each tile once.
    ///
    /// # Panics
    /// If a row length or width is 0, or an output is not whole rows.
    pub fn tiles(&self, outputs: &mut [Tiled<'_>], work: &(dyn Fn(usize, &mut Tile<'_>) + Sync)) {
        let mut ends = Vec::with_capacity(outputs.len());
        let mut items = 0;
        for Tiled { out, row_len, width } in outputs.iter_mut() {
            assert!(*row_len > 0 && *width > 0 && out.len().is_multiple_of(*row_len), "whole rows");
            items += row_len.div_ceil(*width);
            ends.push((items, SendPtr(out.as_mut_ptr()), out.len() / *row_len, *row_len, *width));
        }
        self.run(items, &|item| {
            let output = ends.partition_point(|end| end.0 <= item);
            let (end, base, rows, row_len, width) = &ends[output];
            let column = (item + row_len.div_ceil(*width) - end) * width;
            let width = (*width).min(row_len - column);
            let (base, rows, row_len) = (base.get(), *rows, *row_len);
            work(output, &mut Tile { base, rows, row_len, column, width, borrow: PhantomData });
        });
    }
}

/// How rows and columns are cut into cells, the cells of a row interval side by side.
#[derive(Debug, Clone, Copy)]
pub struct Cut<'a> {
    /// Where each interval of rows begins, ascending, and where the last one ends.
    pub rows: &'a [usize],
    /// Columns of a cell; the last of a row may have fewer.
    pub width: usize,
}

impl Cut<'_> {
    fn cells(&self, columns: usize) -> usize {
        assert!(self.width > 0 && self.rows.is_sorted(), "cells do not overlap");
        self.rows.len().saturating_sub(1) * columns.div_ceil(self.width)
    }

    /// Rows and columns of one cell.
    fn cell(&self, item: usize, columns: usize) -> (Range<usize>, Range<usize>) {
        let across = columns.div_ceil(self.width);
        let (interval, start) = (item / across, item % across * self.width);
        let rows = self.rows[interval]..self.rows[interval + 1];
        (rows, start..columns.min(start + self.width))
    }
}

/// Some columns of some rows of an output.
#[derive(Debug)]
pub struct Cell<'a> {
    base: *mut f32,
    row_len: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    borrow: PhantomData<&'a mut [f32]>,
}

impl Cell<'_> {
    /// The cell's part of one row.
    ///
    /// # Panics
    /// If the row is not the cell's.
    pub fn row(&mut self, row: usize) -> &mut [f32] {
        assert!(self.rows.contains(&row), "row {row} of {:?}", self.rows);
        // SAFETY: the output has the cell's rows, and its columns lie inside a row.
        let first = unsafe { self.base.add(row * self.row_len + self.columns.start) };
        // SAFETY: cells do not overlap, each is one item's, and `&mut self` keeps two parts of
        // one cell from being borrowed at once.
        unsafe { std::slice::from_raw_parts_mut(first, self.columns.len()) }
    }
}

/// Some blocks of some quantised rows.
#[derive(Debug)]
pub(crate) struct BlockCell<'a> {
    base: *mut ActivationBlock,
    len: usize,
    places: BlockPlaces,
    rows: Range<usize>,
    columns: Range<usize>,
    borrow: PhantomData<&'a mut [ActivationBlock]>,
}

impl BlockCell<'_> {
    /// The cell's blocks of each of its rows.
    pub(crate) fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// One block of one row.
    ///
    /// # Panics
    /// If the block is not the cell's.
    pub(crate) fn block(&mut self, row: usize, block: usize) -> &mut ActivationBlock {
        assert!(self.rows.contains(&row) && self.columns.contains(&block), "inside the cell");
        let place = self.places.place(row, block);
        assert!(place < self.len, "inside the rows");
        // SAFETY: the place is inside the slice.
        let block = unsafe { self.base.add(place) };
        // SAFETY: no two blocks have one place, cells do not overlap, each is one item's, and
        // `&mut self` keeps two blocks of one cell from being borrowed at once.
        unsafe { &mut *block }
    }
}

/// An output of rows of `row_len`, to be cut into tiles of `width` columns.
#[derive(Debug)]
pub struct Tiled<'a> {
    pub out: &'a mut [f32],
    pub row_len: usize,
    pub width: usize,
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.epoch.fetch_add(1, Ordering::SeqCst);
        for worker in &mut self.workers {
            worker.thread.unpark();
            if let Some(handle) = worker.handle.take() {
                // A worker's panics are caught and passed on by `run`.
                let _ = handle.join();
            }
        }
    }
}

/// The columns `column..column + width` of every row of an output.
#[derive(Debug)]
pub struct Tile<'a> {
    base: *mut f32,
    rows: usize,
    row_len: usize,
    column: usize,
    width: usize,
    borrow: PhantomData<&'a mut [f32]>,
}

impl<'a> Tile<'a> {
    /// All of an output of rows of `row_len`.
    ///
    /// # Panics
    /// If it is not whole rows.
    pub(crate) fn of(out: &'a mut [f32], row_len: usize) -> Self {
        assert!(row_len > 0 && out.len().is_multiple_of(row_len), "whole rows");
        let (rows, base, borrow) = (out.len() / row_len, out.as_mut_ptr(), PhantomData);
        Self { base, rows, row_len, column: 0, width: row_len, borrow }
    }

    /// First column of the tile.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// Columns of the tile.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The tile's part of one row.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn row(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: the row exists and `column` lies inside it.
        let first = unsafe { self.base.add(row * self.row_len + self.column) };
        // SAFETY: `column + width <= row_len`, tiles of different items do not overlap, and
        // `&mut self` keeps two parts of one tile from being borrowed at once.
        unsafe { std::slice::from_raw_parts_mut(first, self.width) }
    }
}

struct SendPtr<T>(*mut T);

// SAFETY: the pointer is only used to reach disjoint parts of one borrowed slice.
unsafe impl<T: Send> Sync for SendPtr<T> {}

impl<T> SendPtr<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

impl Shared {
    /// Claims items until there is none left, first of the thread's own share and then of the
    /// others'; keeps the first panic.
    fn work_through(&self, job: Job, own: usize) {
        let shares = || (own..self.shares.len()).chain(0..own);
        let claim = || {
            for share in shares() {
                let range = self.range(job, share);
                while let Some(number) = self.shares[share].claim(&range) {
                    #[expect(clippy::cast_possible_truncation, reason = "below the job's items")]
                    (job.work)((number - job.before) as usize);
                }
            }
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(claim)) {
            for share in shares() {
                let end = self.range(job, share).end;
                self.shares[share].0.fetch_max(end, Ordering::Relaxed);
            }
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(panic);
        }
    }

    /// Numbers of the items of a share: as many as any other's, but for one.
    fn range(&self, job: Job, share: usize) -> Range<u64> {
        let from = |share: usize| job.before + (job.items * share / self.shares.len()) as u64;
        from(share)..from(share + 1)
    }

    /// Steps through the gate if it is open.
    fn enter(&self) -> bool {
        let inside = |gate: usize| (gate & OPEN != 0).then_some(gate + 1);
        self.gate.fetch_update(Ordering::AcqRel, Ordering::Relaxed, inside).is_ok()
    }
}

/// Spins until the count is 0, and lets others run where that takes long.
fn wait_for_zero(count: &AtomicUsize) {
    let mut spins = 0u32;
    while count.load(Ordering::Acquire) != 0 {
        spins = spins.saturating_add(1);
        if spins < SPINS_BEFORE_YIELD {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

fn worker_loop(shared: &Shared, index: usize, parked: &AtomicBool) {
    let mut seen = 0;
    loop {
        seen = wait_for_epoch(shared, parked, seen);
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        if shared.enter() {
            // SAFETY: the gate was open, so the job is set and stays until we leave.
            let job = unsafe { *shared.job.get() };
            shared.work_through(job.expect("invariant: an open gate has a job"), index);
            shared.gate.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Waits until the epoch is another than `seen`: spins for a while, then parks.
fn wait_for_epoch(shared: &Shared, parked: &AtomicBool, seen: usize) -> usize {
    for _ in 0..SPINS {
        let epoch = shared.epoch.load(Ordering::Acquire);
        if epoch != seen {
            return epoch;
        }
        std::hint::spin_loop();
    }
    parked.store(true, Ordering::SeqCst);
    let epoch = loop {
        let epoch = shared.epoch.load(Ordering::SeqCst);
        if epoch != seen {
            break epoch;
        }
        std::thread::park();
    };
    parked.store(false, Ordering::SeqCst);
    epoch
}

#[cfg(test)]
mod tests;
