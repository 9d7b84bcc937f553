//! The peer application.
fn main() {}
