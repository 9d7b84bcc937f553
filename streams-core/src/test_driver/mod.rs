//! Topologies without a broker: the core as shipped, over a broker in memory and a clock moved by hand.

mod broker;
mod consumer;
mod driver;
mod log;
mod restart;
mod shell;
mod stores;
mod typed;

pub use broker::{MemoryBroker, ProducerSession, TransactionError};
pub use consumer::{MemoryConsumer, batch_of};
pub use driver::{DriverOptions, TopologyTestDriver};
pub use log::{Log, LogRecord};
pub use shell::{MemoryShell, any_partition, facts, log_record, start_of};
pub use typed::{TestInput, TestOutput, TestRecord};
