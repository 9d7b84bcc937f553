//! The topology on the test driver.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use order_enrichment::{ORDERS, Order, PRICED, PricedOrder, topology};
use streams_dsl::{DriverOptions, TestInput, TestOutput, TopologyTestDriver};

fn order(item: &str, quantity: u32, unit_cents: u64) -> Order {
    Order {
        item: item.to_owned(),
        quantity,
        unit_cents,
    }
}

#[test]
fn cancelled_orders_are_left_out_and_the_others_are_priced() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let topology =
        topology(move |customer, priced| told.lock().unwrap().push((customer.to_owned(), priced.total_cents))).unwrap();
    let mut driver = TopologyTestDriver::new(&topology, DriverOptions::default()).unwrap();
    let orders = TestInput::<String, Order>::of(ORDERS);
    for (customer, order) in [
        ("ann", order("tea", 3, 450)),
        ("bob", order("cup", 0, 900)),
        ("ann", order("pot", 1, 5_000)),
    ] {
        orders.pipe(&mut driver, customer, order, 1_000).unwrap();
    }
    let priced = TestOutput::<String, PricedOrder>::of(PRICED);
    let expected = [
        PricedOrder {
            order: order("tea", 3, 450),
            total_cents: 1_350,
            free_shipping: false,
        },
        PricedOrder {
            order: order("pot", 1, 5_000),
            total_cents: 5_000,
            free_shipping: true,
        },
    ];
    assert_eq!(priced.read_values_to_list(&mut driver).unwrap(), expected);
    assert_eq!(
        *seen.lock().unwrap(),
        [("ann".to_owned(), 1_350), ("ann".to_owned(), 5_000)]
    );
}
