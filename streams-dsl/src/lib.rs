//! Kafka Streams for Rust: the one crate that an application depends on.
//!
//! A program builds a [`Topology`] with a [`StreamsBuilder`], tests it on a [`TopologyTestDriver`], and runs it with
//! `KafkaStreams` (feature `kafka`):
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use streams_dsl::prelude::*;
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Usage { project: String, bytes: u64 }
//! impl DefaultSerde for Usage { type Serde = Json<Self>; }
//!
//! #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
//! struct Bill { bytes: u64 }
//! impl DefaultSerde for Bill { type Serde = Json<Self>; }
//! impl Bill {
//!     fn add(self, usage: &Usage) -> Bill { Bill { bytes: self.bytes + usage.bytes } }
//! }
//!
//! let builder = StreamsBuilder::new();
//! builder
//!     .stream::<String, Usage>("usage")
//!     .filter(|_tenant, usage| usage.bytes > 0)
//!     .select_key(|_tenant, usage| usage.project.clone())
//!     .group_by_key()
//!     .windowed_by(TimeWindows::of(HOUR).grace(5 * MINUTE))
//!     .aggregate(Bill::default, |_project, usage, bill| bill.add(usage), "hourly-bill")
//!     .to_stream()
//!     .to("invoices");
//! let topology = builder.build()?;
//!
//! // Without a broker. Times are event time, milliseconds since the Unix epoch.
//! let mut driver = TopologyTestDriver::new(&topology, DriverOptions::default())?;
//! let usage = TestInput::<String, Usage>::of("usage");
//! usage.pipe(&mut driver, "tenant-1", Usage { project: "web".into(), bytes: 7 }, 1_000)?;
//! usage.pipe(&mut driver, "tenant-1", Usage { project: "web".into(), bytes: 5 }, 2_000)?;
//! let invoices = TestOutput::<Windowed<String>, Option<Bill>>::of("invoices");
//! assert_eq!(invoices.read_values_to_list(&mut driver)?, [Some(Bill { bytes: 7 }), Some(Bill { bytes: 12 })]);
//! # Ok::<(), BoxError>(())
//! ```
//!
//! On a broker the last part is `KafkaStreams::new(topology, StreamsConfig::new("billing", "localhost:9092"))?.start()?`.
//!
//! # Where to look
//!
//! - **Write**: [`StreamsBuilder`] reads topics as [`KStream`], [`KTable`] and [`GlobalKTable`]; [`KStream::group_by_key`]
//!   leads to [`KGroupedStream`] and, with [`TimeWindows`], to [`TimeWindowedKStream`]. [`Consumed`], [`Produced`],
//!   [`Grouped`], [`Joined`] and [`Materialized`] say how; the methods that take them end in `_with`. Operators of one's
//!   own are a [`Processor`] or [`FixedKeyProcessor`], with [`Stores`].
//! - **Bytes on topics**: [`DefaultSerde`] at the type, [`serdes`] for all others. Nulls are `Option`.
//! - **Test**: [`TopologyTestDriver`], [`TestInput`], [`TestOutput`]; on a real broker the crate `streams-testkit`.
//! - **Change**: [`lock`] compares a topology with the one that ran before; [`Topology::to_mermaid`] draws it.
//! - **Run**: `KafkaStreams` (feature `kafka`) with a [`StreamsConfig`]; state in RocksDB with the feature `rocksdb`.
//! - **Errors**: [`Error`] is named for the decision it forces; [`ErrorHandlers`] decide about single records.
//! - **Watch**: [`streams_metrics`] has the names, the application chooses the recorder of the crate `metrics`.
//!
//! # Features
//!
//! `kafka` (librdkafka: `KafkaStreams`) and `rocksdb` (state on disk) are on by default and compile C++. Without them, by
//! `default-features = false`, the DSL and the test driver need no C++.
//!
//! # In words
//!
//! Closures get the key first, both by reference. Times are `Duration`, or milliseconds since the Unix epoch in names that
//! end in `_ms`. Names of types, topics and settings are Kafka Streams'; each page names its Java counterpart.

mod builder;
mod by_hand;
mod config;
#[doc(hidden)]
pub mod doctest;
mod graph;
mod grouped;
#[cfg(doctest)]
mod guide;
mod kstream;
mod ktable;
pub mod lock;
mod names;
mod node;
pub mod prelude;
pub mod serdes;
mod step;
mod stores;
mod windows;

