//! What happens when a stream thread can't go on: the application's answer, and the bound that keeps a thread from being
//! replaced for ever at the same record (design rule 4.3).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::TopicPartition;
use crate::error::{Error, ProcessResult};
use crate::processor::panic_message;
use crate::task::Task;

/// So many failures at the same place stop the client, whatever the handler answers.
const MOST_FAILURES: u32 = 5;
/// A failure counts for this long: one that comes back a day later is not a loop.
const REMEMBERED_MS: i64 = 3_600_000;
/// The first replacement waits this long, each further one twice as long, milliseconds.
const FIRST_PAUSE_MS: i64 = 500;
const LONGEST_PAUSE_MS: i64 = 60_000;
/// A thread that lived this long starts over with the shortest pause.
const LIVED_WELL_MS: i64 = 600_000;

/// The answer to an error that ended a stream thread.
///
/// Java counterpart: `StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse` (KIP-671).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StreamThreadExceptionResponse {
    /// Start another thread in its place, after a pause that grows from 0.5 s to a minute. The fifth failure at the same
    /// record within an hour stops the client all the same: it would never end.
    ReplaceThread,
    /// Stop this client; the other instances of the application go on with its tasks. The default, as in Java.
    #[default]
    ShutdownClient,
    /// Ask every instance of the application to stop.
    ShutdownApplication,
}

/// What is done about the end of a thread.
#[derive(Debug)]
pub enum Reaction {
    /// Another thread takes its place.
    Replace {
        /// After how long, milliseconds.
        after_ms: i64,
        /// Why the old one ended.
        error: Box<Error>,
    },
    /// The client stops.
    ShutdownClient(Box<Error>),
    /// The client stops and asks the others to stop.
    ShutdownApplication(Box<Error>),
}

/// Where something failed, to be counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Record(TopicPartition, i64),
    /// No record is known; the same text is the same failure.
    Text(String),
}

#[derive(Debug)]
struct Failures {
    times: u32,
    last_ms: i64,
}

/// The failures of a client's stream threads.
///
/// ```
/// use streams_core::runtime::{FailureLog, Reaction, StreamThreadExceptionResponse::ReplaceThread};
/// use streams_core::Error;
/// let mut log = FailureLog::default();
/// let error = Box::new(Error::Topics { message: "gone".to_owned() });
/// let Reaction::Replace { after_ms, .. } = log.react(1, error, ReplaceThread, 1_000) else { panic!() };
/// assert_eq!(after_ms, 500);
/// ```
#[derive(Debug, Default)]
pub struct FailureLog {
    places: BTreeMap<Place, Failures>,
    /// Replacements in a row and the time of the last failure, by thread.
    threads: BTreeMap<usize, Failures>,
}

impl FailureLog {
    /// Notes that thread `thread` ended with `error` and says what has to be done, given the handler's answer. `now_ms` is
    /// the wall clock, milliseconds since the Unix epoch.
    pub fn react(
        &mut self,
        thread: usize,
        error: Box<Error>,
        answer: StreamThreadExceptionResponse,
        now_ms: i64,
    ) -> Reaction {
        let times = self.count(&error, now_ms);
        match answer {
            StreamThreadExceptionResponse::ShutdownClient => Reaction::ShutdownClient(error),
            StreamThreadExceptionResponse::ShutdownApplication => Reaction::ShutdownApplication(error),
            StreamThreadExceptionResponse::ReplaceThread if times >= MOST_FAILURES => {
                Reaction::ShutdownClient(Box::new(Error::Repeated { times, source: error }))
            }
            StreamThreadExceptionResponse::ReplaceThread => Reaction::Replace {
                after_ms: self.pause_ms(thread, now_ms),
                error,
            },
        }
    }

    /// How often this failed here lately, this time included; 1 for what waiting may cure.
    fn count(&mut self, error: &Error, now_ms: i64) -> u32 {
        self.places
            .retain(|_, failures| now_ms - failures.last_ms < REMEMBERED_MS);
        let place = match (error.record(), error) {
            (Some((topic_partition, offset)), _) => Place::Record(topic_partition.clone(), offset),
            // Two processes of one identity would fence each other for ever (design rule 1.13).
            (
                None,
                Error::Processing { .. }
                | Error::Serialize { .. }
                | Error::Produce { .. }
                | Error::TaskMigrated { .. }
                | Error::Bug { .. },
            ) => Place::Text(error.to_string()),
            _ => return 1,
        };
        let failures = self.places.entry(place).or_insert(Failures {
            times: 0,
            last_ms: now_ms,
        });
        failures.times += 1;
        failures.last_ms = now_ms;
        failures.times
    }

