//! A real Kafka for tests and examples, topic helpers, a read-committed collector and a crash harness.
//!
//! # Test your topology on a real broker in ten lines
//!
//! ```no_run
//! use std::time::Duration;
//! use streams_testkit::{ChildApp, Kafka, KafkaOptions, NewRecord};
//!
//! let kafka = Kafka::start(KafkaOptions::default())?;                        // a Kafka 4.4, up in 2 to 3 s
//! kafka.create_topic("usage", 4, &[])?;
//! kafka.create_topic("invoices", 4, &[])?;
//! kafka.produce("usage", [NewRecord::new("tenant-1", r#"{"bytes":17}"#).at(1_000)])?;
//! let mut app = ChildApp::built("billing")?.env("KAFKA_BOOTSTRAP", kafka.bootstrap()).start()?;
//! let invoices = kafka.wait_until("invoices", Duration::from_secs(30), |records| !records.is_empty())?;
//! assert_eq!(invoices[0].value_text(), r#"{"cents":34}"#);                   // committed records only
//! app.terminate(Duration::from_secs(30))?;
//! # Ok::<(), streams_testkit::Error>(())
//! ```
//!
//! The broker comes from `KAFKA_BOOTSTRAP` (one that runs already), else from `KAFKA_HOME` (an unpacked Kafka), else from
//! jars that Maven fetches once into the user's cache folder. Needed for the last: Java 17 or newer and Maven (on Debian or
//! Ubuntu `apt-get install openjdk-17-jre-headless maven`); what is missing is said by the error. The first start also makes
//! a class-data archive for the JVM, which halves every later start. Nothing is left behind: the broker and its temporary
//! folder go with the [`Kafka`], and the broker also ends when the test process is killed.
//!
//! # Survive `kill -9`
//!
//! ```no_run
//! # use std::time::Duration;
//! # use streams_testkit::{ChildApp, Kafka, KafkaOptions, KillLoop};
//! # let kafka = Kafka::start(KafkaOptions::default())?;
//! let app = ChildApp::built("billing")?.env("KAFKA_BOOTSTRAP", kafka.bootstrap());
//! let inputs = kafka.topics().end_offsets("usage")?;
//! KillLoop::from_env(20)?                                                     // prints the seed of its random moments
//!     .delay(Duration::from_millis(100)..=Duration::from_secs(2))
//!     .run(&app, Duration::from_secs(300), || {
//!         Ok(kafka.topics().committed_offsets("billing", "usage")? == inputs)
//!     })?;
//! let invoices = kafka.collect("invoices")?;                                  // compare with what they must be
//! # let _ = invoices;
//! # Ok::<(), streams_testkit::Error>(())
//! ```
//!
//! # What there is
//!
//! - [`Kafka`]: start, stop, kill, pause and restart a broker on its data; topics by [`Topics`].
//! - [`NewRecord`] to write (keys, timestamps, headers, tombstones), [`Transaction`] for aborted and open transactions in inputs.
//! - [`Collector`] and [`Record`]: what a read-committed consumer sees, to the last stable offset; [`latest_by_key`].
//! - [`Backlog`]: what a group has not committed yet, to know when an application is done.
//! - [`ChildApp`], [`RunningApp`], [`KillLoop`], [`Seeded`]: applications as processes that can be killed at any moment.
//! - `simulate` (feature `simulate`): topologies under seeded faults, without a broker.
//!
//! Every wait has a bound, and its error says what was seen instead.

// The topologies of the example are those of the simulator's own tests too.
#[cfg(all(test, feature = "simulate"))]
extern crate self as streams_testkit;

#[cfg(feature = "kafka")]
mod backlog;
#[cfg(feature = "kafka")]
mod child;
#[cfg(feature = "kafka")]
mod collector;
mod error;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "kafka")]
mod produce;
mod seed;
#[cfg(feature = "simulate")]
pub mod simulate;
#[cfg(feature = "kafka")]
mod supervise;
#[cfg(feature = "kafka")]
mod topics;
#[cfg(feature = "kafka")]
mod wait;

#[cfg(feature = "kafka")]
pub use backlog::Backlog;
#[cfg(feature = "kafka")]
pub use child::{ChildApp, KillLoop, KillReport, RunningApp, is_child_of_test};
#[cfg(feature = "kafka")]
pub use collector::{Collector, Isolation, Record, latest_by_key};
pub use error::{Error, Result};
#[cfg(feature = "kafka")]
pub use kafka::{BOOTSTRAP_VARIABLE, Kafka, KafkaOptions, Profile};
#[cfg(feature = "kafka")]
pub use produce::{NewRecord, Transaction};
pub use seed::{SEED_VARIABLE, Seeded};
#[cfg(feature = "kafka")]
pub use supervise::Exit;
#[cfg(feature = "kafka")]
pub use topics::Topics;
#[cfg(feature = "kafka")]
pub use wait::wait_until;

/// The last `count` lines, for error messages.
#[cfg(feature = "kafka")]
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    let start = lines.len().saturating_sub(count);
    lines.get(start..).unwrap_or_default().join("\n")
}
