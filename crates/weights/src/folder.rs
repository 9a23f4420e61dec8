//! Opens a Hugging Face folder: its config, its safetensors file or the shards of its index.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use crate::error::{IndexFault, JsonFault, JsonFaultKind};
use crate::file::{Format, ModelFile, Shard};
use crate::layout::check_together;
use crate::safetensors::{Header, weight_map};
use crate::{Metadata, TensorEntry, WeightsError};

/// Longest config.json; published ones have a few hundred KB at most.
const CONFIG_BYTES_MAX: u64 = 4 << 20;
/// Longest index; the largest published ones have some ten MB.
const INDEX_BYTES_MAX: u64 = 64 << 20;
/// Most shards of one model; the largest published ones have under 200.
const SHARDS_MAX: usize = 1024;

/// Opens the model in `folder`.
pub(crate) fn open(folder: &Path) -> Result<ModelFile, WeightsError> {
    let config = read_config(folder)?;
    let single = folder.join("model.safetensors");
    let index = folder.join("model.safetensors.index.json");
    let (shards, tensors) = if exists(&single) {
        let shard = Shard::open(single)?;
        let header = read_header(&shard)?;
        (vec![shard], header.tensors)
    } else if exists(&index) {
        open_shards(folder, &index)?
    } else {
        let missing = "model.safetensors";
        return Err(WeightsError::Incomplete { path: folder.to_owned(), missing });
    };
    let by_name = check_together(&tensors).map_err(|fault| WeightsError::Index {
        path: index,
        source: IndexFault::Twice { tensor: fault.name },
    })?;
    Ok(ModelFile {
        format: Format::Safetensors,
        metadata: Metadata::default(),
        config: Some(config),
        folder: Some(folder.to_owned()),
        tensors,
        by_name,
        shards,
    })
}

/// Whether there is anything of this name, a broken link included.
fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn read_config(folder: &Path) -> Result<serde_json::Value, WeightsError> {
    let path = folder.join("config.json");
    if !exists(&path) {
        let missing = "config.json";
        return Err(WeightsError::Incomplete { path: folder.to_owned(), missing });
    }
    let shard = open_bounded(&path, CONFIG_BYTES_MAX)?;
    let config = serde_json::from_slice::<serde_json::Value>(shard.mapping.bytes())
        .map_err(JsonFault::from)
        .and_then(|config| {
            let shape = JsonFault { line: 1, column: 1, kind: JsonFaultKind::Shape };
            if config.is_object() { Ok(config) } else { Err(shape) }
        });
    config.map_err(|source| WeightsError::Json { path, source })
}

fn open_bounded(path: &Path, limit: u64) -> Result<Shard, WeightsError> {
    let shard = Shard::open(path.to_owned())?;
    let bytes = shard.mapping.bytes().len() as u64;
    if bytes > limit {
        return Err(WeightsError::TooLong { path: path.to_owned(), bytes, limit });
    }
    Ok(shard)
}

fn read_header(shard: &Shard) -> Result<Header, WeightsError> {
    Header::parse(shard.mapping.bytes())
        .map_err(|source| WeightsError::Safetensors { path: shard.path.clone(), source })
}

/// The index decides: what it lists must be where it says, what it does not list is left out.
fn open_shards(
    folder: &Path,
    index: &Path,
) -> Result<(Vec<Shard>, Vec<TensorEntry>), WeightsError> {
    let fault = |source| WeightsError::Index { path: index.to_owned(), source };
    let json = open_bounded(index, INDEX_BYTES_MAX)?;
    let listed = weight_map(json.mapping.bytes())
        .map_err(|error| WeightsError::Json { path: index.to_owned(), source: error.into() })?;
    let mut by_shard: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (tensor, shard) in &listed {
        by_shard.entry(shard).or_default().push(tensor);
    }
    if by_shard.is_empty() {
        return Err(fault(IndexFault::Empty));
    }
    if by_shard.len() > SHARDS_MAX {
        return Err(fault(IndexFault::TooManyShards { count: by_shard.len(), limit: SHARDS_MAX }));
    }
    let mut shards = Vec::with_capacity(by_shard.len());
    let mut tensors = Vec::new();
    for (name, wanted) in by_shard {
        let shard = open_shard(folder, name).map_err(|broken| match broken {
            Broken::Index(source) => fault(source),
            Broken::Shard(error) => error,
        })?;
        let header = read_header(&shard)?;
        let found = take_wanted(header, &wanted, shards.len()).map_err(|tensor| {
            fault(IndexFault::MissingTensor { tensor, shard: name.to_owned() })
        })?;
        tensors.extend(found);
        shards.push(shard);
    }
    Ok((shards, tensors))
}

/// What can be wrong with a shard: its name in the index, or the shard.
enum Broken {
    Index(IndexFault),
    Shard(WeightsError),
}

/// Opens the shard of this name, which must be a plain file name: an index may not reach outside
/// its folder.
fn open_shard(folder: &Path, name: &str) -> Result<Shard, Broken> {
    let mut parts = Path::new(name).components();
    let is_plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
        && !name.contains(['/', '\\', '\0']);
    let shard = name.to_owned();
    if !is_plain {
        return Err(Broken::Index(IndexFault::Outside { shard }));
    }
    let path = folder.join(name);
    if !exists(&path) {
        return Err(Broken::Index(IndexFault::MissingShard { shard }));
    }
    Shard::open(path).map_err(Broken::Shard)
}

/// The entries of the wanted tensors; the first name that is not there is the error.
fn take_wanted(header: Header, wanted: &[&str], shard: usize) -> Result<Vec<TensorEntry>, String> {
    let Header { mut tensors, by_name } = header;
    let mut is_wanted = vec![false; tensors.len()];
    for &name in wanted {
        let place = by_name.binary_search_by(|&index| tensors[index].name.as_str().cmp(name));
        match place {
            Ok(place) => is_wanted[by_name[place]] = true,
            Err(_) => return Err(name.to_owned()),
        }
    }
    for entry in &mut tensors {
        entry.shard = shard;
    }
    let wanted = tensors.into_iter().zip(is_wanted).filter(|&(_, wanted)| wanted);
    Ok(wanted.map(|(entry, _)| entry).collect())
}
