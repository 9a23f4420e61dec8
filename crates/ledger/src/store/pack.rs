//! Steps and token lists as bytes: about 70 for a step that takes 450 as JSON.
//!
//! Whole numbers are LEB128 (7 bits a byte, lowest first), fractions their 8 bytes, everything
//! little-endian. What is read back is hostile: nothing is taken on trust, and no more memory is
//! asked for than the bytes can fill.

use super::PackError;
use crate::{LogitsDigest, Piece, Reasons, RunnerUp, Shown, Step, StepCause};

/// The packing that this room writes, and the only one it reads; the first byte of the steps.
const VERSION: u8 = 1;

/// Fewest bytes of a packed step: flags, token, empty piece, rank, probability, survivors,
/// entropy, pass, rows, time, digest.
const STEP_BYTES_MIN: usize = 8 + 2 * 8 + 16;

// The flags' bits.
const CAUSE: u8 = 0b11;
/// In the place of a cause: forced, by a field of the policy whose name follows.
const LAID: u8 = 0b11;
const SHOWN_SHIFT: u8 = 2;
const SHOWN: u8 = 0b11 << SHOWN_SHIFT;
const HAS_LOGPROB: u8 = 1 << 4;
const HAS_RUNNER_UP: u8 = 1 << 5;
const HAS_REMOVED_BY: u8 = 1 << 6;
const IS_RAW_BEST: u8 = 1 << 7;

/// Packs steps, whose indexes must follow one another and whose times must not go back.
pub(super) fn pack_steps(steps: &[Step]) -> Vec<u8> {
    let mut stages: Vec<&str> = steps.iter().flat_map(|step| names(&step.reasons)).collect();
    stages.sort_unstable();
    stages.dedup();
    let mut bytes = Vec::with_capacity(64 + 96 * steps.len());
    bytes.push(VERSION);
    push_number(&mut bytes, steps.len() as u64);
    push_number(&mut bytes, steps.first().map_or(0, |step| u64::from(step.step)));
    push_number(&mut bytes, stages.len() as u64);
    stages.iter().for_each(|stage| push_bytes(&mut bytes, stage.as_bytes()));
    let (mut pass_before, mut ns_before) = (0, 0);
    for step in steps {
        push_step(&mut bytes, step, &stages, (pass_before, ns_before));
        (pass_before, ns_before) = (step.pass, step.since_arrival_ns);
    }
    bytes
}

/// Stages and fields that a step names.
fn names(reasons: &Reasons) -> impl Iterator<Item = &str> {
    reasons.removed_by.as_deref().into_iter().chain(reasons.forced_by.as_deref())
}

fn push_step(bytes: &mut Vec<u8>, step: &Step, stages: &[&str], before: (u64, u64)) {
    let Step {
        step: _, // one above the step before it
        token,
        piece: Piece(piece),
        cause,
        shown,
        reasons,
        pass,
        rows,
        since_arrival_ns,
        digest: LogitsDigest(digest),
    } = step;
    let Reasons {
        logprob,
        rank,
        probability,
        survivors,
        entropy,
        raw_best,
        removed_by,
        forced_by,
        runner_up,
    } = reasons;
    let flag = |claim: bool, bit: u8| if claim { bit } else { 0 };
    let name = |name: &String| {
        stages.binary_search(&name.as_str()).expect("every name was collected") as u64
    };
    // Only a forced step can be by a field.
    let forced_by = forced_by.as_ref().filter(|_| *cause == StepCause::Forced);
    bytes.push(
        forced_by.map_or(*cause as u8, |_| LAID)
            | (*shown as u8) << SHOWN_SHIFT
            | flag(logprob.is_some(), HAS_LOGPROB)
            | flag(runner_up.is_some(), HAS_RUNNER_UP)
            | flag(removed_by.is_some(), HAS_REMOVED_BY)
            | flag(raw_best == token, IS_RAW_BEST),
    );
    push_number(bytes, u64::from(*token));
    push_bytes(bytes, piece);
    logprob.iter().for_each(|logprob| push_fraction(bytes, *logprob));
    push_number(bytes, u64::from(*rank));
    push_fraction(bytes, *probability);
    push_number(bytes, u64::from(*survivors));
    push_fraction(bytes, *entropy);
    if raw_best != token {
        push_number(bytes, u64::from(*raw_best));
    }
    removed_by.iter().for_each(|stage| push_number(bytes, name(stage)));
    forced_by.iter().for_each(|field| push_number(bytes, name(field)));
    if let Some(RunnerUp { token, probability }) = runner_up {
        push_number(bytes, u64::from(*token));
        push_fraction(bytes, *probability);
    }
    push_number(bytes, zigzag(pass.wrapping_sub(before.0)));
    push_number(bytes, u64::from(*rows));
    push_number(bytes, since_arrival_ns.wrapping_sub(before.1));
    bytes.extend(digest.to_le_bytes());
}