    fn pause_ms(&mut self, thread: usize, now_ms: i64) -> i64 {
        let failures = self.threads.entry(thread).or_insert(Failures {
            times: 0,
            last_ms: now_ms,
        });
        if now_ms - failures.last_ms >= LIVED_WELL_MS {
            failures.times = 0;
        }
        let pause_ms = FIRST_PAUSE_MS << failures.times.min(16);
        failures.times += 1;
        failures.last_ms = now_ms;
        pause_ms.min(LONGEST_PAUSE_MS)
    }
}

/// Runs a task's nodes. User code that is not called through its node's guard (serdes, partitioners, stores' users) may
/// panic too, and that is a failure of the record in hand.
pub(super) fn guarded<T>(task: &mut Task, work: impl FnOnce(&mut Task) -> ProcessResult<T>) -> ProcessResult<T> {
    match catch_unwind(AssertUnwindSafe(|| work(task))) {
        Ok(result) => result,
        Err(panic) => {
            let (id, message) = (task.id(), panic_message(&*panic));
            Err(Box::new(Error::Processing {
                node: "(not known)".to_owned(),
                task: id,
                place: task.parts().1.place(),
                message,
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::StreamThreadExceptionResponse::{ReplaceThread, ShutdownApplication, ShutdownClient};
    use super::*;
    use crate::TaskId;
    use crate::error::FailurePlace;

    fn failure_at(offset: i64) -> Box<Error> {
        Box::new(Error::Processing {
            node: "count".to_owned(),
            task: TaskId::new(0, 0),
            place: FailurePlace::Record {
                topic_partition: TopicPartition::new("in", 3),
                offset,
            },
            message: format!("no answer, attempt {offset}"),
        })
    }

    fn outage() -> Box<Error> {
        Box::new(Error::Timeout {
            what: "the start-up of tasks".to_owned(),
            waited_ms: 300_000,
            setting: "task.timeout.ms",
        })
    }

    fn pause(reaction: &Reaction) -> i64 {
        match reaction {
            Reaction::Replace { after_ms, .. } => *after_ms,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rule_4_3_the_fifth_failure_at_one_record_stops_the_client_and_names_it() {
        let mut log = FailureLog::default();
        for at in 0..4 {
            pause(&log.react(1, failure_at(17), ReplaceThread, at * 1_000));
        }
        let Reaction::ShutdownClient(error) = log.react(2, failure_at(17), ReplaceThread, 5_000) else {
            panic!("replaced a fifth time")
        };
        let text = error.to_string();
        assert!(text.contains("in-3 at offset 17") && text.contains('5'), "{text}");
    }

    #[test]
    fn rule_4_3_failures_at_different_records_are_not_one_loop() {
        let mut log = FailureLog::default();
        for offset in 0..50 {
            pause(&log.react(1, failure_at(offset), ReplaceThread, offset * 1_000));
        }
    }

    #[test]
    fn rule_4_3_a_failure_that_comes_back_after_an_hour_is_no_loop() {
        let mut log = FailureLog::default();
        for hour in 0..50 {
            pause(&log.react(1, failure_at(17), ReplaceThread, hour * 3_600_000));
        }
    }

    #[test]
    fn rule_4_3_replacements_back_off_and_an_outage_never_stops_them() {
        let mut log = FailureLog::default();
        let mut now_ms = 0;
        let pauses: Vec<i64> = (0..12)
            .map(|_| {
                let pause_ms = pause(&log.react(1, outage(), ReplaceThread, now_ms));
                now_ms += pause_ms + 1_000;
                pause_ms
            })
            .collect();
        assert_eq!(pauses[..8], [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
        assert!(pauses[8..].iter().all(|pause_ms| *pause_ms == 60_000));
        assert_eq!(pause(&log.react(2, outage(), ReplaceThread, now_ms)), 500);
        assert_eq!(pause(&log.react(1, outage(), ReplaceThread, now_ms + 600_000)), 500);
    }

    #[test]
    fn the_other_answers_are_followed_at_once() {
        let mut log = FailureLog::default();
        assert!(matches!(
            log.react(1, failure_at(1), ShutdownClient, 0),
            Reaction::ShutdownClient(_)
        ));
        assert!(matches!(
            log.react(1, failure_at(1), ShutdownApplication, 0),
            Reaction::ShutdownApplication(_)
        ));
        assert_eq!(StreamThreadExceptionResponse::default(), ShutdownClient);
    }
}
