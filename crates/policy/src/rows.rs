//! Seeded rows and policies for the tests that compare the fast path with the definition.

/// A small generator for test rows; its quality does not matter.
#[derive(Debug)]
pub(crate) struct Lcg(pub u64);

impl Lcg {
    pub(crate) fn next(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 32).unwrap()
    }

    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }

    /// Uniform in [0, 1).
    pub(crate) fn uniform(&mut self) -> f32 {
        f32::from(u16::try_from(self.next() >> 16).unwrap()) / 65_536.0
    }

    /// About normal: twelve uniforms.
    pub(crate) fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.uniform()).sum::<f32>() - 6.0
    }

    /// A row of a random shape: flat, peaked, tied, offset, partly masked.
    pub(crate) fn row(&mut self, vocab_size: usize) -> Vec<f32> {
        let deviation = [0.0, 0.5, 2.2, 8.0][self.below(4) as usize];
        let offset = [0.0, -3.25, 500.0][self.below(3) as usize];
        let (is_tied, is_masked) = (self.below(4) == 0, self.below(4) == 0);
        let mut row: Vec<f32> =
            (0..vocab_size).map(|_| offset + deviation * self.normal()).collect();
        for value in &mut row {
            if is_tied {
                *value = (*value * 2.0).round() / 2.0;
            }
            if is_masked && self.below(3) == 0 {
                *value = f32::NEG_INFINITY;
            }
        }
        let peaks = self.below(20);
        for _ in 0..peaks {
            let place = self.below(u32::try_from(vocab_size).unwrap()) as usize;
            row[place] = offset + deviation * 4.0 + self.uniform() * 8.0;
        }
        row[0] = offset;
        row
    }
}
