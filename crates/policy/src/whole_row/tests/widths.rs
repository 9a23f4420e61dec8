//! Every width of vectors gives the bits of plain code.

use causeway_kernels::Isa;

use crate::dense::{Row, RowBuffers};
use crate::draw::RowDraw;
use crate::mass::RowSum;
use crate::noise::Noise;
use crate::rows::Lcg;

/// Bits of a row's sums, its weights and what is drawn from it.
fn on(isa: Isa, logits: &[f32], temperature: f64, seed: u64) -> ([u64; 4], Vec<u32>, u32) {
    let mut buffers = RowBuffers::default();
    let mut row = Row::scan(logits, 0, &mut buffers).unwrap();
    row.divide(temperature);
    let best = row.best().unwrap();
    let mut weights = Vec::new();
    let mass = isa.run(RowSum { row: &row, best, weights: Some(&mut weights) });
    let noise = Noise::new(seed, 0, 3);
    let drawn = isa.run(RowDraw { row: &row, best, weights: &weights, noise });
    let numbers = [mass.total, mass.entropy(), mass.logprob(-1.0), drawn.score];
    let weights = weights.iter().map(|weight| weight.to_bits()).collect();
    (numbers.map(f64::to_bits), weights, drawn.token)
}

#[test]
fn sums_weights_and_draws_are_the_same_on_every_width() {
    for seed in 0..40 {
        let mut lcg = Lcg(seed);
        let vocab_size = [1, 63, 64, 65, 1000, 20_011][lcg.below(6) as usize];
        let logits = lcg.row(vocab_size);
        let temperature = [0.01, 0.8, 1.0, 3.0][lcg.below(4) as usize];
        let want = on(Isa::Scalar, &logits, temperature, seed);
        for isa in Isa::ALL {
            assert_eq!(on(isa, &logits, temperature, seed), want, "{isa:?}, seed {seed}");
        }
    }
}
