//! Short helpers that make doctests short: run a topology, pipe records in, compare what comes out.
//!
//! They fail by panics, as tests do.
#![allow(clippy::panic, reason = "assertions of doctests")]

use std::fmt::Debug;

pub use crate::*;

/// An event time, milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(i64);

/// An event time, milliseconds since the Unix epoch.
#[must_use]
pub fn at(timestamp_ms: i64) -> At {
    At(timestamp_ms)
}

/// A key or value as it is short to write, and as it is typed in a stream.
pub trait Sample {
    /// The typed form.
    type Typed: DefaultSerde + Debug;
    /// Makes it.
    fn typed(self) -> Self::Typed;
}

impl Sample for &str {
    type Typed = String;
    fn typed(self) -> String {
        self.to_owned()
    }
}

impl Sample for i64 {
    type Typed = i64;
    fn typed(self) -> i64 {
        self
    }
}

impl<S: Sample> Sample for Option<S> {
    type Typed = Option<S::Typed>;
    fn typed(self) -> Self::Typed {
        self.map(Sample::typed)
    }
}

impl<S: Sample> Sample for Windowed<S> {
    type Typed = Windowed<S::Typed>;
    fn typed(self) -> Self::Typed {
        Windowed::new(self.key.typed(), self.window)
    }
}

/// The key of a window that starts at `start_ms`; the end is not written to topics.
pub fn window<K>(key: K, start_ms: i64) -> Windowed<K> {
    Windowed::new(key, Window::of_size(start_ms, i64::MAX))
}

/// The key of a session between two event times, both included.
pub fn session<K>(key: K, start_ms: i64, end_ms: i64) -> InSession<K> {
    InSession(key, Window::new(start_ms, end_ms))
}

/// A key in a session, which is written with both its times.
#[derive(Debug)]
pub struct InSession<K>(K, Window);

impl<K: DefaultSerde> DefaultSerde for InSession<K> {
    type Serde = SessionKeySerde<K::Serde>;
}

/// Writes keys in sessions as the DSL does.
#[derive(Default)]
pub struct SessionKeySerde<S>(streams_core::serde::SessionWindowed<S>);

impl<K: DefaultSerde> Serde<InSession<K>> for SessionKeySerde<K::Serde> {
    fn serialize(&self, topic: &str, value: &InSession<K>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        let present = K::Serde::default().serialize(topic, &value.0, out)?;
        out.extend_from_slice(&value.1.end_ms.to_be_bytes());
        out.extend_from_slice(&value.1.start_ms.to_be_bytes());
        Ok(present)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<InSession<K>, SerdeError> {
        let Windowed { key, window }: Windowed<K> = self.0.deserialize(topic, bytes)?;
        Ok(InSession(key, window))
    }
}

impl<S: Sample> Sample for InSession<S> {
    type Typed = InSession<S::Typed>;
    fn typed(self) -> Self::Typed {
        InSession(self.0.typed(), self.1)
    }
}

/// A running topology.
pub struct Run {
    driver: TopologyTestDriver,
}

/// Builds a topology and runs it, without record cache.
pub fn run<R>(build: impl FnOnce(&StreamsBuilder) -> R) -> Run {
    let builder = StreamsBuilder::new();
    build(&builder);
    let topology = builder.build().unwrap_or_else(|error| panic!("{error}"));
    let driver = TopologyTestDriver::new(&topology, DriverOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    Run { driver }
}

impl Run {
    /// Pipes records in, one by one.
    #[must_use]
    pub fn pipe<K: Sample, V: Sample>(mut self, topic: &str, records: impl IntoIterator<Item = (K, V, At)>) -> Self {
        for (key, value, At(time)) in records {
            let (key, value) = (bytes(topic, &key.typed()), bytes(topic, &value.typed()));
            let piped = self
                .driver
                .pipe(topic, key.as_deref(), value.as_deref(), time, Headers::empty());
            piped.unwrap_or_else(|error| panic!("{error}"));
        }
        self
    }

    /// Compares what a topic got since the last look.
    pub fn gives<K: Sample, V: Sample>(mut self, topic: &str, expected: impl IntoIterator<Item = (K, V, At)>) -> Self {
        for (key, value, At(time)) in expected {
            let (key, value) = (key.typed(), value.typed());
            let Some(record) = self.driver.read_record(topic) else {
                panic!("{topic} lacks {key:?}: {value:?} at {time}")
            };
            let same =
                record.key == bytes(topic, &key) && record.value == bytes(topic, &value) && record.timestamp_ms == time;
            assert!(
                same,
                "{topic} should have {key:?}: {value:?} at {time}, it has {:?}: {:?} at {}",
                typed::<K::Typed>(topic, record.key.as_deref()),
                typed::<V::Typed>(topic, record.value.as_deref()),
                record.timestamp_ms
            );
        }
        if let Some(more) = self.driver.read_record(topic) {
            panic!(
                "{topic} has more: {:?}: {:?} at {}",
                typed::<K::Typed>(topic, more.key.as_deref()),
                typed::<V::Typed>(topic, more.value.as_deref()),
                more.timestamp_ms
            );
        }
        self
    }

    /// Kills the process and starts it anew: state comes from the changelogs.
    #[must_use]
    pub fn restart(mut self) -> Self {
        self.driver.restart().unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// Moves the wall clock on by so many milliseconds.
    #[must_use]
    pub fn advance(mut self, by_ms: i64) -> Self {
        let advanced = self.driver.advance_wall_clock_ms(by_ms);
        advanced.unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// Compares the count of dropped records.
    pub fn dropped(self, expected: u64) -> Self {
        assert_eq!(self.driver.dropped_records(), expected, "dropped records");
        self
    }
}

fn bytes<T: DefaultSerde>(topic: &str, value: &T) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let present = T::Serde::default()
        .serialize(topic, value, &mut out)
        .unwrap_or_else(|error| panic!("{error}"));
    present.then_some(out)
}

fn typed<T: DefaultSerde>(topic: &str, bytes: Option<&[u8]>) -> Result<T, streams_core::SerdeError> {
    T::Serde::default().deserialize(topic, bytes)
}
