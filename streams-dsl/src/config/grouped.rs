//! How a stream is grouped.

use streams_core::serde::{DefaultSerde, Serde};

use super::common::named_serdes;
use crate::serdes::Chosen;

/// How a stream is grouped: serdes, and a name for the repartition (and for the key-selecting node of `group_by`).
/// Java counterpart: `Grouped`.
pub struct Grouped<K, V> {
    pub(crate) name: Option<String>,
    pub(crate) key: Chosen<K>,
    pub(crate) value: Chosen<V>,
}

named_serdes!(
    Grouped {},
    "By the stream's serdes, else the types' default ones; the repartition topic is `<application.id>-NAME-repartition`.",
    "Names the repartition topic."
);
