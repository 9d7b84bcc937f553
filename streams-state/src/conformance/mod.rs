//! One suite for every store: random operations against a model that is obviously right.
//!
//! Behind the feature `conformance`. For stores of your own, call [`key_value_store`] or [`window_store`] from a test:
//!
//! ```
//! use streams_state::{MemoryStore, conformance};
//! conformance::key_value_store(64, MemoryStore::new).unwrap();
//! ```

mod epochs;
mod ops;
mod sessions;
mod stores;
mod versions;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

pub use epochs::{TaskUnderTest, epochs, tested_specs};
pub use sessions::session_store;
pub use stores::{key_value_store, window_store};
pub use versions::{HISTORY_MS, VersionsUnderTest, versioned_store};

/// What failed, with the smallest input that was found to show it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

/// Runs `test` on random inputs and shrinks the first one that fails.
fn run<I: std::fmt::Debug>(
    cases: u32,
    inputs: &impl Strategy<Value = I>,
    test: impl Fn(I) -> Result<(), String>,
) -> Result<(), Failure> {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(inputs, |input| test(input).map_err(TestCaseError::fail));
    outcome.map_err(|error| match error {
        TestError::Fail(reason, input) => Failure(format!("{}\nsmallest input: {input:#?}", reason.message())),
        TestError::Abort(reason) => Failure(format!("aborted: {}", reason.message())),
    })
}

/// Says what differs; the text is only made when something does.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what}: found {found:?}, wanted {wanted:?}"))
    }
}
