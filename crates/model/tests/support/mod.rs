//! What the model's tests share: fixtures, and a run over one sequence.
#![expect(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use causeway_kernels::{Isa, Kernels, KvType};
use causeway_kv_cache::Cache;
use causeway_model::{Model, Settings, Span, Workspace};
use causeway_request::{RequestId, TokenId};
use causeway_weights::ModelFile;

/// The repository's `testdata` folder.
pub(crate) fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// A real model by its file name, as `causeway pull` leaves it.
pub(crate) fn real_model(file: &str, name: &str) -> Arc<ModelFile> {
    let home = std::env::var_os("CAUSEWAY_HOME").map(PathBuf::from).unwrap_or_else(|| {
        let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        let base = base.unwrap_or_else(|| {
            PathBuf::from(std::env::var_os("HOME").unwrap()).join(".local/share")
        });
        base.join("causeway")
    });
    let path = home.join("models").join(file);
    assert!(path.is_file(), "{} is missing: run `causeway pull {name}`", path.display());
    Arc::new(ModelFile::open(&path).unwrap())
}

pub(crate) fn load(file: &Arc<ModelFile>, isa: Isa, threads: usize, kv_type: KvType) -> Model {
    let kernels = Kernels::with_isa(isa).unwrap();
    let settings = Settings { context_len: None, kv_type, threads };
    Model::load(Arc::clone(file), settings, kernels).unwrap()
}

pub(crate) fn tokens(ids: &[u32]) -> Vec<TokenId> {
    ids.iter().copied().map(TokenId).collect()
}

/// Logits of every position of `ids`, computed `chunk` positions at a time.
pub(crate) fn all_logits(model: &Model, ids: &[u32], chunk: usize) -> Vec<Vec<f32>> {
    let ids = tokens(ids);
    let mut cache = Cache::new(&model.kv_shape(1, chunk.min(ids.len())));
    let mut rows = Vec::new();
    for (index, tokens) in ids.chunks(chunk).enumerate() {
        let first = index * chunk;
        rows.extend(step(model, &mut cache, RequestId(0), first, tokens, tokens.len()));
    }
    rows
}

/// One pass over one span, with the cache's care taken; the rows of logits it wanted.
pub(crate) fn step(
    model: &Model,
    cache: &mut Cache,
    request: RequestId,
    first_position: usize,
    tokens: &[TokenId],
    logits_wanted: usize,
) -> Vec<Vec<f32>> {
    cache.reserve(request, first_position + tokens.len()).unwrap();
    let span = Span { request, first_position, tokens, logits_wanted };
    let mut work = Workspace::default();
    let logits = model.forward(&[span], cache, &mut work).unwrap();
    cache.retire(request, first_position + tokens.len());
    logits.rows().map(<[f32]>::to_vec).collect()
}

/// Tensors by name: shape, outermost size first, and bytes.
pub(crate) type Arrays = BTreeMap<String, (Vec<usize>, Vec<u8>)>;

/// A safetensors file of arrays in f32, bf16 or bytes, which their lengths tell.
pub(crate) fn safetensors(arrays: &Arrays) -> Vec<u8> {
    let (mut header, mut bytes) = (serde_json::Map::new(), Vec::new());
    for (name, (shape, values)) in arrays {
        let start = bytes.len();
        bytes.extend_from_slice(values);
        let offsets = [start, bytes.len()];
        let dtype = match values.len() / shape.iter().product::<usize>() {
            4 => "F32",
            2 => "BF16",
            _ => "U8",
        };
        let entry = serde_json::json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets });
        header.insert(name.clone(), entry);
    }
    let header = serde_json::Value::from(header).to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes].concat()
}

/// The same arrays with MXFP4 numbers as bf16, which holds each: `(experts, rows, columns)` in
/// codes and scales become `(experts, columns, rows)`, as folders have experts of that type.
pub(crate) fn dequantised(arrays: &Arrays) -> Arrays {
    let mut out = Arrays::new();
    for (name, (shape, bytes)) in arrays {
        let Some(plain) = name.strip_suffix("_blocks") else {
            if !name.ends_with("_scales") {
                out.insert(name.clone(), (shape.clone(), bytes.clone()));
            }
            continue;
        };
        let scales = &arrays[&format!("{plain}_scales")].1;
        let (count, rows, columns) = (shape[0], shape[1], shape[2] * 32);
        let mut values = Vec::new();
        for expert in 0..count {
            for column in 0..columns {
                for row in 0..rows {
                    let at = (expert * rows + row) * columns + column;
                    let nibble = bytes[at / 2] >> (4 * (at % 2)) & 15;
                    let bits = (mxfp4(nibble, scales[at / 32])).to_bits();
                    values.extend_from_slice(&bits.to_le_bytes()[2..]);
                }
            }
        }
        out.insert(plain.to_owned(), (vec![count, columns, rows], values));
    }
    out
}

/// A number of four bits with a power of two as its scale (OCP Microscaling, 2023).
fn mxfp4(nibble: u8, exponent: u8) -> f32 {
    const VALUES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let sign = if nibble & 8 == 0 { 1.0 } else { -1.0 };
    sign * VALUES[usize::from(nibble & 7)] * (f32::from(exponent) - 127.0).exp2()
}

/// Named arrays of a small safetensors file: shape, and values as bytes.
pub(crate) fn arrays(path: &Path) -> Arrays {
    let bytes = std::fs::read(path).unwrap();
    let len = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + len]).unwrap();
    let body = &bytes[8 + len..];
    let number = |v: &serde_json::Value| usize::try_from(v.as_u64().unwrap()).unwrap();
    let entries = header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__");
    entries
        .map(|(name, entry)| {
            let at = &entry["data_offsets"];
            let shape = entry["shape"].as_array().unwrap().iter().map(number).collect();
            (name.clone(), (shape, body[number(&at[0])..number(&at[1])].to_vec()))
        })
        .collect()
}

pub(crate) fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

pub(crate) fn u32s(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect()
}

/// Bits of every logit, for comparisons that allow no difference.
pub(crate) fn bits(rows: &[Vec<f32>]) -> Vec<Vec<u32>> {
    rows.iter().map(|row| row.iter().map(|v| v.to_bits()).collect()).collect()
}
