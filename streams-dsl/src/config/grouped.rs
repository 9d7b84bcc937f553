//! How a stream is grouped.

use streams_core::serde::{DefaultSerde, Serde};

use crate::serdes::Chosen;

/// How a stream is grouped: serdes, and a name for the repartition (and for the key-selecting node of `group_by`).
/// Java counterpart: `Grouped`.
pub struct Grouped<K, V> {
    pub(crate) name: Option<String>,
    pub(crate) key: Chosen<K>,
    pub(crate) value: Chosen<V>,
}

impl<K: DefaultSerde, V: DefaultSerde> Default for Grouped<K, V> {
    fn default() -> Self {
        Grouped {
            name: None,
            key: Chosen::default(),
            value: Chosen::default(),
        }
    }
}

impl<K: 'static, V: 'static> Grouped<K, V> {
    /// By these serdes.
    pub fn with(key: impl Serde<K>, value: impl Serde<V>) -> Self {
        Grouped {
            name: None,
            key: Chosen::given(key),
            value: Chosen::given(value),
        }
    }

    /// By the stream's serdes, else the types' default ones; the repartition topic is
    /// `<application.id>-NAME-repartition`.
    pub fn named(name: &str) -> Self
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        Self::default().with_name(name)
    }

    /// Names the repartition topic.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
}
