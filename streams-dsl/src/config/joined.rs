//! How a stream is joined with a table.

use streams_core::serde::{DefaultSerde, Serde};

use crate::serdes::Chosen;

/// How a stream is joined with a table: the stream's serdes (for its repartition, and to know nulls), and a name for
/// the node and the repartition. Java counterpart: `Joined`.
pub struct Joined<K, V> {
    pub(crate) name: Option<String>,
    pub(crate) key: Chosen<K>,
    pub(crate) value: Chosen<V>,
}

impl<K: DefaultSerde, V: DefaultSerde> Default for Joined<K, V> {
    fn default() -> Self {
        Joined {
            name: None,
            key: Chosen::default(),
            value: Chosen::default(),
        }
    }
}

impl<K: 'static, V: 'static> Joined<K, V> {
    /// By these serdes.
    pub fn with(key: impl Serde<K>, value: impl Serde<V>) -> Self {
        Joined {
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

    /// Names the node and the repartition topic.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
}
