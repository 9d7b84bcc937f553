//! What most programs use, for one line: `use streams_dsl::prelude::*`.
//!
//! Types and time units alone, no module: nothing here hides a crate such as `serde` or `metrics`, and a type of your own
//! with one of these names wins over this one.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use streams_dsl::prelude::*;
//!
//! #[derive(Clone, Serialize, Deserialize)]
//! struct Usage { bytes: u64 }
//! impl DefaultSerde for Usage { type Serde = Json<Self>; }
//!
//! let builder = StreamsBuilder::new();
//! builder.stream::<String, Usage>("usage").filter(|_tenant, usage| usage.bytes > 0).to("billable");
//! # builder.build()?;
//! # Ok::<(), TopologyError>(())
//! ```

pub use crate::serdes::{DefaultSerde, Json, Serde, SerdeError, SessionWindowed, TimeWindowed};
pub use crate::{
    AutoOffsetReset, CogroupedKStream, FixedKeyContext, FixedKeyProcessor, FixedKeyRecord, KeyValueStore, NewRecord,
    Optimization, Partitions, Processor, ProcessorContext, PunctuationType, PunctuatorId, Record, RecordContext,
    RecordMeta, RecordTimes, SessionStore, SessionWindowedKStream, Stores, TableJoined, TaskId,
    TimeWindowedCogroupedKStream, Timestamps, TopologyBuilder, TopologyConfig, TtlStore, ValueAndTimestamp,
    ValueTransformer, ValueTransformerContext, VersionedStore, WindowStore,
};
pub use crate::{
    BoxError, Branched, Connect, Consumed, DAY, EmitStrategy, GlobalKTable, Grouped, HOUR, Headers, JoinWindows,
    Joined, KGroupedStream, KGroupedTable, KStream, KTable, MILLISECOND, MINUTE, Materialized, Produced, Repartitioned,
    SECOND, SessionWindows, SlidingWindows, StateStore, StreamJoined, StreamsBuilder, StreamsConfig, Suppressed,
    TimeWindowedKStream, TimeWindows, Topology, TopologyError, UnlimitedWindows, Window, Windowed,
};
// Beyond Java.
pub use crate::{AsOf, Calendar, CalendarWindows, DuplicatesWithin, EventId};
pub use crate::{DriverOptions, TestInput, TestOutput, TestRecord, TopologyTestDriver};
#[cfg(feature = "kafka")]
pub use crate::{KafkaStreams, State};
