//! The I/O shell: sockets, threads, clocks and librdkafka.

pub mod group;
