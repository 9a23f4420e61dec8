//! `causeway inspect`: show a model file: metadata, tensors, sizes and values.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use causeway_weights::{
    Array, Format, ModelFile, Summary, Tensor, TensorEntry, Value, WeightsError,
};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::failure::{Failure, Outcome};
use crate::model_path;

/// Elements of a list that are shown before it is cut.
const ELEMENTS_SHOWN: usize = 6;
/// Characters of a text that are shown before it is cut.
const CHARS_SHOWN: usize = 72;
/// Values of a tensor that are shown.
const VALUES_SHOWN: usize = 8;

/// Arguments of `causeway inspect`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A model's name, a `.gguf` file, or a Hugging Face folder.
    model: String,
    /// Show one tensor: its type, its shape, what its values are like, and the first of them.
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    /// Show lists and texts of the metadata whole, however long they are.
    #[arg(long)]
    full: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    let path = model_path::resolve(&args.model)?;
    let file = ModelFile::open(&path).map_err(failure)?;
    let mut out = std::io::stdout().lock();
    let shown = Shown { whole: args.full };
    match (&args.tensor, args.json) {
        (Some(name), _) => write_tensor(&mut out, &find(&file, name, &path)?, args.json),
        (None, true) => write_json(&mut out, &file, &path, shown),
        (None, false) => write_text(&mut out, &file, &path, shown),
    }
}

fn failure(error: WeightsError) -> Failure {
    if error.is_callers_mistake() { Failure::caller(error) } else { Failure::world(error) }
}

fn find<'a>(file: &'a ModelFile, name: &str, path: &Path) -> Result<Tensor<'a>, Failure> {
    file.tensor(name).ok_or_else(|| {
        let (path, count) = (path.display(), file.tensors().len());
        Failure::caller(anyhow::anyhow!(
            "`{path}` has no tensor `{name}`: `causeway inspect` without --tensor lists its {count}"
        ))
    })
}

/// One tensor on the wire.
#[derive(Debug, Serialize)]
struct TensorLine<'a> {
    name: &'a str,
    dtype: &'a str,
    shape: &'a [usize],
    bytes: usize,
}

impl<'a> TensorLine<'a> {
    fn of(entry: &'a TensorEntry) -> Self {
        let TensorEntry { name, dtype, shape, bytes, offset: _, shard: _ } = entry;
        Self { name, dtype: dtype.name(), shape, bytes: *bytes }
    }
}

