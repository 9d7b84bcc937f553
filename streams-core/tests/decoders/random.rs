//! Inputs from a seed: random ones, and valid ones that were damaged.

/// The longest random input.
const RANDOM_BYTES: usize = 300;

/// What stands for a huge length, or a negative one, in some encoding.
const LENGTHS: [&[u8]; 10] = [
    &[0x7f, 0xff, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0xff],
    &[0x80, 0, 0, 0],
    &[0, 0x10, 0, 0],
    &[0, 0, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xfe, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0x7f],
    &[0x7f, 0xff],
    &[0xff; 8],
];

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `bound`; 0 for no bound.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).unwrap()
    }

    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let length = self.below(RANDOM_BYTES);
        (0..length).map(|_| self.next() as u8).collect()
    }

    fn one_of(&mut self, valid: &[Vec<u8>]) -> Vec<u8> {
        let chosen = self.below(valid.len());
        valid.get(chosen).cloned().unwrap_or_default()
    }

    /// A valid input cut off, at its end or at its front: some layouts are read from their end.
    pub(crate) fn truncated(&mut self, valid: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.one_of(valid);
        let length = self.below(input.len() + 1);
        if self.below(2) == 0 {
            input.truncate(length);
        } else {
            input.drain(..length);
        }
        input
    }

    /// A valid input with 1 to 8 bits flipped.
    pub(crate) fn flipped(&mut self, valid: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.one_of(valid);
        for _ in 0..=self.below(8) {
            let (at, bit) = (self.below(input.len()), self.below(8));
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        input
    }

    /// A valid input with a huge or negative length somewhere, in the place of what stood there or before it.
    pub(crate) fn inflated(&mut self, valid: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.one_of(valid);
        let length = LENGTHS.get(self.below(LENGTHS.len())).copied().unwrap_or_default();
        let at = self.below(input.len() + 1);
        let replaced = if self.below(2) == 0 { 0 } else { length.len() };
        let end = (at + replaced).min(input.len());
        input.splice(at..end, length.iter().copied());
        input
    }

    /// The beginning of one valid input and the end of another.
    pub(crate) fn spliced(&mut self, valid: &[Vec<u8>]) -> Vec<u8> {
        let (mut input, other) = (self.one_of(valid), self.one_of(valid));
        let from = self.below(other.len() + 1);
        input.truncate(self.below(input.len() + 1));
        input.extend(other.get(from..).unwrap_or_default());
        input
    }
}

#[test]
fn a_seed_gives_the_same_inputs_again_and_another_gives_others() {
    let valid = [vec![1, 2, 3, 4, 5, 6, 7, 8]];
    let inputs = |seed| {
        let mut random = Random::new(seed);
        let damaged = [
            random.truncated(&valid),
            random.flipped(&valid),
            random.inflated(&valid),
        ];
        (random.bytes(), damaged, random.spliced(&valid))
    };
    assert_eq!(inputs(1), inputs(1));
    assert_ne!(inputs(1), inputs(2));
}
