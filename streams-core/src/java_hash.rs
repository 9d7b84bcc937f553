//! The iteration order of Java's `HashSet` and `HashMap`, for the few places where Kafka Streams lets it reach a contract.
//!
//! Two such places are known: the co-partition indices of a streams group's topology, which the broker compares with the
//! stored ones *in order* (KIP-1071), and texts that walk a hash set of names. A set of this module yields its elements in
//! the order in which a Java set filled the same way would.
//!
//! Source: `java.lang.String.hashCode`, `java.util.HashMap` (`hash`, `resize`, `tableSizeFor`, `treeifyBin`).
//! Not reproduced: the order inside a bucket that Java has turned into a tree, which takes nine elements in one bucket of
//! a table of 64 or more.

/// Java's hash code of a value.
pub trait JavaHash {
    /// The value of Java's `hashCode()`.
    fn java_hash(&self) -> i32;
}

impl JavaHash for str {
    /// `s[0]*31^(n-1) + … + s[n-1]` over UTF-16 code units, in wrapping 32-bit arithmetic (`String.hashCode`).
    fn java_hash(&self) -> i32 {
        self.encode_utf16()
            .fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
    }
}

impl JavaHash for String {
    fn java_hash(&self) -> i32 {
        self.as_str().java_hash()
    }
}

impl<T: JavaHash + ?Sized> JavaHash for &T {
    fn java_hash(&self) -> i32 {
        (**self).java_hash()
    }
}

/// A set that iterates in the order of Java's `HashSet`.
///
/// Java counterpart: `java.util.HashSet`, and the key set of `java.util.HashMap`.
///
/// # Example
/// ```
/// use streams_core::java_hash::JavaHashSet;
/// let topics: JavaHashSet<&str> = ["kin", "kin2"].into_iter().collect();
/// assert_eq!(topics.iter().copied().collect::<Vec<_>>(), ["kin2", "kin"]);
/// ```
#[derive(Clone, Debug)]
pub struct JavaHashSet<T> {
    buckets: Vec<Vec<T>>,
    len: usize,
}

/// Capacity of `new HashSet<>()` at its first element.
const DEFAULT_CAPACITY: usize = 16;
/// A bucket that would hold more than this makes a small table grow early (`TREEIFY_THRESHOLD`).
const CROWDED_BUCKET: usize = 8;
/// Tables of this size and more keep a crowded bucket (`MIN_TREEIFY_CAPACITY`).
const MIN_TREE_CAPACITY: usize = 64;

impl<T: JavaHash + PartialEq> JavaHashSet<T> {
    /// An empty set like `new HashSet<>()`.
    pub fn new() -> Self {
        Self::with_table(DEFAULT_CAPACITY)
    }

    /// An empty set sized like `new HashSet<>(collection)` for a collection of `elements` elements, repeats counted.
    ///
    /// The rule is the one of JDK 18 and older. Newer JDKs choose half the size when `elements` is exactly three quarters
    /// of a power of two (12, 24, 48 …); there Java members of different JDKs disagree with each other too.
    pub fn sized_for(elements: usize) -> Self {
        // `(int) (elements / .75f) + 1`, in integers.
        let wanted = elements.saturating_mul(4) / 3 + 1;
        Self::with_table(wanted.max(DEFAULT_CAPACITY).next_power_of_two())
    }

    fn with_table(capacity: usize) -> Self {
        Self {
            buckets: std::iter::repeat_with(Vec::new).take(capacity).collect(),
            len: 0,
        }
    }

    /// Adds an element; an equal one that is already there keeps its place. Returns whether it was added.
    pub fn insert(&mut self, element: T) -> bool {
        let index = bucket_index(element.java_hash(), self.buckets.len());
        let small = self.buckets.len() < MIN_TREE_CAPACITY;
        let Some(bucket) = self.buckets.get_mut(index) else {
            return false;
        };
        if bucket.contains(&element) {
            return false;
        }
        bucket.push(element);
        let crowded = bucket.len() > CROWDED_BUCKET;
        if crowded && small {
            self.grow();
        }
        self.len += 1;
        if self.len > self.buckets.len() / 4 * 3 {
            self.grow();
        }
        true
    }

