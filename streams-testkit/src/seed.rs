//! Seeded randomness for tests that kill at random moments: a failure is repeated with the seed it printed.

use std::hash::{BuildHasher as _, Hasher as _};
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::{Error, Result};

/// The environment variable that fixes the seed.
pub const SEED_VARIABLE: &str = "STREAMS_TEST_SEED";

/// A small seeded generator (SplitMix64): equal seeds give equal choices on every machine.
///
/// # Example
/// ```
/// use streams_testkit::Seeded;
/// assert_eq!(Seeded::new(7).below(100), Seeded::new(7).below(100));
/// ```
#[derive(Debug, Clone)]
pub struct Seeded {
    seed: u64,
    state: u64,
}

impl Seeded {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// Takes the seed from `STREAMS_TEST_SEED`, or a fresh one; prints it to standard error, where the test runner shows it on failure.
    ///
    /// # Errors
    /// [`Error::Usage`] when the variable is set but is no number.
    pub fn from_env() -> Result<Self> {
        let seed = match std::env::var(SEED_VARIABLE) {
            Ok(text) => text
                .trim()
                .parse()
                .map_err(|_| Error::Usage(format!("{SEED_VARIABLE}={text} is not a number of 64 bits")))?,
            // The hasher's keys are random per process: entropy without another dependency.
            Err(_) => std::collections::hash_map::RandomState::new().build_hasher().finish(),
        };
        eprintln!("{SEED_VARIABLE}={seed}");
        Ok(Self::new(seed))
    }

    /// The seed to print.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 to `bound` − 1; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// A time in `range`, to the millisecond.
    pub fn duration(&mut self, range: &RangeInclusive<Duration>) -> Duration {
        let width = range.end().saturating_sub(*range.start()).as_millis();
        let width = u64::try_from(width).unwrap_or(u64::MAX);
        *range.start() + Duration::from_millis(self.below(width.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // First outputs for seed 0 of the published reference implementation.
        let mut seeded = Seeded::new(0);
        assert_eq!(seeded.next_u64(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(seeded.next_u64(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn a_duration_stays_inside_its_range() {
        let range = Duration::from_millis(5)..=Duration::from_millis(7);
        let mut seeded = Seeded::new(3);
        let drawn: Vec<_> = (0..100).map(|_| seeded.duration(&range)).collect();
        assert!(drawn.iter().all(|time| range.contains(time)));
        assert!(drawn.contains(range.start()) && drawn.contains(range.end()));
    }
}
