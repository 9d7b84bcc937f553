//! One application under the three guarantees and the same kills.

pub mod app;
pub mod demo;
pub mod tally;

use std::sync::Arc;

use streams_dsl::{ProcessingGuarantee, StreamsBuilder, Topology, TopologyError};

/// The guarantees, by the names of `processing.guarantee`.
pub const GUARANTEES: [(ProcessingGuarantee, &str); 3] = [
    (ProcessingGuarantee::ExactlyOnceV2, "exactly_once_v2"),
    (ProcessingGuarantee::AtLeastOnce, "at_least_once"),
    (ProcessingGuarantee::AtMostOnce, "at_most_once"),
];

/// Told of each order, on a stream thread, before anything is done with it.
pub type OnOrder = Arc<dyn Fn() + Send + Sync>;

/// The topics and the group of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    prefix: String,
}

impl Names {
    /// Names that begin with this.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Names {
            prefix: prefix.to_owned(),
        }
    }

    /// What they begin with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Orders by customer; the value is the order's number.
    #[must_use]
    pub fn orders(&self) -> String {
        format!("{}.orders", self.prefix)
    }

    /// Every order again.
    #[must_use]
    pub fn shipped(&self) -> String {
        format!("{}.shipped", self.prefix)
    }

    /// How many orders each customer has, eight bytes, big endian.
    #[must_use]
    pub fn counts(&self) -> String {
        format!("{}.counts", self.prefix)
    }
}

/// Ships every order and counts the orders of each customer.
///
/// # Errors
/// None, unless the pipeline is changed to one that can't be built.
pub fn topology(names: &Names, on_order: OnOrder) -> Result<Topology, TopologyError> {
    let builder = StreamsBuilder::new();
    let orders = builder
        .stream::<String, String>(&names.orders())
        .peek(move |_, _| on_order());
    orders.to(&names.shipped());
    orders.group_by_key().count("orders").to_stream().to(&names.counts());
    builder.build()
}
