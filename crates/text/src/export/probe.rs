//! A text in which every kind of character stands beside every other.

/// Characters and short runs of each kind that an expression may tell apart: cases, scripts with
/// and without case, digits of several sorts, contractions, signs, white space and marks. All are
/// in Unicode's composed form, and so is each text of them.
const PIECES: [&str; 44] = [
    "a",
    "Ab",
    "ABC",
    "xY",
    "é",
    "Ж",
    "ß",
    "1",
    "12",
    "345",
    "6789",
    "٣",
    "½",
    "Ⅷ",
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "\u{a0}",
    "'s",
    "'S",
    "'ll",
    "'",
    "\u{2019}",
    ".",
    "!?",
    "...",
    "_",
    "/",
    "$",
    "<",
    "`",
    "、",
    "中文",
    "かな",
    "カ",
    "한국",
    "ไทย",
    "q\u{301}",
    "😀",
    "=+",
];

/// Every piece before every other, with a third between them: words, then spaces, then a line.
pub(super) fn text() -> String {
    let mut text = String::new();
    for between in ["", " ", "\n", "a", "1"] {
        for first in PIECES {
            for second in PIECES {
                text.push_str(first);
                text.push_str(between);
                text.push_str(second);
            }
        }
    }
    text
}
