//! Faults of user code: a topology asks here whether to fail, and fails only in a run with faults.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use streams_core::BoxError;

use crate::Seeded;

/// What such a failure says: only failures of the simulation's own making are excused.
pub(super) const MARK: &str = "simulated failure of user code";

/// Faults of a topology's own code. Processors and closures ask it at the places where the real ones may fail (a call to
/// another service, a parser): in some runs it makes them fail now and then, in the run without faults never.
///
/// A failure ends the stream thread, and another takes its place: what was done for the record before must be undone.
///
/// # Example
/// ```
/// use streams_dsl::StreamsBuilder;
/// use streams_testkit::simulate::{InputRecord, Simulation, UserFaults};
///
/// let faults = UserFaults::default();
/// let asked = faults.clone();
/// let builder = StreamsBuilder::new();
/// builder
///     .stream::<String, String>("in")
///     .map_values(move |_, value| {
///         asked.may_panic(); // here the real one calls another service
///         value.to_uppercase()
///     })
///     .to("out");
/// let inputs = vec![InputRecord::new("in", "key", "value", 1_000)];
/// Simulation::new(builder.build()?, vec![inputs]).user_faults(&faults).run(0..3)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct UserFaults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    rng: Option<Seeded>,
    of_10_000: u64,
    failed: u64,
}

impl UserFaults {
    /// Fails now and then.
    ///
    /// # Errors
    /// Says that it is simulated.
    pub fn may_fail(&self) -> Result<(), BoxError> {
        if self.strikes() { Err(MARK.into()) } else { Ok(()) }
    }

    /// Panics now and then, for code that can't answer an error. The panic hook is not called, so nothing is printed.
    pub fn may_panic(&self) {
        if self.strikes() {
            std::panic::resume_unwind(Box::new(MARK.to_owned()));
        }
    }

    fn strikes(&self) -> bool {
        let mut state = self.lock();
        let of_10_000 = state.of_10_000;
        let strikes = state
            .rng
            .as_mut()
            .is_some_and(|rng| of_10_000 > 0 && rng.below(10_000) < of_10_000);
        state.failed += u64::from(strikes);
        strikes
    }

    /// From now on so many of 10,000 calls fail.
    pub(super) fn arm(&self, seed: u64, of_10_000: u64) {
        *self.lock() = State {
            rng: Some(Seeded::new(seed)),
            of_10_000,
            failed: 0,
        };
    }

    /// No call fails any more; answers how many have.
    pub(super) fn disarm(&self) -> u64 {
        std::mem::take(&mut *self.lock()).failed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
