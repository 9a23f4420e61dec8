//! Times as people write them: UTC dates, and spans before now.

const DAY_SECONDS: u64 = 86_400;

/// A time that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no time: give a span such as 90s, 30m, 2h or 7d, or a UTC date such as \
     2026-01-31 or 2026-01-31T15:04:05"
)]
pub struct WhenError {
    pub text: String,
}

impl WhenError {
    /// Always so: a time is text that someone typed.
    #[must_use]
    pub fn is_callers_mistake(&self) -> bool {
        true
    }
}

/// Milliseconds from 1970-01-01 UTC to the time that `text` names: a span before now, a UTC date,
/// or a UTC date and time.
///
/// # Errors
/// Text that is neither, or a date that no calendar has.
pub fn parse_since(text: &str, now_unix_ms: u64) -> Result<u64, WhenError> {
    let refused = || WhenError { text: text.to_owned() };
    if let Some(span_ms) = span_ms(text) {
        return Ok(now_unix_ms.saturating_sub(span_ms));
    }
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, time.strip_suffix('Z').unwrap_or(time)),
        None => (text, "00:00:00"),
    };
    let [year, month, day] = three(date, '-').ok_or_else(refused)?;
    let [hour, minute, second] = three(time, ':').ok_or_else(refused)?;
    let is_date = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 59 {
        return Err(refused());
    }
    let seconds = days_before(year, month, day) * DAY_SECONDS + hour * 3_600 + minute * 60 + second;
    Ok(seconds * 1_000)
}

/// A span such as `90s`, in milliseconds; `None` for anything else.
fn span_ms(text: &str) -> Option<u64> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => DAY_SECONDS,
        _ => return None,
    };
    let count: u64 = digits(&text[..text.len() - 1])?;
    count.checked_mul(seconds * 1_000)
}

/// Three numbers with a separator between them.
fn three(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator).map(digits);
    let found = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(found)
}

fn digits(text: &str) -> Option<u64> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().ok()).flatten()
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u64::from(is_leap(year)),
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date that is not before it.
fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let leap_days = |year: u64| (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let months: u64 = (1..month).map(|month| days_of(year, month)).sum();
    (year - 1970) * 365 + leap_days(year) - leap_days(1970) + months + day - 1
}

/// A time as `2026-01-31 15:04:05`, in UTC; a time after the year 9999 as its number.
#[must_use]
pub fn utc(unix_ms: u64) -> String {
    let seconds = unix_ms / 1_000;
    let (mut days, rest) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
        if year > 9999 {
            return format!("{unix_ms} ms");
        }
    }
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02}", days + 1)
}

#[cfg(test)]
mod tests;
