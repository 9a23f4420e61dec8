//! `causeway bench kernels`: each operation of a model against the machine's own limits.

use std::collections::BTreeMap;
use std::io::Write as _;

use causeway_kernels::{PackedMatrix, QuantisedRows};
use serde::Serialize;
use serde_json::json;

use super::machine::{Limits, Machine};
use crate::clock::Clock;
use crate::failure::{Failure, Outcome};
use crate::loaded::ModelFlags;

/// Arguments of `causeway bench kernels`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Model name, .gguf file or Hugging Face folder; a known name is fetched when it is missing.
    #[arg(short, long, default_value = causeway_models::DEFAULT_MODEL)]
    model: String,
    /// Threads that compute [default: the CPUs this process may use].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Rows of activations that each product meets.
    #[arg(long, value_delimiter = ',', default_value = "1,8,512", value_name = "N,N,…")]
    rows: Vec<usize>,
    /// Runs counted of each figure, after one that is not.
    #[arg(short, long, value_name = "N", default_value_t = 5)]
    repeats: usize,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Most rows of activations.
const ROWS_MAX: usize = 8_192;

/// All products of one kind in a pass: their sum over the layers.
#[derive(Debug, Serialize)]
struct Row {
    part: &'static str,
    format: String,
    rows: usize,
    matrices: usize,
    us: f64,
    bytes: usize,
    operations: u64,
    read_share: f64,
    int8_share: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]
impl Row {
    /// The row with its shares of the limits.
    fn against(mut self, limits: &Limits) -> Self {
        let ns = self.us * 1e3;
        self.read_share = self.bytes as f64 / ns / limits.read_gb_per_s;
        self.int8_share = self.operations as f64 / ns / limits.int8_gop_per_s;
        self
    }
}

/// Matrices that play the same part and have the same type.
type Parts<'a> = BTreeMap<(&'static str, String), Vec<&'a PackedMatrix>>;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Outcome {
    if args.repeats == 0 || args.rows.iter().any(|rows| !(1..=ROWS_MAX).contains(rows)) {
        return Err(Failure::caller(anyhow::anyhow!(
            "--repeats is at least 1, --rows lie between 1 and {ROWS_MAX}"
        )));
    }
    let flags = ModelFlags::of(args.model.clone(), args.threads);
    let loaded = flags.open()?;
    causeway_kernels::wait_for_merging();
    let (kernels, pool) = (loaded.model.kernels(), loaded.model.pool());
    let machine = Machine { kernels, pool, clock: Clock::start(), repeats: args.repeats };
    let limits = machine.limits()?;
    let mut parts: Parts<'_> = BTreeMap::new();
    for (part, matrix) in loaded.model.matrices() {
        parts.entry((part, format!("{:?}", matrix.format()))).or_default().push(matrix);
    }
    let mut table = Vec::new();
    for &rows in &args.rows {
        for ((part, format), matrices) in &parts {
            table.push(products(&machine, (part, format), matrices, rows, &limits)?);
        }
    }
    let totals: Vec<Row> = args.rows.iter().map(|&rows| total(&table, rows, &limits)).collect();
    let conditions = json!({
        "model": args.model,
        "cpu": causeway_session::cpu_name(),
        "isa": kernels.isa().name(),
        "threads": pool.threads(),
        "engine": env!("CARGO_PKG_VERSION"),
        "repeats": args.repeats,
    });
    let mut out = std::io::stdout().lock();
    if args.json {
        let line = json!({ "limits": limits, "products": table, "totals": totals, "conditions": conditions });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    let Limits { read_gb_per_s, int8_gop_per_s, step_ns } = limits;
    writeln!(out, "{conditions}")?;
    writeln!(
        out,
        "limits: read {read_gb_per_s:.1} GB/s, int8 {int8_gop_per_s:.0} Gop/s, step {step_ns:.0} ns"
    )?;
    writeln!(
        out,
        "{:<18}{:<6}{:>6}{:>10}{:>12}{:>9}{:>9}{:>8}{:>8}",
        "part", "type", "rows", "matrices", "us", "MB", "Mop", "read", "int8"
    )?;
    for row in table.iter().chain(&totals) {
        #[expect(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
        let (mb, mop) = (row.bytes as f64 / 1e6, row.operations as f64 / 1e6);
        writeln!(
            out,
            "{:<18}{:<6}{:>6}{:>10}{:>12.1}{mb:>9.1}{mop:>9.1}{:>7.0}%{:>7.0}%",
            row.part,
            row.format,
            row.rows,
            row.matrices,
            row.us,
            row.read_share * 100.0,
            row.int8_share * 100.0,
        )?;
    }
    Ok(())
}

/// All matrices of one part against `rows` rows of activations, one after the other.
#[expect(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]
fn products(
    machine: &Machine<'_>,
    (part, format): (&'static str, &str),
    matrices: &[&PackedMatrix],
    rows: usize,
    limits: &Limits,
) -> Result<Row, Failure> {
    let columns = matrices[0].columns();
    let x: Vec<f32> = (0..rows * columns).map(|i| ((i * 37 % 101) as f32) - 50.0).collect();
    let mut codes = QuantisedRows::default();
    machine.kernels.quantise(&x, columns, &mut codes, machine.pool).map_err(Failure::world)?;
    let mut out = vec![0.0; rows * matrices[0].rows()];
    let ns = machine.median_ns(|| {
        for matrix in matrices {
            let products = &mut [(*matrix, out.as_mut_slice())];
            if matrix.format().is_quantised() {
                machine.kernels.matmul(products, &codes, machine.pool);
            } else {
                machine.kernels.matmul_float(products, &x, machine.pool);
            }
        }
    });
    let bytes: usize = matrices.iter().map(|matrix| matrix.bytes()).sum();
    let weights: usize = matrices.iter().map(|m| m.rows() * m.columns()).sum();
    let operations = (2 * weights * rows) as u64;
    let row = Row {
        part,
        format: format.to_owned(),
        rows,
        matrices: matrices.len(),
        us: ns / 1e3,
        bytes,
        operations,
        read_share: 0.0,
        int8_share: 0.0,
    };
    Ok(row.against(limits))
}
/// All products of one pass together.
fn total(table: &[Row], rows: usize, limits: &Limits) -> Row {
    let of_pass = || table.iter().filter(|row| row.rows == rows);
    let row = Row {
        part: "all products",
        format: String::new(),
        rows,
        matrices: of_pass().map(|row| row.matrices).sum(),
        us: of_pass().map(|row| row.us).sum(),
        bytes: of_pass().map(|row| row.bytes).sum(),
        operations: of_pass().map(|row| row.operations).sum(),
        read_share: 0.0,
        int8_share: 0.0,
    };
    row.against(limits)
}
