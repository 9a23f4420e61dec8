//! A length of time as people type it: `240s`, `4m`, `500ms`, or seconds without a unit.

use std::str::FromStr;
use std::time::Duration;

use crate::error::SettingError;

/// The longest span, in seconds: a day.
const SECONDS_MAX: f64 = 86_400.0;

/// A length of time, a day at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(Duration);

impl Span {
    pub fn duration(self) -> Duration {
        self.0
    }

    /// This span and another one after it.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// Whole microseconds.
    pub(crate) fn us(self) -> u64 {
        u64::try_from(self.0.as_micros()).expect("two days have fewer microseconds than 2^64")
    }
}

impl FromStr for Span {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let refusal = || SettingError::NotSpan { text: text.to_owned() };
        let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)];
        let (number, scale) = units
            .iter()
            .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))
            .unwrap_or((text, 1.0));
        let seconds = number.parse::<f64>().map_err(|_| refusal())? * scale;
        let is_sound = (0.0..=SECONDS_MAX).contains(&seconds);
        if is_sound { Ok(Self(Duration::from_secs_f64(seconds))) } else { Err(refusal()) }
    }
}

#[cfg(test)]
mod tests;
