//! The text of the mistakes that are made most often: what the compiler says of them is part of the interface.
//!
//! The text is that of one release of rustc, because each words its part of it a little differently. With another one the
//! test says so and compares nothing. To pin it anew: set [`RUSTC`], run the test with `TRYBUILD=overwrite` and read what
//! changed. It compiles a project of its own, so it runs only where that needs no C++.
#![cfg(not(any(feature = "kafka", feature = "rocksdb")))]
#![allow(clippy::unwrap_used, missing_docs)]

use std::process::Command;

/// The release whose text is pinned.
const RUSTC: &str = "1.95";

#[test]
fn the_commonest_mistakes_are_told_at_the_users_own_token() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap();
    if !is_pinned(&version) {
        eprintln!("the text of compile errors is pinned for rustc {RUSTC}; this is {version}: nothing compared");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/compile_errors/*.rs");
}

/// Whether `rustc --version` tells of the release whose text is pinned; nightlies and betas are others.
fn is_pinned(version: &str) -> bool {
    let release = version.split_whitespace().nth(1).unwrap_or_default();
    let patch = release.strip_prefix(RUSTC).and_then(|rest| rest.strip_prefix('.'));
    patch.is_some_and(|patch| patch.parse::<u32>().is_ok())
}

#[test]
fn only_the_pinned_release_is_compared() {
    assert!(is_pinned("rustc 1.95.0 (59807616e 2026-04-14)"));
    assert!(is_pinned("rustc 1.95.1"));
    assert!(!is_pinned("rustc 1.89.0 (29483883e 2025-08-04)"));
    assert!(!is_pinned("rustc 1.95.0-nightly (0b9ed0fd8 2026-03-02)"));
    assert!(!is_pinned("rustc 1.950.0"));
}
