//! Bills airlines for the departures of an airport, exactly once: see the README beside this crate.

pub mod data;
pub mod demo;
pub mod endpoint;
pub mod feed;
pub mod model;
pub mod offline;
pub mod plain;
pub mod report;
pub mod run;
pub mod statistics;
pub mod time;
pub mod topics;
pub mod topology;
mod watch;

pub use data::sample_dir;
