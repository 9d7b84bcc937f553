//! A bounded sample of a stream of numbers.

use std::cell::RefCell;

/// The most values that are kept between two looks.
const KEPT: usize = 64;

/// An even sample of the numbers noted since the last look: all of them up to 64, then every second, fourth, …; the
/// largest always. Noting one costs a few instructions and never more memory.
#[derive(Debug, Default)]
pub struct Samples(RefCell<Inner>);

#[derive(Debug)]
struct Inner {
    values: Vec<u64>,
    count: u64,
    largest: u64,
    /// Every so manyth value is kept.
    every: u32,
    /// Until the next one that is kept.
    left: u32,
}

impl Default for Inner {
    fn default() -> Self {
        Inner {
            values: Vec::new(),
            count: 0,
            largest: 0,
            every: 1,
            left: 1,
        }
    }
}

impl Samples {
    /// Notes a number.
    #[inline]
    pub fn note(&self, value: u64) {
        let mut inner = self.0.borrow_mut();
        inner.count += 1;
        inner.largest = inner.largest.max(value);
        inner.left -= 1;
        if inner.left == 0 {
            inner.keep(value);
        }
    }

    /// How many numbers were noted since this was made.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.borrow().count
    }

    /// The sample since the last call; the largest number is among it.
    pub fn take(&self, mut each: impl FnMut(u64)) {
        let mut inner = self.0.borrow_mut();
        if inner.values.is_empty() {
            return;
        }
        let largest = std::mem::take(&mut inner.largest);
        // In place of the last one, so that the number of samples tells the number of values while all are kept.
        if !inner.values.contains(&largest) {
            inner.values.pop();
            inner.values.push(largest);
        }
        inner.values.drain(..).for_each(&mut each);
        (inner.every, inner.left) = (1, 1);
    }
}

impl Inner {
    fn keep(&mut self, value: u64) {
        self.values.push(value);
        // Counted from this value, also when it is dropped again: the next kept one lies one step behind it.
        self.left = self.every;
        if self.values.len() == KEPT {
            let mut second = false;
            self.values.retain(|_| {
                second = !second;
                second
            });
            self.every = self.every.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(samples: &Samples) -> Vec<u64> {
        let mut all = Vec::new();
        samples.take(|value| all.push(value));
        all
    }

    #[test]
    fn few_numbers_are_all_kept_and_each_look_begins_anew() {
        let samples = Samples::default();
        for value in [3, 9, 1] {
            samples.note(value);
        }
        assert_eq!(taken(&samples), [3, 9, 1]);
        assert!(taken(&samples).is_empty());
        samples.note(2);
        assert_eq!(taken(&samples), [2]);
        assert_eq!(samples.count(), 4);
    }

    #[test]
    fn many_numbers_are_sampled_evenly_and_the_largest_is_among_them() {
        let samples = Samples::default();
        for value in 0..100_000 {
            samples.note(if value == 77_777 { 5_000_000 } else { value });
        }
        let mut all = taken(&samples);
        assert!((KEPT / 2..=KEPT).contains(&all.len()), "{}", all.len());
        assert_eq!(all.pop(), Some(5_000_000));
        assert!(
            all.windows(2).all(|pair| pair[1] - pair[0] == all[1] - all[0]),
            "{all:?}"
        );
        assert_eq!(samples.count(), 100_000);
    }
}
