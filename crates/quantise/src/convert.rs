//! One tensor into another type, its rows shared out among threads, and what was lost.

use std::sync::Mutex;

use causeway_weights::quant::quantize;
use causeway_weights::{DType, Tensor, dequantize};

use crate::{Outcome, QuantiseError};

/// Largest magnitude that a half, and so any block's scale, can hold.
const MAGNITUDE_MAX: f32 = 65_504.0;
/// Values that a thread takes at once, about: its three copies of them stay in its cache.
const VALUES_AT_ONCE: usize = 1 << 14;

/// What was lost in a part of a tensor.
#[derive(Debug, Default, Clone, Copy)]
struct Loss {
    squares: f64,
    max: f32,
    /// A value that is not finite or too large, if there is one.
    bad: Option<f32>,
}

impl Loss {
    fn add(&mut self, other: Self) {
        self.squares += other.squares;
        self.max = self.max.max(other.max);
        self.bad = self.bad.or(other.bad);
    }
}

/// The tensor's bytes as `to`, whose blocks fill its rows, and the report of them.
pub(super) fn convert(
    tensor: &Tensor<'_>,
    to: DType,
    threads: usize,
) -> Result<(Vec<u8>, Outcome), QuantiseError> {
    let (from, elements) = (tensor.dtype, tensor.elements());
    let report = |bytes: usize, loss: Loss| Outcome {
        name: tensor.name.to_owned(),
        from,
        to,
        elements,
        bytes,
        rmse: if elements == 0 { 0.0 } else { (loss.squares / elements as f64).sqrt() },
        max: loss.max,
    };
    if from == to {
        return Ok((tensor.bytes.to_vec(), report(tensor.bytes.len(), Loss::default())));
    }
    let columns = tensor.columns();
    let rows_at_once = (VALUES_AT_ONCE / columns.max(1)).max(1);
    let row_bytes = to.bytes_of(columns).expect("the plan has rows of whole blocks");
    let mut bytes = vec![0; row_bytes * tensor.rows()];
    let pieces = bytes.chunks_mut((row_bytes * rows_at_once).max(1));
    let source = tensor.bytes.chunks((tensor.bytes.len() / tensor.rows().max(1)) * rows_at_once);
    let mut losses = vec![Loss::default(); source.len()];
    let work = pieces.zip(source).zip(losses.iter_mut());
    let queue = Mutex::new(work);
    let drain = || {
        loop {
            let next = queue.lock().expect("no thread panics with the queue").next();
            let Some(((out, source), loss)) = next else {
                break;
            };
            *loss = piece(from, source, to, out);
        }
    };
    std::thread::scope(|scope| (0..threads.max(1)).for_each(|_| drop(scope.spawn(drain))));
    let mut all = Loss::default();
    // In the rows' order, so that the sum is the same on any number of threads.
    losses.into_iter().for_each(|loss| all.add(loss));
    match all.bad {
        Some(value) => Err(QuantiseError::OutOfRange { name: tensor.name.to_owned(), value }),
        None => {
            let outcome = report(bytes.len(), all);
            Ok((bytes, outcome))
        }
    }
}

/// A few rows.
fn piece(from: DType, source: &[u8], to: DType, out: &mut [u8]) -> Loss {
    let count = out.len() / to.block_bytes() * to.block_len();
    let mut values = vec![0.0; count];
    dequantize(from, source, &mut values).expect("the plan has types that are read");
    if let Some(bad) = values.iter().copied().find(|v| !is_in_range(*v, to)) {
        return Loss { bad: Some(bad), ..Loss::default() };
    }
    quantize(to, &values, out).expect("the plan has types that are written");
    let mut again = vec![0.0; count];
    dequantize(to, out, &mut again).expect("what is written is read");
    let mut loss = Loss::default();
    for (values, again) in values.chunks(256).zip(again.chunks(256)) {
        let [mut squares, mut max] = [[0.0_f32; 8]; 2];
        for (at, (value, again)) in values.iter().zip(again).enumerate() {
            let error = (value - again).abs();
            squares[at % 8] += error * error;
            max[at % 8] = if error > max[at % 8] { error } else { max[at % 8] };
        }
        loss.squares += f64::from(squares.iter().sum::<f32>());
        loss.max = max.iter().fold(loss.max, |most, &error| most.max(error));
    }
    loss
}

fn is_in_range(value: f32, to: DType) -> bool {
    if to == DType::F32 { value.is_finite() } else { value.abs() <= MAGNITUDE_MAX }
}
