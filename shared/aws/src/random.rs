//! Numbers that a seed determines, for tests whose runs can be repeated exactly.

/// A stream of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed. A seed may have several parts, such as a schedule and a number within it. Other parts make
    /// another stream.
    #[must_use]
    pub fn new(parts: &[u64]) -> Self {
        let mut random = Self(0);
        for part in parts {
            random.0 ^= part.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            random.0 = random.next();
        }
        random
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 to `end` - 1.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// True `percent` times out of a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
