//! The pipeline: three stages, each with its own topic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use streams_dsl::{
    Consumed, DAY, Grouped, Joined, KStream, Materialized, StreamsBuilder, TimeWindows, Topology, TopologyError,
    Windowed,
};

use crate::model::{Airline, BillingEvent, Departure, Plane, Totals, Usage};
use crate::time;
use crate::topics::{Names, RETENTION};

/// How long after its day a departure is still billed: longer than any record is late.
const GRACE_DAYS: u32 = 366;

/// Told of each departure that enters the pipeline, on a stream thread, while its transaction is open.
pub type OnDeparture = Arc<dyn Fn() + Send + Sync>;

/// Counts departures as they enter the pipeline, those that are processed again after an abort too.
pub fn counting(counter: Arc<AtomicU64>) -> OnDeparture {
    Arc::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    })
}

/// Builds the topology.
///
/// # Errors
/// None, unless the pipeline is changed to one that can't be built.
pub fn build(names: &Names, on_departure: OnDeparture) -> Result<Topology, TopologyError> {
    let builder = StreamsBuilder::new();
    let usage = normalize(&builder, names, on_departure);
    let events = charge(&builder, names, &usage);
    total(names, &events);
    builder.build()
}

/// Stage 1: what can be billed, and what never left.
fn normalize(builder: &StreamsBuilder, names: &Names, on_departure: OnDeparture) -> KStream<String, Usage> {
    let departures = builder
        .stream::<String, Departure>(&names.raw())
        .peek(move |_, _| on_departure())
        .split();
    let cancelled = departures.branch("cancelled", |_, departure| departure.is_cancelled());
    cancelled
        .map_values(|_, departure| departure.usage())
        .to(&names.cancelled());
    let usage = departures
        .default_branch("billable")
        .map_values(|_, departure| departure.usage());
    usage.to(&names.normalized());
    usage
}

/// Stage 2: seats from the aircraft, the name from the airline, the charge.
fn charge(builder: &StreamsBuilder, names: &Names, usage: &KStream<String, Usage>) -> KStream<String, BillingEvent> {
    let planes = builder.table_with::<String, Plane>(&names.planes(), Consumed::default(), kept("planes"));
    let airlines = builder.global_table::<String, Airline>(&names.airlines());
    let events = usage
        .select_key(|_, usage| usage.tail_number())
        .left_join_table_with(&planes, |_, usage, plane| usage.bill(plane), Joined::named("by-tail"))
        .left_join_global(
            &airlines,
            |_, event| event.usage.carrier.clone(),
            |_, event, airline| BillingEvent {
                airline: airline.map(|airline| airline.name.clone()),
                ..event.clone()
            },
        );
    events.to(&names.events());
    events
}

/// Stage 3: totals of days and months.
fn total(names: &Names, events: &KStream<String, BillingEvent>) {
    let by_day = events.group_by_with(
        |_, event| format!("{}|{}", event.usage.carrier, event.usage.origin),
        Grouped::named("by-origin"),
    );
    by_day
        .windowed_by(TimeWindows::of(DAY).grace(GRACE_DAYS * DAY))
        .aggregate(Totals::default, |_, event, totals| totals.with(event), kept("daily"))
        .to_stream()
        .select_key(|of: &Windowed<String>, _| format!("{}|{}", of.key, time::date(of.window.start_ms)))
        .to(&names.daily());
    let by_month = events.group_by_with(
        |_, event| format!("{}|{}", event.usage.carrier, month_of(event)),
        Grouped::named("by-month"),
    );
    by_month
        .aggregate(Totals::default, |_, event, totals| totals.with(event), kept("monthly"))
        .to_stream()
        .to(&names.invoices());
}

/// `YYYY-MM` of the scheduled departure, which is a UTC time.
fn month_of(event: &BillingEvent) -> &str {
    event.usage.scheduled.get(..7).unwrap_or_default()
}

/// A named store whose changelog is kept for ever.
fn kept<K: 'static, V: streams_dsl::DefaultSerde>(store: &str) -> Materialized<K, V> {
    Materialized::named(store).logging([RETENTION])
}
