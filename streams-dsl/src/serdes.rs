//! Which serde a step uses: the one it is given, else the one the stream came with, else the type's default.

use std::sync::Arc;

use streams_core::serde::{DefaultSerde, Serde, SharedSerde};

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
