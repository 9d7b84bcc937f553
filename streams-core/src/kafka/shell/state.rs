//! The states of an application's instance. Java: `KafkaStreams.State`.

use std::fmt;

/// What an instance is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Made, not started.
    Created,
    /// Tasks are being given, taken, or restored.
    Rebalancing,
    /// All its tasks run.
    Running,
    /// Closing.
    PendingShutdown,
    /// Closed.
    NotRunning,
    /// Stopping because of an error.
    PendingError,
    /// Stopped because of an error.
    Error,
}

impl State {
    /// Whether an instance may go from here to `next`.
    #[must_use]
    pub fn can_become(self, next: State) -> bool {
        use State::{Created, Error, NotRunning, PendingError, PendingShutdown, Rebalancing, Running};
        matches!(
            (self, next),
            (Created, Rebalancing | PendingShutdown)
                | (Rebalancing, Running | PendingShutdown | PendingError)
                | (Running, Rebalancing | PendingShutdown | PendingError)
                | (PendingShutdown, NotRunning)
                | (PendingError, Error)
        )
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, State::NotRunning | State::Error)
    }

    /// The number under which metrics show it: its place in this list.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            State::Created => 0,
            State::Rebalancing => 1,
            State::Running => 2,
            State::PendingShutdown => 3,
            State::NotRunning => 4,
            State::PendingError => 5,
            State::Error => 6,
        }
    }

    /// Java's name of the state.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::Created => "CREATED",
            State::Rebalancing => "REBALANCING",
            State::Running => "RUNNING",
            State::PendingShutdown => "PENDING_SHUTDOWN",
            State::NotRunning => "NOT_RUNNING",
            State::PendingError => "PENDING_ERROR",
            State::Error => "ERROR",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::State;

    #[test]
    fn an_ended_instance_never_starts_again() {
        for last in [State::NotRunning, State::Error] {
            assert!(last.is_final());
            assert!(!last.can_become(State::Rebalancing));
        }
        assert!(State::Created.can_become(State::Rebalancing));
        assert!(!State::Created.can_become(State::Running));
    }
}