/// Unpacks what `pack_steps` made.
pub(super) fn unpack_steps(bytes: &[u8]) -> Result<Vec<Step>, PackError> {
    let mut packed = Packed { bytes, offset: 0 };
    let [found] = packed.take()?;
    if found != VERSION {
        return Err(PackError::Version { found, known: VERSION });
    }
    let count = packed.count(STEP_BYTES_MIN)?;
    let first = packed.number::<u32>()?;
    let stage_count = packed.count(1)?;
    let mut stages = Vec::with_capacity(stage_count);
    for _ in 0..stage_count {
        stages.push(packed.text()?);
    }
    let mut steps = Vec::with_capacity(count);
    let (mut pass, mut since_arrival_ns) = (0_u64, 0_u64);
    for index in 0..count {
        let index = u32::try_from(index).ok().and_then(|index| first.checked_add(index));
        let index = index.ok_or(PackError::Range { offset: packed.offset })?;
        let step = packed.step(index, &stages, (pass, since_arrival_ns))?;
        (pass, since_arrival_ns) = (step.pass, step.since_arrival_ns);
        steps.push(step);
    }
    packed.end()?;
    Ok(steps)
}

/// Packs token lists, one after the other.
pub(super) fn pack_tokens(lists: &[&[u32]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for tokens in lists {
        push_number(&mut bytes, tokens.len() as u64);
        tokens.iter().for_each(|token| push_number(&mut bytes, u64::from(*token)));
    }
    bytes
}

/// Unpacks as many token lists as are wanted.
pub(super) fn unpack_tokens<const N: usize>(bytes: &[u8]) -> Result<[Vec<u32>; N], PackError> {
    let mut packed = Packed { bytes, offset: 0 };
    let mut lists = [const { Vec::new() }; N];
    for list in &mut lists {
        let count = packed.count(1)?;
        *list = (0..count).map(|_| packed.number()).collect::<Result<_, _>>()?;
    }
    packed.end()?;
    Ok(lists)
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
}

fn push_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    push_number(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

fn push_fraction(bytes: &mut Vec<u8>, value: f64) {
    bytes.extend(value.to_bits().to_le_bytes());
}

/// A difference with its sign in the lowest bit, so that small ones of either sign stay short.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (difference.cast_signed() >> 63).cast_unsigned()
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

/// Packed bytes on their way back.
struct Packed<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl Packed<'_> {
    fn left(&self) -> &[u8] {
        &self.bytes[self.offset..]
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], PackError> {
        let taken = self.left().first_chunk::<N>().copied();
        let taken = taken.ok_or(PackError::Short { offset: self.offset })?;
        self.offset += N;
        Ok(taken)
    }

    fn number<T: TryFrom<u64>>(&mut self) -> Result<T, PackError> {
        let offset = self.offset;
        let mut number = 0_u64;
        // Ten groups of 7 bits hold 64.
        for group in 0..10 {
            let [byte] = self.take()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * group);
            if shifted >> (7 * group) != bits {
                return Err(PackError::Range { offset });
            }
            number |= shifted;
            if byte & 0x80 == 0 {
                return T::try_from(number).map_err(|_| PackError::Range { offset });
            }
        }
        Err(PackError::Range { offset })
    }

    /// A count of things that take at least so many bytes each.
    fn count(&mut self, bytes_each: usize) -> Result<usize, PackError> {
        let count: u64 = self.number()?;
        let bytes = self.left().len();
        let fits = usize::try_from(count).ok().filter(|count| *count <= bytes / bytes_each);
        fits.ok_or(PackError::Count { count, bytes })
    }

    fn slice(&mut self) -> Result<Vec<u8>, PackError> {
        let length = self.count(1)?;
        let taken = self.left()[..length].to_vec();
        self.offset += length;
        Ok(taken)
    }

    fn text(&mut self) -> Result<String, PackError> {
        let offset = self.offset;
        String::from_utf8(self.slice()?).map_err(|_| PackError::NotUtf8 { offset })
    }

    fn fraction(&mut self) -> Result<f64, PackError> {
        let offset = self.offset;
        let value = f64::from_bits(u64::from_le_bytes(self.take()?));
        if value.is_finite() { Ok(value) } else { Err(PackError::NotFinite { offset }) }
    }

    fn step(
        &mut self,
        step: u32,
        stages: &[String],
        before: (u64, u64),
    ) -> Result<Step, PackError> {
        let range = PackError::Range { offset: self.offset };
        let [flags] = self.take()?;
        let has = |bit: u8| flags & bit != 0;
        let token = self.number()?;
        let piece = Piece(self.slice()?);
        let logprob = has(HAS_LOGPROB).then(|| self.fraction()).transpose()?;
        let rank = self.number()?;
        let probability = self.fraction()?;
        let survivors = self.number()?;
        let entropy = self.fraction()?;
        let raw_best = if has(IS_RAW_BEST) { token } else { self.number()? };
        let mut name = |is_there: bool| {
            let index = is_there.then(|| self.number::<usize>()).transpose()?;
            index.map(|index| stages.get(index).cloned().ok_or(range)).transpose()
        };
        let removed_by = name(has(HAS_REMOVED_BY))?;
        let forced_by = name(flags & CAUSE == LAID)?;
        let runner_up = if has(HAS_RUNNER_UP) {
            Some(RunnerUp { token: self.number()?, probability: self.fraction()? })
        } else {
            None
        };
        let reasons = Reasons {
            logprob,
            rank,
            probability,
            survivors,
            entropy,
            raw_best,
            removed_by,
            forced_by,
            runner_up,
        };
        Ok(Step {
            step,
            token,
            piece,
            cause: cause(flags).ok_or(range)?,
            shown: shown(flags).ok_or(range)?,
            reasons,
            pass: before.0.wrapping_add(unzigzag(self.number()?)),
            rows: self.number()?,
            since_arrival_ns: before.1.checked_add(self.number()?).ok_or(range)?,
            digest: LogitsDigest(u128::from_le_bytes(self.take()?)),
        })
    }

    fn end(&self) -> Result<(), PackError> {
        match self.left().len() {
            0 => Ok(()),
            count => Err(PackError::Long { count }),
        }
    }
}

fn cause(flags: u8) -> Option<StepCause> {
    // The last one is `LAID`.
    let known = [StepCause::Chosen, StepCause::Forced, StepCause::Prefilled, StepCause::Forced];
    known.get(usize::from(flags & CAUSE)).copied()
}

fn shown(flags: u8) -> Option<Shown> {
    let known = [Shown::Visible, Shown::Reasoning, Shown::Hidden];
    known.get(usize::from((flags & SHOWN) >> SHOWN_SHIFT)).copied()
}

#[cfg(test)]
mod tests;
