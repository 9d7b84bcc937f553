//! Serdes: how keys and values become bytes on a topic, with the byte forms of Java's `Serdes` and `WindowedSerdes`.
//!
//! A type names its own in one line (`impl DefaultSerde for Usage { type Serde = Json<Self>; }`); the ones here are for
//! the `…_with` methods and for serdes of your own.
//!
//! ```
//! use streams_dsl::serdes::{Long, Utf8};
//! use streams_dsl::{Consumed, Produced, StreamsBuilder};
//!
//! let builder = StreamsBuilder::new();
//! let lengths = builder.stream_with::<String, String>("words", Consumed::with(Utf8, Utf8)).map_values(|_, word| word.len() as i64);
//! lengths.to_with("lengths", Produced::with(Utf8, Long));
//! # builder.build()?;
//! # Ok::<(), streams_dsl::TopologyError>(())
//! ```
//!
//! The module is not called `serde`: `use streams_dsl::*` would hide the crate of that name.

use std::sync::Arc;

pub use streams_core::serde::{
    Boolean, Bytes, ChangeSerde, DefaultSerde, Double, Float, Integer, Json, List, Long, OptionSerde, Serde,
    SerdeError, SessionWindowed, SharedSerde, Short, TimeWindowed, Utf8, UuidText, Void,
};

// Which serde a step uses: the one it is given, else the one the stream came with, else the type's default.

/// A serde as a config struct holds it.
pub(crate) enum Chosen<T> {
    /// Given by the user.
    Given(SharedSerde<T>),
    /// The type's default, for where the stream brings none along.
    Default(SharedSerde<T>),
}

impl<T> Clone for Chosen<T> {
    fn clone(&self) -> Self {
        match self {
            Chosen::Given(serde) => Chosen::Given(Arc::clone(serde)),
            Chosen::Default(serde) => Chosen::Default(Arc::clone(serde)),
        }
    }
}

impl<T: 'static> Chosen<T> {
    pub(crate) fn given(serde: impl Serde<T>) -> Self {
        Chosen::Given(Arc::new(serde))
    }

    pub(crate) fn default() -> Self
    where
        T: DefaultSerde,
    {
        Chosen::Default(T::shared())
    }

    pub(crate) fn resolve(&self, upstream: Option<&SharedSerde<T>>) -> SharedSerde<T> {
        match self {
            Chosen::Given(serde) => Arc::clone(serde),
            Chosen::Default(serde) => Arc::clone(upstream.unwrap_or(serde)),
        }
    }
}
