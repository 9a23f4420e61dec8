//! What a tensor's values are like, in a few numbers.

use crate::{Tensor, WeightsError};

/// A tensor's values in brief. The numbers are of the finite values alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Smallest and largest value; `None` where no value is finite.
    pub range: Option<(f32, f32)>,
    /// Mean, 0 where no value is finite.
    pub mean: f64,
    /// Square root of the mean of squares, 0 where no value is finite.
    pub rms: f64,
    /// Values that are infinite or not a number.
    pub non_finite: usize,
}

impl Tensor<'_> {
    /// Reads all values once, a row at a time, and sums them in `f64`.
    pub fn summary(&self) -> Result<Summary, WeightsError> {
        let mut row = vec![0.0_f32; self.row_len_readable()?];
        let (mut range, mut count) = (None, 0_usize);
        let (mut sum, mut squares) = (0.0_f64, 0.0_f64);
        for index in 0..self.rows() {
            self.dequantize_row(index, &mut row)?;
            for &value in row.iter().filter(|value| value.is_finite()) {
                let (least, most) = range.unwrap_or((value, value));
                range = Some((value.min(least), value.max(most)));
                count += 1;
                sum += f64::from(value);
                squares += f64::from(value) * f64::from(value);
            }
        }
        let mean_of = |sum: f64| if count == 0 { 0.0 } else { sum / count as f64 };
        Ok(Summary {
            range,
            mean: mean_of(sum),
            rms: mean_of(squares).sqrt(),
            non_finite: self.elements() - count,
        })
    }

    /// The first values, at most `count`.
    pub fn first_values(&self, count: usize) -> Result<Vec<f32>, WeightsError> {
        let mut row = vec![0.0_f32; self.row_len_readable()?];
        let mut first = Vec::new();
        for index in 0..self.rows() {
            if first.len() >= count {
                break;
            }
            self.dequantize_row(index, &mut row)?;
            first.extend(row.iter().take(count - first.len()));
        }
        Ok(first)
    }
}

#[cfg(test)]
mod tests;
