//! When requests arrive: at random, as a trace says, or as soon as another has ended.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use crate::draw::{Draws, Purpose};
use crate::error::{SettingError, in_range};

/// Requests a second.
const RATE_RANGE: RangeInclusive<f64> = 1e-4..=1e5;
/// Most requests at a time in a closed loop.
pub const CONCURRENCY_MAX: usize = 10_000;
/// The range of the coefficient of variation.
const CV_RANGE: RangeInclusive<f64> = 0.05..=50.0;

/// How arrivals come about.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// Independent arrivals: gaps are exponential with mean 1 / `rate` seconds.
    Poisson { rate: f64 },
    /// Gaps follow a gamma distribution of mean 1 / `rate` seconds and coefficient of variation
    /// `cv`: above 1 they come in bursts, below 1 they are more regular than chance.
    Gamma { rate: f64, cv: f64 },
    /// Arrivals and lengths of a file.
    Trace { path: PathBuf },
    /// A closed loop: each of `count` clients sends when its last answer has ended.
    Concurrency { count: usize },
}

impl Arrivals {
    /// The gap before arrival `index`, in seconds; none where arrivals are not drawn.
    pub(crate) fn gap_s(&self, draws: &Draws, index: u64) -> Option<f64> {
        match *self {
            Self::Poisson { rate } => {
                Some(exponential(draws.uniform(Purpose::Gap, index, 0)) / rate)
            }
            Self::Gamma { rate, cv } => {
                let shape = 1.0 / (cv * cv);
                Some(gamma(draws, index, shape) / (shape * rate))
            }
            Self::Trace { .. } | Self::Concurrency { .. } => None,
        }
    }
}

/// An exponential variable of mean 1.
fn exponential(u: f64) -> f64 {
    -libm::log(u)
}

/// Most tries of the rejection below; each is accepted with a chance above 0.95.
const TRIES_MAX: u64 = 64;

/// A gamma variable of scale 1 (Marsaglia and Tsang 2000); below shape 1, one of shape + 1 times
/// `u^(1 / shape)`.
fn gamma(draws: &Draws, index: u64, shape: f64) -> f64 {
    let u = |place| draws.uniform(Purpose::Gap, index, place);
    if shape < 1.0 {
        return gamma(draws, index, shape + 1.0) * libm::pow(u(0), 1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    for attempt in 0..TRIES_MAX {
        let place = 1 + 3 * attempt;
        let turn = std::f64::consts::TAU * u(place + 1);
        let normal = (-2.0 * libm::log(u(place))).sqrt() * libm::cos(turn);
        let root = 1.0 + c * normal;
        let v = root * root * root;
        let bound = 0.5 * normal * normal + d - d * v + d * libm::log(v.max(f64::MIN_POSITIVE));
        if v > 0.0 && libm::log(u(place + 2)) < bound {
            return d * v;
        }
    }
    // One gap in 10^80 is the mean instead.
    shape
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisson { rate } => write!(f, "poisson:{rate}"),
            Self::Gamma { rate, cv } => write!(f, "gamma:{rate},{cv}"),
            Self::Trace { path } => write!(f, "trace:{}", path.display()),
            Self::Concurrency { count } => write!(f, "concurrency:{count}"),
        }
    }
}

impl FromStr for Arrivals {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let refusal = || SettingError::NotArrivals { text: text.to_owned() };
        let number = |part: &str| part.trim().parse::<f64>().map_err(|_| refusal());
        let (kind, rest) = text.split_once(':').ok_or_else(refusal)?;
        match kind {
            "poisson" => Ok(Self::Poisson { rate: sound_rate(number(rest)?)? }),
            "gamma" => {
                let (rate, cv) = rest.split_once(',').ok_or_else(refusal)?;
                let cv = in_range("the coefficient of variation", number(cv)?, &CV_RANGE)?;
                Ok(Self::Gamma { rate: sound_rate(number(rate)?)?, cv })
            }
            "trace" if !rest.is_empty() => Ok(Self::Trace { path: PathBuf::from(rest) }),
            "concurrency" => {
                let count = rest.trim().parse::<usize>().map_err(|_| refusal())?;
                let is_sound = (1..=CONCURRENCY_MAX).contains(&count);
                if is_sound {
                    Ok(Self::Concurrency { count })
                } else {
                    Err(SettingError::Concurrency { count })
                }
            }
            _ => Err(refusal()),
        }
    }
}

fn sound_rate(rate: f64) -> Result<f64, SettingError> {
    in_range("the rate of arrivals", rate, &RATE_RANGE)
}

#[cfg(test)]
mod tests;