pub use builder::{Optimization, StreamsBuilder, TopologyConfig};
pub use by_hand::TopologyBuilder;
pub use config::{
    Connect, Consumed, Grouped, Joined, Materialized, Produced, Repartitioned, StreamJoined, Suppressed, TableJoined,
};
pub use grouped::{
    CogroupWindows, CogroupedKStream, CountWindowedKStream, EmitStrategy, KGroupedStream, KGroupedTable,
    SessionWindowedCogroupedKStream, SessionWindowedKStream, SpreadKGroupedStream, TimeWindowedCogroupedKStream,
    TimeWindowedKStream, WindowsOf,
};
pub use kstream::{AsOf, Branched, BranchedKStream, DuplicatesWithin, KStream, NewRecord, RecordMeta};
pub use ktable::{GlobalKTable, KTable, ValueTransformer, ValueTransformerContext};
pub use step::Step;
pub use stores::{StateStore, Stores};
pub use windows::{
    Calendar, CalendarWindows, DAY, HOUR, JoinWindows, MILLISECOND, MINUTE, SECOND, SessionWindows, SlidingWindows,
    TimeWindows, UnlimitedWindows,
};

pub use streams_core::config::{
    GroupProtocol, OffsetReset, OnError, ProcessingGuarantee, StreamsConfig, env_properties,
};
#[cfg(feature = "kafka")]
pub use streams_core::kafka::{
    KafkaStreams, State, StateListener, StreamThreadExceptionResponse, ThreadMetadata, UncaughtExceptionHandler,
};
// Not under the names of the crates `metrics` and `serde`, which `use streams_dsl::*` would hide.
pub use streams_core::metrics as streams_metrics;
pub use streams_core::processor::{
    DeadLetter, Decision, ErrorContext, ErrorHandlers, HandlerResponse, LogAndContinue, LogAndFail,
};
pub use streams_core::processor::{
    FixedKeyContext, FixedKeyProcessor, FixedKeyRecord, Partitions, Processor, ProcessorContext, ProcessorSupplier,
    PunctuationType, PunctuatorId, RecordContext, RecordTimes, TaskContext, Timestamps,
};
pub use streams_core::serde::{DefaultSerde, Json, Serde, SerdeError, SharedSerde};
pub use streams_core::stores::{
    Direction, KeyValueStore, LruStore, ManagedStore, SessionStore, StoreBuilder, TtlStore, ValueAndTimestamp,
    VersionPut, VersionedStore, VersionedValue, WindowStore,
};
/// Tests a topology without a broker, as a test of an application does:
///
/// ```
/// use streams_dsl::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// let clicks = builder.stream::<String, i64>("clicks").group_by_key();
/// clicks.reduce(|_user, new, sum| sum + new, "sums").to_stream().to("sums");
///
/// let mut driver = TopologyTestDriver::new(&builder.build()?, DriverOptions::default())?;
/// let (clicks, sums) = (TestInput::<String, i64>::of("clicks"), TestOutput::<String, i64>::of("sums"));
/// clicks.pipe(&mut driver, "ann", 2, 1_000)?; // event time, milliseconds since the Unix epoch
/// clicks.pipe(&mut driver, "bob", 1, 2_000)?;
/// clicks.pipe(&mut driver, "ann", 3, 3_000)?;
///
/// assert_eq!(sums.read_key_value(&mut driver)?, Some(("ann".to_owned(), 2)));
/// assert_eq!(sums.read_key_values_to_map(&mut driver)?, [("ann".to_owned(), 5), ("bob".to_owned(), 1)].into());
/// assert!(sums.is_empty(&driver));
/// assert_eq!(driver.key_value::<String, i64>("sums", &"ann".to_owned())?.map(|row| row.value), Some(5));
///
/// driver.advance_wall_clock_time(10 * SECOND)?; // runs punctuations by wall-clock time that are due
/// # Ok::<(), BoxError>(())
/// ```
pub use streams_core::test_driver::TopologyTestDriver;
pub use streams_core::test_driver::{DriverOptions, TestInput, TestOutput, TestRecord};
pub use streams_core::topology::{AutoOffsetReset, Topology, TopologyError};
pub use streams_core::{
    BoxError, Change, Error, EventId, Header, Headers, ProcessResult, Record, TaskId, Window, Windowed,
};
