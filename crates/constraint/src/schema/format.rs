//! Formats as patterns: each holds no text that its standard refuses, and nearly all that it takes.

/// What is done with a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Format {
    /// The whole string must match this pattern, in the engine's syntax.
    Held(String),
    /// The draft knows it, and it cannot be held.
    Unsupported,
    /// The draft does not know it: it has no effect.
    Unknown,
}

const DAYS: &str = concat!(
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])",
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))",
    "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
);
const CLOCK: &str = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
/// ISO 8601 as RFC 3339, appendix A, has it: units in order, none left out between two.
const DURATION: &str = concat!(
    "P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)",
    "(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?",
    "|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))"
);
/// A label of a host name, without the hyphens at places 3 and 4 that encode other scripts.
const LABEL: &str = concat!(
    "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]",
    "(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,59}[a-zA-Z0-9])?",
    "|-[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,58}[a-zA-Z0-9])?))"
);
const ATOM: &str = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+";
const OCTET: &str = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
const UUID: &str = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
/// RFC 3986: letters of a path, and of a query.
const PATH_LETTER: &str = "(?:[a-zA-Z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2})";
const QUERY_LETTER: &str = "(?:[a-zA-Z0-9._~!$&'()*+,;=:@/?-]|%[0-9a-fA-F]{2})";
const HOST_LETTER: &str = "(?:[a-zA-Z0-9._~!$&'()*+,;=-]|%[0-9a-fA-F]{2})";
const POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";

/// The treatment of the format of this name.
pub(super) fn format(name: &str) -> Format {
    let pattern = match name {
        "date" => DAYS.to_owned(),
        "time" => CLOCK.to_owned(),
        "date-time" => format!("{DAYS}[tT]{CLOCK}"),
        "duration" => DURATION.to_owned(),
        "hostname" => host(),
        "email" => format!("{ATOM}(?:\\.{ATOM})*@{}", host()),
        "ipv4" => ipv4(),
        "ipv6" => ipv6(),
        "uuid" => UUID.to_owned(),
        "uri" => uri(),
        "json-pointer" => POINTER.to_owned(),
        "relative-json-pointer" => format!("(?:0|[1-9][0-9]*)(?:#|{POINTER})"),
        "idn-email" | "idn-hostname" | "iri" | "iri-reference" | "regex" | "uri-reference"
        | "uri-template" => return Format::Unsupported,
        _ => return Format::Unknown,
    };
    Format::Held(format!("^(?:{pattern})$"))
}

/// Longest whole text of a format, in characters. The grammar of addresses (RFC 5321, 4.1.2) has
/// none for `email`, and counting would make each character of one a state of its own.
pub(super) fn length_max(name: &str) -> Option<u64> {
    match name {
        "hostname" => Some(253),
        _ => None,
    }
}

fn host() -> String {
    format!("{LABEL}(?:\\.{LABEL})*")
}

fn ipv4() -> String {
    format!("(?:{OCTET}\\.){{3}}{OCTET}")
}

/// RFC 4291, 2.2: eight groups, one run of zeros as `::`, the last two as an IPv4 address.
fn ipv6() -> String {
    let group = "[0-9a-fA-F]{1,4}";
    let last = format!("(?:{group}:{group}|{})", ipv4());
    let mut ways = vec![format!("(?:{group}:){{6}}{last}")];
    for before in 0..=7_usize {
        // `::` stands for one group or more, so at most seven are written.
        let head = match before {
            0 => String::new(),
            1 => group.to_owned(),
            _ => format!("{group}(?::{group}){{{}}}", before - 1),
        };
        let after = 7 - before;
        ways.push(format!("{head}::"));
        if after >= 1 {
            ways.push(format!("{head}::{group}"));
        }
        if after >= 2 {
            ways.push(format!("{head}::(?:{group}:){{0,{}}}{last}", after - 2));
        }
    }
    format!("(?:{})", ways.join("|"))
}

/// RFC 3986, appendix A, without IP literals in brackets other than IPv6 addresses.
fn uri() -> String {
    let authority =
        format!("(?:(?:{HOST_LETTER}|:)*@)?(?:\\[{}\\]|{HOST_LETTER}*)(?::[0-9]*)?", ipv6());
    let segments = format!("(?:/{PATH_LETTER}*)*");
    format!(
        "[a-zA-Z][a-zA-Z0-9+.-]*:(?://{authority}{segments}|/?(?:{PATH_LETTER}+{segments})?)\
         (?:\\?{QUERY_LETTER}*)?(?:#{QUERY_LETTER}*)?"
    )
}

#[cfg(test)]
mod tests;
