//! A range of counts, drawn log-uniformly, as `64..1024` or as one number.

use std::fmt;
use std::str::FromStr;

use crate::error::SettingError;

/// Most words of a prompt, and most tokens of an answer.
pub const COUNT_MAX: u32 = 1 << 20;

/// Counts from `least` to `most`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    least: u32,
    most: u32,
}

impl Counts {
    /// # Errors
    /// If a bound is 0 or above [`COUNT_MAX`], or the range is empty.
    pub fn from_bounds(least: u32, most: u32) -> Result<Self, SettingError> {
        let is_sound = 1 <= least && least <= most && most <= COUNT_MAX;
        if is_sound { Ok(Self { least, most }) } else { Err(SettingError::Counts { least, most }) }
    }

    /// The count for a number `u` in (0, 1): the density of `k` is `ln((k + 1) / k)`, up to a
    /// factor, so every octave is as likely as the next.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value lies between the bounds, which are u32"
    )]
    pub(crate) fn at(self, u: f64) -> u32 {
        let (low, high) = (f64::from(self.least), f64::from(self.most) + 1.0);
        let drawn = low * libm::pow(high / low, u);
        (drawn as u32).clamp(self.least, self.most)
    }

    /// The mean of what [`Counts::at`] gives for uniform `u`.
    pub fn mean(self) -> f64 {
        let (low, high) = (f64::from(self.least), f64::from(self.most) + 1.0);
        let terms = (self.least..=self.most).map(|count| {
            let count = f64::from(count);
            count * libm::log((count + 1.0) / count)
        });
        terms.sum::<f64>() / libm::log(high / low)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.least, self.most)
    }
}

impl FromStr for Counts {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let number = |part: &str| {
            let unread = |_| SettingError::NotCounts { text: text.to_owned() };
            part.trim().parse::<u32>().map_err(unread)
        };
        Self::from_bounds(number(least)?, number(most)?)
    }
}

#[cfg(test)]
mod tests;