    /// Doubles the table. Elements keep their relative order in the two halves of a split bucket.
    fn grow(&mut self) {
        let mut larger = Self::with_table(self.buckets.len() * 2);
        for element in self.buckets.drain(..).flatten() {
            let index = bucket_index(element.java_hash(), larger.buckets.len());
            if let Some(bucket) = larger.buckets.get_mut(index) {
                bucket.push(element);
            }
        }
        self.buckets = larger.buckets;
    }
}

impl<T> JavaHashSet<T> {
    /// The elements in Java's order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.buckets.iter().flatten()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set has no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T: JavaHash + PartialEq> Default for JavaHashSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: JavaHash + PartialEq> FromIterator<T> for JavaHashSet<T> {
    /// Fills `new HashSet<>()` one element after the other.
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut set = Self::new();
        for element in elements {
            set.insert(element);
        }
        set
    }
}

impl<T> IntoIterator for JavaHashSet<T> {
    type Item = T;
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.buckets.into_iter().flatten()
    }
}

impl<T: JavaHash> JavaHash for JavaHashSet<T> {
    /// The sum of the elements' hashes (`AbstractSet.hashCode`).
    fn java_hash(&self) -> i32 {
        self.iter()
            .fold(0i32, |sum, element| sum.wrapping_add(element.java_hash()))
    }
}

impl<T: JavaHash + PartialEq> PartialEq for JavaHashSet<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().all(|element| other.contains(element))
    }
}

impl<T: JavaHash + PartialEq> JavaHashSet<T> {
    /// Whether an equal element is in the set.
    pub fn contains(&self, element: &T) -> bool {
        let index = bucket_index(element.java_hash(), self.buckets.len());
        self.buckets.get(index).is_some_and(|bucket| bucket.contains(element))
    }
}

/// `(h ^ (h >>> 16)) & (capacity - 1)`; `capacity` is a power of two.
fn bucket_index(hash: i32, capacity: usize) -> usize {
    let hash = hash.cast_unsigned();
    (hash ^ (hash >> 16)) as usize & capacity.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
    use super::*;

    const ORDERS: &str = include_str!("java_hash/orders.txt");

    fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        ORDERS.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let mut columns = line.split('\t');
            (
                columns.next().unwrap(),
                columns.next().unwrap(),
                columns.next().unwrap(),
            )
        })
    }

    fn names(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    fn filled(mut set: JavaHashSet<String>, elements: Vec<String>) -> JavaHashSet<String> {
        for element in elements {
            set.insert(element);
        }
        set
    }

    #[test]
    fn string_hashes_equal_javas() {
        assert_eq!("".java_hash(), 0);
        assert_eq!("kin".java_hash(), 106_192);
        assert_eq!("AaAa".java_hash(), "BBBB".java_hash());
        // Surrogate pairs count as two units: 0xD83D * 31 + 0xDE00.
        assert_eq!("\u{1F600}".java_hash(), 0xD83D * 31 + 0xDE00);
    }

    #[test]
    fn sets_iterate_as_java_wrote_them_down() {
        let mut seen = 0;
        for (kind, elements, order) in rows() {
            let set = match kind {
                "grown" => names(elements).into_iter().collect(),
                "copied" => filled(JavaHashSet::sized_for(names(elements).len()), names(elements)),
                _ => continue,
            };
            seen += 1;
            assert_eq!(set.into_iter().collect::<Vec<_>>(), names(order), "{kind} {elements}");
        }
        assert_eq!(seen, 22);
    }

    #[test]
    fn sets_of_sets_iterate_as_java_wrote_them_down() {
        let mut seen = 0;
        for (kind, elements, order) in rows() {
            let Some(count) = kind.strip_prefix("sets:") else {
                continue;
            };
            seen += 1;
            let mut outer = JavaHashSet::sized_for(count.parse().unwrap());
            for set in elements.split('|') {
                outer.insert(names(set).into_iter().collect::<JavaHashSet<String>>());
            }
            let expected: Vec<JavaHashSet<String>> =
                order.split('|').map(|set| names(set).into_iter().collect()).collect();
            assert!(outer.iter().eq(expected.iter()), "{elements}");
        }
        assert_eq!(seen, 4);
    }

    #[test]
    fn an_equal_element_keeps_its_place() {
        let mut set: JavaHashSet<&str> = ["AaAa", "BBBB"].into_iter().collect();
        assert!(!set.insert("AaAa"));
        assert_eq!(set.iter().copied().collect::<Vec<_>>(), ["AaAa", "BBBB"]);
        assert_eq!((set.len(), set.is_empty()), (2, false));
    }
}
