//! The wall-clock time a template may print, given by the caller, and its `strftime`.

use std::fmt::Write as _;

const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A date and a time of day, in whatever zone the caller means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CivilTime {
    /// 1 to 9999.
    year: u16,
    /// 1 to 12.
    month: u8,
    /// 1 to 31.
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
}

impl CivilTime {
    /// Reads `2024-07-26T15:04:05`; a space may stand for the `T`, and the time may be left out.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once(['T', ' ']) {
            Some((date, time)) => (date, time.trim_end_matches('Z')),
            None => (text, "00:00:00"),
        };
        let (date, time) = (numbers(date, '-')?, numbers(time, ':')?);
        let small = |number: u16| u8::try_from(number).ok();
        let (month, day) = (small(date[1])?, small(date[2])?);
        let (hour, minute, second) = (small(time[0])?, small(time[1])?, small(time[2])?);
        let civil = Self { year: date[0], month, day, hour, minute, second };
        let in_range = (1..=9999).contains(&civil.year)
            && (1..=12).contains(&month)
            && (1..=civil.month_days()).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        in_range.then_some(civil)
    }

    /// The UTC time of `seconds` after the start of 1970 (Hinnant, `civil_from_days`).
    ///
    /// Years after 9999 have none.
    #[must_use]
    pub fn from_unix(seconds: u64) -> Option<Self> {
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_index = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_index + 2) / 5 + 1;
        let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        let small = |number: u64| u8::try_from(number).ok();
        Some(Self {
            year: u16::try_from(year).ok().filter(|year| *year <= 9999)?,
            month: small(month)?,
            day: small(day)?,
            hour: small(rest / 3_600)?,
            minute: small(rest / 60 % 60)?,
            second: small(rest % 60)?,
        })
    }

    /// Formats as Python's `strftime` in the C locale; an unknown directive stays as it is.
    #[must_use]
    pub fn strftime(&self, format: &str) -> String {
        let mut text = String::new();
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                text.push(letter);
                continue;
            }
            match letters.next() {
                Some('-') => {
                    let mut padded = String::new();
                    let directive = letters.next();
                    self.push_directive(directive, &mut padded);
                    let short = padded.trim_start_matches(['0', ' ']);
                    text.push_str(if short.is_empty() { "0" } else { short });
                }
                directive => self.push_directive(directive, &mut text),
            }
        }
        text
    }

    fn push_directive(&self, directive: Option<char>, text: &mut String) {
        let Self { year, month, day, hour, minute, second } = *self;
        let month_name = MONTHS[usize::from(month) - 1];
        let weekday = usize::from(self.weekday());
        let hour_12 = (hour + 11) % 12 + 1;
        let result = match directive {
            Some('Y') => write!(text, "{year}"),
            Some('y') => write!(text, "{:02}", year % 100),
            Some('C') => write!(text, "{:02}", year / 100),
            Some('m') => write!(text, "{month:02}"),
            Some('d') => write!(text, "{day:02}"),
            Some('e') => write!(text, "{day:2}"),
            Some('H') => write!(text, "{hour:02}"),
            Some('I') => write!(text, "{hour_12:02}"),
            Some('M') => write!(text, "{minute:02}"),
            Some('S') => write!(text, "{second:02}"),
            Some('f') => write!(text, "000000"),
            Some('j') => write!(text, "{:03}", self.day_of_year()),
            Some('p') => write!(text, "{}", if hour < 12 { "AM" } else { "PM" }),
            Some('B') => write!(text, "{month_name}"),
            Some('b' | 'h') => write!(text, "{}", &month_name[..3]),
            Some('A') => write!(text, "{}", WEEKDAYS[weekday]),
            Some('a') => write!(text, "{}", &WEEKDAYS[weekday][..3]),
            Some('w') => write!(text, "{weekday}"),
            Some('u') => write!(text, "{}", (weekday + 6) % 7 + 1),
            Some('F') => write!(text, "{year}-{month:02}-{day:02}"),
            Some('T' | 'X') => write!(text, "{hour:02}:{minute:02}:{second:02}"),
            Some('R') => write!(text, "{hour:02}:{minute:02}"),
            Some('D' | 'x') => write!(text, "{month:02}/{day:02}/{:02}", year % 100),
            Some('c') => write!(
                text,
                "{} {} {day:2} {hour:02}:{minute:02}:{second:02} {year}",
                &WEEKDAYS[weekday][..3],
                &month_name[..3]
            ),
            Some('n') => writeln!(text),
            Some('t') => write!(text, "\t"),
            Some('%') | None => write!(text, "%"),
            // A time without a zone prints nothing for it.
            Some('z' | 'Z') => Ok(()),
            Some(other) => write!(text, "%{other}"),
        };
        result.expect("writing to a string cannot fail");
    }

    fn is_leap(&self) -> bool {
        self.year.is_multiple_of(4)
            && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400))
    }

    fn month_days(&self) -> u8 {
        match self.month {
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u8::from(self.is_leap()),
            _ => 31,
        }
    }

    /// 1 to 366.
    fn day_of_year(&self) -> u16 {
        let before = (1..self.month).map(|month| u16::from(Self { month, ..*self }.month_days()));
        before.sum::<u16>() + u16::from(self.day)
    }

    /// 0 for Sunday (Sakamoto's method).
    fn weekday(&self) -> u16 {
        const SHIFTS: [u16; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
        let year = if self.month < 3 { self.year - 1 } else { self.year };
        let shift = SHIFTS[usize::from(self.month) - 1];
        (year + year / 4 - year / 100 + year / 400 + shift + u16::from(self.day)) % 7
    }
}

/// Three numbers with a separator between them; a fraction of the last is dropped.
fn numbers(text: &str, separator: char) -> Option<[u16; 3]> {
    let mut parts = text.split(separator);
    let mut next = || {
        let part = parts.next()?;
        let digits = part.split('.').next()?;
        let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        all_digits.then(|| digits.parse().ok()).flatten()
    };
    let found = [next()?, next()?, next()?];
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests;
