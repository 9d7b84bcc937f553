//! The typed chain: what a node is, how it gets its children, and what it can reach while a record passes.

mod api;
mod bad_records;
mod context;
mod counters;
mod fixed_key;
mod handlers;
mod node;
mod punctuation;
mod record_context;
mod rows;
mod sink;
mod source;
mod too_large;
mod user;

pub use api::{ForwardFailed, Processor, ProcessorContext, ProcessorNode, ProcessorSupplier};
pub use bad_records::RawBytes;
pub use context::{OperatorTime, OutputTopic, TaskContext};
pub use counters::TaskCounters;
pub use fixed_key::{FixedKey, FixedKeyContext, FixedKeyProcessor, FixedKeyRecord};
pub use handlers::{
    DEAD_LETTER_HEADERS, DeadLetter, Decision, DeserializationHandler, ErrorContext, ErrorHandlers, HandlerResponse,
    LogAndContinue, LogAndFail, ProcessingHandler, ProductionDecision, ProductionHandler,
};
pub(crate) use node::BuiltGraph;
pub use node::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, RawRecord, SourceFactory, SourceNode};
pub(crate) use punctuation::{PunctuationQueue, Schedules};
pub use punctuation::{PunctuationType, PunctuatorId};
pub use record_context::RecordContext;
pub use rows::{RowReader, SourceRow};
pub use sink::{Partitions, SinkPartitioner, SinkTarget, TypedSink};
pub use source::{RecordTimes, Timestamps, TypedSource};
#[cfg(feature = "kafka")]
pub(crate) use too_large::{Bound, TOO_LARGE, TooLarge};
pub use user::catch_user;
pub(crate) use user::panic_message;
