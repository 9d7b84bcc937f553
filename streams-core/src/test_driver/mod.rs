//! Topologies without a broker: the core as shipped, over a broker in memory and a clock moved by hand.

mod broker;
mod driver;
mod log;
mod shell;

pub use broker::{Fenced, MemoryBroker, ProducerSession};
pub use driver::{DriverOptions, TestInput, TopologyTestDriver};
pub use log::{Log, LogRecord};
pub use shell::MemoryShell;
