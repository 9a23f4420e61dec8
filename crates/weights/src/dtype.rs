//! The element types a tensor may have, and how many bytes a block of each takes.

use std::fmt;

/// How the elements of a tensor are stored.
///
/// Every type that GGUF or safetensors can name is here, so that a file can be listed and its
/// layout checked; [`DType::is_readable`] says which types have their values read.
#[expect(non_camel_case_types, reason = "the formats' own spelling")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    F32,
    F16,
    BF16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    Q8_K,
    IQ4_NL,
    IQ4_XS,
    MXFP4,
    /// Unsigned bytes of a safetensors file, such as packed blocks and their scales.
    U8,
    /// A type that is known by name and size, and whose values are not read.
    Listed(Listed),
}

/// A type that can be listed but not read: its row in [`LISTED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listed(u8);

/// What a file format calls a type, and the size of its block.
struct Row {
    name: &'static str,
    /// The number in a GGUF tensor entry.
    ggml: Option<u32>,
    /// The string in a safetensors header.
    safetensors: Option<&'static str>,
    block_len: usize,
    block_bytes: usize,
}

const fn ggml(id: u32, name: &'static str, block_len: usize, block_bytes: usize) -> Row {
    Row { name, ggml: Some(id), safetensors: None, block_len, block_bytes }
}

const fn plain(name: &'static str, block_len: usize, block_bytes: usize) -> Row {
    Row { name, ggml: None, safetensors: Some(name), block_len, block_bytes }
}

const fn both(id: u32, name: &'static str, block_bytes: usize) -> Row {
    Row { name, ggml: Some(id), safetensors: Some(name), block_len: 1, block_bytes }
}

/// The types whose values are read, each with its row.
const READABLE: [(DType, Row); 18] = [
    (DType::F32, both(0, "F32", 4)),
    (DType::F16, both(1, "F16", 2)),
    (DType::BF16, both(30, "BF16", 2)),
    (DType::Q4_0, ggml(2, "Q4_0", 32, 18)),
    (DType::Q4_1, ggml(3, "Q4_1", 32, 20)),
    (DType::Q5_0, ggml(6, "Q5_0", 32, 22)),
    (DType::Q5_1, ggml(7, "Q5_1", 32, 24)),
    (DType::Q8_0, ggml(8, "Q8_0", 32, 34)),
    (DType::Q2_K, ggml(10, "Q2_K", 256, 84)),
    (DType::Q3_K, ggml(11, "Q3_K", 256, 110)),
    (DType::Q4_K, ggml(12, "Q4_K", 256, 144)),
    (DType::Q5_K, ggml(13, "Q5_K", 256, 176)),
    (DType::Q6_K, ggml(14, "Q6_K", 256, 210)),
    (DType::Q8_K, ggml(15, "Q8_K", 256, 292)),
    (DType::IQ4_NL, ggml(20, "IQ4_NL", 32, 18)),
    (DType::IQ4_XS, ggml(23, "IQ4_XS", 256, 136)),
    (DType::MXFP4, ggml(39, "MXFP4", 32, 17)),
    (DType::U8, plain("U8", 1, 1)),
];

/// The types that are only listed.
const LISTED: [Row; 32] = [
    ggml(9, "Q8_1", 32, 40),
    ggml(16, "IQ2_XXS", 256, 66),
    ggml(17, "IQ2_XS", 256, 74),
    ggml(18, "IQ3_XXS", 256, 98),
    ggml(19, "IQ1_S", 256, 50),
    ggml(21, "IQ3_S", 256, 110),
    ggml(22, "IQ2_S", 256, 82),
    both(24, "I8", 1),
    both(25, "I16", 2),
    both(26, "I32", 4),
    both(27, "I64", 8),
    both(28, "F64", 8),
    ggml(29, "IQ1_M", 256, 56),
    ggml(34, "TQ1_0", 256, 54),
    ggml(35, "TQ2_0", 256, 66),
    ggml(40, "NVFP4", 64, 36),
    ggml(41, "Q1_0", 128, 18),
    plain("BOOL", 1, 1),
    plain("U16", 1, 2),
    plain("U32", 1, 4),
    plain("U64", 1, 8),
    plain("C64", 1, 8),
    plain("F8_E4M3", 1, 1),
    plain("F8_E5M2", 1, 1),
    plain("F8_E8M0", 1, 1),
    plain("F8_E4M3FNUZ", 1, 1),
    plain("F8_E5M2FNUZ", 1, 1),
    plain("F6_E2M3", 4, 3),
    plain("F6_E3M2", 4, 3),
    plain("F4", 2, 1),
    // Two spellings that converters write for the types above.
    Row {
        name: "F8_E4M3",
        ggml: None,
        safetensors: Some("F8_E4M3FN"),
        block_len: 1,
        block_bytes: 1,
    },
    Row { name: "BOOL", ggml: None, safetensors: Some("bool"), block_len: 1, block_bytes: 1 },
];

impl DType {
    /// The type with this number in a GGUF tensor entry; `None` for a number never given out or
    /// withdrawn from the format.
    #[must_use]
    pub fn from_ggml(id: u32) -> Option<Self> {
        Self::find(|row| row.ggml == Some(id))
    }

    /// The type's number in a GGUF tensor entry; `None` for a type that GGUF has not.
    #[must_use]
    pub fn to_ggml(self) -> Option<u32> {
        self.row().ggml
    }

    /// The type with this name in a safetensors header.
    #[must_use]
    pub fn from_safetensors(name: &str) -> Option<Self> {
        Self::find(|row| row.safetensors == Some(name))
    }

    fn find(matches: impl Fn(&Row) -> bool) -> Option<Self> {
        let readable = READABLE.iter().find(|(_, row)| matches(row)).map(|&(dtype, _)| dtype);
        readable.or_else(|| {
            let place = LISTED.iter().position(matches)?;
            u8::try_from(place).ok().map(|place| Self::Listed(Listed(place)))
        })
    }

    fn row(self) -> &'static Row {
        const { assert!(LISTED.len() < 256) };
        match self {
            Self::Listed(Listed(place)) => &LISTED[usize::from(place)],
            readable => READABLE
                .iter()
                .find(|(dtype, _)| *dtype == readable)
                .map(|(_, row)| row)
                .expect("READABLE has a row for every type that is not `Listed`"),
        }
    }

    /// The type's name in capitals, as the file formats spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Elements in one block: 1 for plain types, 32 or 256 for quantised ones.
    #[must_use]
    pub fn block_len(self) -> usize {
        self.row().block_len
    }

    /// Bytes of one block.
    #[must_use]
    pub fn block_bytes(self) -> usize {
        self.row().block_bytes
    }

    /// Whether [`crate::dequantize`] reads this type.
    #[must_use]
    pub fn is_readable(self) -> bool {
        !matches!(self, Self::Listed(_))
    }

    /// Bytes of `elements` elements; `None` where they do not fill whole blocks or the product
    /// does not fit.
    #[must_use]
    pub fn bytes_of(self, elements: usize) -> Option<usize> {
        let row = self.row();
        if !elements.is_multiple_of(row.block_len) {
            return None;
        }
        (elements / row.block_len).checked_mul(row.block_bytes)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
