//! Orders in, priced orders out: filter → map_values → peek → to.

use serde::{Deserialize, Serialize};
use streams_dsl::{DefaultSerde, Json, StreamsBuilder, Topology, TopologyError};

/// The input topic: orders by customer.
pub const ORDERS: &str = "orders";
/// The output topic: priced orders by customer.
pub const PRICED: &str = "orders.priced";

/// An order as it comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// What.
    pub item: String,
    /// How many; cancelled orders have 0.
    pub quantity: u32,
    /// The price of one, cents.
    pub unit_cents: u64,
}

impl DefaultSerde for Order {
    type Serde = Json<Self>;
}

/// An order with its price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PricedOrder {
    /// What was ordered.
    pub order: Order,
    /// The price of all, cents.
    pub total_cents: u64,
    /// Whether it is shipped for nothing.
    pub free_shipping: bool,
}

impl DefaultSerde for PricedOrder {
    type Serde = Json<Self>;
}

/// From this price on, cents, shipping is free.
const FREE_SHIPPING_CENTS: u64 = 5_000;

/// The topology; `on_priced` is told of each priced order.
///
/// # Errors
/// None, unless the topology is changed to one that can't be built.
pub fn topology(on_priced: impl Fn(&str, &PricedOrder) + Send + Sync + 'static) -> Result<Topology, TopologyError> {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, Order>(ORDERS)
        .filter(|_customer, order| order.quantity > 0)
        .map_values(|_customer, order| price(order))
        .peek(move |customer, priced| on_priced(customer, priced))
        .to(PRICED);
    builder.build()
}

fn price(order: &Order) -> PricedOrder {
    let total_cents = u64::from(order.quantity) * order.unit_cents;
    PricedOrder {
        order: order.clone(),
        total_cents,
        free_shipping: total_cents >= FREE_SHIPPING_CENTS,
    }
}
