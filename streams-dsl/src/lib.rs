//! Kafka Streams for Rust: what an application imports.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use streams_dsl::{DefaultSerde, HOUR, Json, MINUTE, StreamsBuilder, TimeWindows};
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Usage { project: String, bytes: u64 }
//! impl DefaultSerde for Usage { type Serde = Json<Self>; }
//!
//! #[derive(Clone, Default, Serialize, Deserialize)]
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
//! # assert!(topology.describe().contains("hourly-bill-repartition"));
//! # Ok::<(), streams_dsl::TopologyError>(())
//! ```

mod builder;
mod config;
#[doc(hidden)]
pub mod doctest;
mod graph;
mod grouped;
mod kstream;
mod ktable;
mod names;
mod node;
mod serdes;
mod step;
mod stores;
mod windows;

pub use builder::{Optimization, StreamsBuilder, TopologyConfig};
pub use config::{Connect, Consumed, Grouped, Joined, Materialized, Produced, Repartitioned};
pub use grouped::{KGroupedStream, KGroupedTable, TimeWindowedKStream};
pub use kstream::{Branched, BranchedKStream, KStream};
pub use ktable::{GlobalKTable, KTable};
pub use step::Step;
pub use stores::{StateStore, Stores};
pub use windows::{DAY, HOUR, MILLISECOND, MINUTE, SECOND, TimeWindows};

pub use streams_core::config::{
    GroupProtocol, OffsetReset, OnError, ProcessingGuarantee, StreamsConfig, env_properties,
};
#[cfg(feature = "kafka")]
pub use streams_core::kafka::{
    KafkaStreams, State, StateListener, StreamThreadExceptionResponse, ThreadMetadata, UncaughtExceptionHandler,
};
pub use streams_core::metrics;
pub use streams_core::processor::{
    DeadLetter, Decision, ErrorContext, ErrorHandlers, HandlerResponse, LogAndContinue, LogAndFail,
};
pub use streams_core::processor::{
    FixedKeyContext, FixedKeyProcessor, FixedKeyRecord, Partitions, Processor, ProcessorContext, ProcessorSupplier,
    PunctuationType, PunctuatorId, RecordContext, RecordTimes, Timestamps,
};
pub use streams_core::serde::{DefaultSerde, Json, Serde, SerdeError, SharedSerde};
pub use streams_core::stores::{KeyValueStore, ValueAndTimestamp, WindowStore};
pub use streams_core::test_driver::{DriverOptions, TestInput, TopologyTestDriver};
pub use streams_core::topology::{AutoOffsetReset, Topology, TopologyError};
pub use streams_core::{
    BoxError, Change, Error, Header, Headers, ProcessResult, Record, TaskId, Window, Windowed, serde,
};
