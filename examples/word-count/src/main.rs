//! Word count.
fn main() {}
