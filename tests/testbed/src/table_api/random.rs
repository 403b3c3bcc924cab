//! The simulator's randomness: seeded, so that a failing test fails again.

/// A small generator (splitmix64); its numbers order ties and name rows, nothing more.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator that gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % (end.max(1) as u64)) as usize
    }

    /// Any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// Thirty-two hexadecimal digits, as identities have.
    pub fn id(&mut self) -> String {
        format!("{:016x}{:016x}", self.bits(), self.bits())
    }

    /// The same with letters of both cases, whose order depends on the collation.
    pub fn mixed_case_id(&mut self) -> String {
        let cases = self.bits();
        let digits = self.id();
        let cased = digits.chars().enumerate().map(
            |(place, digit)| {
                if cases >> (place % 64) & 1 == 1 { digit.to_ascii_uppercase() } else { digit }
            },
        );
        cased.collect()
    }
}