fn write_tensor(out: &mut impl Write, tensor: &Tensor<'_>, is_json: bool) -> Outcome {
    let Summary { range, mean, rms, non_finite } = tensor.summary().map_err(failure)?;
    let first = tensor.first_values(VALUES_SHOWN).map_err(failure)?;
    let Tensor { name, dtype, shape, bytes } = *tensor;
    let (bytes, dtype) = (bytes.len(), dtype.name());
    if is_json {
        let (min, max) = range.map_or((Json::Null, Json::Null), |(a, b)| (single(a), single(b)));
        let first: Vec<Json> = first.into_iter().map(single).collect();
        let line = json!({
            "name": name, "dtype": dtype, "shape": shape, "bytes": bytes, "min": min, "max": max,
            "mean": mean, "rms": rms, "non_finite": non_finite, "first": first,
        });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    writeln!(out, "{}  {dtype}  {}  {} bytes", one_line(name), dimensions(shape), grouped(bytes))?;
    match range {
        Some((min, max)) => {
            writeln!(out, "  min {min}  max {max}  mean {mean:.6e}  rms {rms:.6e}")?
        }
        None => writeln!(out, "  no finite values")?,
    }
    if non_finite > 0 {
        writeln!(out, "  {} values are not finite", grouped(non_finite))?;
    }
    let first: Vec<String> = first.iter().map(f32::to_string).collect();
    let more = if tensor.elements() > first.len() { " …" } else { "" };
    writeln!(out, "  first {}{more}", first.join(" "))?;
    Ok(())
}

/// What the tensors of one type come to.
#[derive(Debug, Default, Serialize)]
struct Total {
    tensors: usize,
    elements: usize,
    bytes: usize,
}

impl Total {
    fn add(&mut self, entry: &TensorEntry) {
        self.tensors += 1;
        self.elements += entry.shape.iter().product::<usize>();
        self.bytes += entry.bytes;
    }
}

/// The totals by type, and of all.
fn totals(file: &ModelFile) -> (BTreeMap<&'static str, Total>, Total) {
    let (mut by_type, mut all) = (BTreeMap::new(), Total::default());
    for entry in file.tensors() {
        by_type.entry(entry.dtype.name()).or_insert_with(Total::default).add(entry);
        all.add(entry);
    }
    (by_type, all)
}

fn write_json(out: &mut impl Write, file: &ModelFile, path: &Path, shown: Shown) -> Outcome {
    let (format, version) = match file.format() {
        Format::Gguf { version } => ("gguf", Some(version)),
        Format::Safetensors => ("safetensors", None),
    };
    let pairs = file.metadata().iter();
    let metadata: serde_json::Map<String, Json> =
        pairs.map(|(key, value)| (key.to_owned(), shown.json(value))).collect();
    let (by_type, all) = totals(file);
    let tensors: Vec<TensorLine<'_>> = file.tensors().map(TensorLine::of).collect();
    let line = json!({
        "path": path.display().to_string(), "format": format, "version": version,
        "bytes": file.bytes(), "metadata": metadata, "config": file.config(), "tensors": tensors,
        "types": by_type, "total": all,
    });
    writeln!(out, "{line}")?;
    Ok(())
}

fn write_text(out: &mut impl Write, file: &ModelFile, path: &Path, shown: Shown) -> Outcome {
    let format = match file.format() {
        Format::Gguf { version } => format!("GGUF version {version}"),
        Format::Safetensors => "safetensors".to_owned(),
    };
    writeln!(out, "{}\n{format}, {} bytes", path.display(), grouped(file.bytes()))?;
    write_metadata(out, file, shown)?;
    writeln!(out, "\ntensors ({})", grouped(file.tensors().len()))?;
    let names = file.tensors().map(|entry| one_line(&entry.name).chars().count());
    let width = names.max().unwrap_or(0).min(48);
    for TensorEntry { name, dtype, shape, bytes, offset: _, shard: _ } in file.tensors() {
        let (name, shape, dtype) = (one_line(name), dimensions(shape), dtype.name());
        writeln!(out, "  {name:<width$}  {dtype:<5} {shape:>16} {:>13} bytes", grouped(*bytes))?;
    }
    let (by_type, all) = totals(file);
    writeln!(out, "\ntotals by type")?;
    by_type.iter().try_for_each(|(name, total)| write_total(out, name, total))?;
    write_total(out, "all", &all)
}

fn write_total(out: &mut impl Write, name: &str, total: &Total) -> Outcome {
    let Total { tensors, elements, bytes } = *total;
    let bits = if elements == 0 { 0.0 } else { bytes as f64 * 8.0 / elements as f64 };
    writeln!(
        out,
        "  {name:<8} {:>6} tensors {:>15} elements {:>15} bytes {bits:>6.2} bits each",
        grouped(tensors),
        grouped(elements),
        grouped(bytes),
    )?;
    Ok(())
}

fn write_metadata(out: &mut impl Write, file: &ModelFile, shown: Shown) -> Outcome {
    if let Some(config) = file.config().and_then(Json::as_object) {
        writeln!(out, "\nconfig.json ({} keys)", config.len())?;
        for (key, value) in config {
            writeln!(out, "  {:<40}  {}", one_line(key), shown.text(&value.to_string()))?;
        }
        return Ok(());
    }
    writeln!(out, "\nmetadata ({} keys)", file.metadata().len())?;
    for (key, value) in file.metadata().iter() {
        let (key, kind) = (one_line(key), value.value_type().to_string());
        writeln!(out, "  {key:<40}  {kind:<15}  {}", shown.value(value))?;
    }
    Ok(())
}

/// How much of a long value is shown.
#[derive(Debug, Clone, Copy)]
struct Shown {
    whole: bool,
}

impl Shown {
    fn elements(self, array: &Array) -> usize {
        if self.whole { array.len() } else { array.len().min(ELEMENTS_SHOWN) }
    }

    /// A text on one line, cut where it is long.
    fn text(self, text: &str) -> String {
        let count = text.chars().count();
        if self.whole || count <= CHARS_SHOWN {
            return one_line(text);
        }
        let start: String = text.chars().take(CHARS_SHOWN).collect();
        format!("{}… ({} characters)", one_line(&start), grouped(count))
    }

    fn value(self, value: &Value) -> String {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(array) => {
                let elements = elements(array, self.elements(array));
                let texts: Vec<String> = elements.map(|element| element.to_string()).collect();
                let more = if texts.len() < array.len() { ", …" } else { "" };
                format!("{}: {}{more}", grouped(array.len()), self.text(&texts.join(", ")))
            }
            single => plain(single).to_string(),
        }
    }

    /// A short list as a list, a long one as its length and its first elements.
    fn json(self, value: &Value) -> Json {
        let Value::Array(array) = value else {
            return plain(value);
        };
        let (shown, count) = (self.elements(array), array.len());
        let elements: Vec<Json> = elements(array, shown).collect();
        if shown < count { json!({ "count": count, "first": elements }) } else { json!(elements) }
    }
}

/// The first elements of a list.
fn elements(array: &Array, count: usize) -> Box<dyn Iterator<Item = Json> + '_> {
    match array {
        Array::Strings(list) => Box::new(list.iter().take(count).map(Json::from)),
        other => Box::new((0..count).filter_map(|i| other.element(i)).map(|value| plain(&value))),
    }
}

/// A value that is no list.
fn plain(value: &Value) -> Json {
    match value {
        Value::U64(number) => (*number).into(),
        Value::F32(number) => single(*number),
        Value::F64(number) => (*number).into(),
        Value::Bool(truth) => (*truth).into(),
        Value::String(text) => text.as_str().into(),
        integer => integer.as_integer().and_then(|n| i64::try_from(n).ok()).into(),
    }
}

/// The shortest decimal that is this `f32` and no other; null where it is not finite.
fn single(number: f32) -> Json {
    number.to_string().parse::<f64>().ok().into()
}

/// A text without anything that would break the line or the terminal.
fn one_line(text: &str) -> String {
    let escape =
        |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

fn dimensions(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

/// A count with commas between its thousands.
fn grouped(count: impl ToString) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
