//! The topology on the test driver.
#![allow(clippy::unwrap_used)]

use word_count::Counter;

#[test]
fn counts_go_on_from_line_to_line_whatever_the_case() {
    let mut counter = Counter::new().unwrap();
    let first: Vec<_> = counter.count("To be, or not to be").unwrap().into_iter().collect();
    let expected = [("be", 2), ("not", 1), ("or", 1), ("to", 2)].map(|(word, count)| (word.to_owned(), count));
    assert_eq!(first, expected);
    let second: Vec<_> = counter.count("BE!").unwrap().into_iter().collect();
    assert_eq!(second, [("be".to_owned(), 3)]);
    assert!(counter.count("…").unwrap().is_empty());
}
