//! What a file that is not GGUF looks like, so that the sentence can say it.

use std::fmt;

/// A guess from the first bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Empty,
    /// Fewer bytes than a magic number has.
    Short(usize),
    Html,
    GitLfsPointer,
    Json,
    Safetensors,
    Gguf,
    Zip,
    Gzip,
    OldGgml,
    Zeros,
    Text,
    /// Nothing known; the four bytes where `GGUF` should stand.
    Unknown([u8; 4]),
}

impl Look {
    /// Looks at the first bytes of a file that is not of the wanted format.
    pub(crate) fn at(bytes: &[u8]) -> Self {
        let &[a, b, c, d, ..] = bytes else {
            return if bytes.is_empty() { Self::Empty } else { Self::Short(bytes.len()) };
        };
        let start = &bytes[..bytes.len().min(512)];
        let lower = start.trim_ascii_start().to_ascii_lowercase();
        let begins = |words: &[&str]| words.iter().any(|word| lower.starts_with(word.as_bytes()));
        match [a, b, c, d] {
            [b'G', b'G', b'U', b'F'] => Self::Gguf,
            [b'P', b'K', 3, 4] => Self::Zip,
            [0x1f, 0x8b, ..] => Self::Gzip,
            // `ggml`, `ggmf`, `ggjt` and `ggla` as little-endian numbers, so backwards.
            [b'l' | b'f', b'm', b'g', b'g']
            | [b't', b'j', b'g', b'g']
            | [b'a', b'l', b'g', b'g'] => Self::OldGgml,
            _ if begins(&["version https://git-lfs"]) => Self::GitLfsPointer,
            _ if begins(&["<!doctype", "<html", "<head", "<?xml", "<!--"]) => Self::Html,
            _ if begins(&["{", "["]) => Self::Json,
            _ if start.get(8..10) == Some(b"{\"") => Self::Safetensors,
            _ if start.iter().all(|&byte| byte == 0) => Self::Zeros,
            _ if start.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) => {
                Self::Text
            }
            unknown => Self::Unknown(unknown),
        }
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it is empty",
            Self::Short(1) => "it is 1 byte long",
            Self::Short(count) => return write!(f, "it is {count} bytes long"),
            Self::Html => "it looks like an HTML page, perhaps a download that needed a login",
            Self::GitLfsPointer => "it looks like a Git LFS pointer, not the file it points to",
            Self::Json => "it looks like JSON",
            Self::Safetensors => "it looks like a safetensors file, which is read with its folder",
            Self::Gguf => "it looks like a GGUF file",
            Self::Zip => "it looks like a zip archive or a PyTorch checkpoint",
            Self::Gzip => "it looks like a gzip archive",
            Self::OldGgml => "it looks like a GGML file from before GGUF",
            Self::Zeros => "it starts with zeros, as an unfinished download does",
            Self::Text => "it looks like plain text",
            Self::Unknown(bytes) => {
                return write!(f, "it starts with the bytes {}", bytes.escape_ascii());
            }
        })
    }
}

#[cfg(test)]
mod tests;
