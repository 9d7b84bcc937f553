//! The client of Kafka's own smoke test (`SmokeTestClient` of its 4.3.1 test jar), driven by
//! `tests/peers/SmokeDriver.java smoke`; topology and verification stand in `tests/peers/smoke-topology.md`.

use std::time::Duration;

use streams_dsl::{
    BoxError, DAY, DefaultSerde, HOUR, KGroupedStream, KStream, KTable, MINUTE, Materialized, Processor,
    ProcessorContext, Record, SECOND, StreamsBuilder, Suppressed, TimeWindows, Topology, TopologyError, Windowed,
};

/// The key of the records that move stream time on at the end.
const FLUSH: &str = "flush";

/// The topology: aggregates in windows, final ones too, tables read back from their outputs, joins of those, and a table
/// grouped anew. Nodes and stores have Java's numbers.
///
/// # Errors
/// Never, unless the DSL has a bug.
pub fn topology() -> Result<Topology, TopologyError> {
    let builder = StreamsBuilder::new();
    let source = builder.stream::<String, i32>("data");
    unflush(&source).to("echo");
    let data = source.filter(|_key, value| *value != i32::MAX);
    data.process(Count::default);
    let by_key = data.group_by_key();
    minimum(&by_key);
    last_seconds(&by_key);
    let min = read_back(&builder, "min", Materialized::named("minStoreName"));
    let max = maximum(&builder, &by_key);
    let (sum, count) = sum_and_count(&builder, &by_key);

    let difference = max.join(&min, |_key, max, min| max.wrapping_sub(*min));
    unflush(&difference.to_stream()).to("dif");
    let average = sum.join(&count, |_key, sum, count| *sum as f64 / *count as f64);
    unflush(&average.to_stream()).to("avg");
    count
        .group_by(|_key, count| (count.to_string(), 1_i64))
        .aggregate(
            || 0_i64,
            |_count, one, keys| keys + one,
            |_count, one, keys| keys - one,
            Materialized::named("cntByCnt").in_memory(),
        )
        .to_stream()
        .to("tagg");
    builder.build()
}

fn minimum(by_key: &KGroupedStream<String, i32>) {
    let daily = by_key.windowed_by(TimeWindows::of(DAY).grace(MINUTE)).aggregate(
        || i32::MAX,
        |_key, value, min: i32| min.min(*value),
        Materialized::named("uwin-min").retention(25 * HOUR),
    );
    streamify(&daily, "min-raw");
    streamify(&daily.suppress(Suppressed::until_window_closes()), "min-suppressed");
    unwindow(&daily).to("min");
}

fn last_seconds(by_key: &KGroupedStream<String, i32>) {
    let windows = TimeWindows::of(2 * SECOND).advance_by(SECOND).grace(30 * SECOND);
    let sums = by_key
        .windowed_by(windows)
        .reduce(|_key, value, sum| sum.wrapping_add(*value), Materialized::unnamed());
    streamify(&sums, "sws-raw");
    streamify(&sums.suppress(Suppressed::until_window_closes()), "sws-suppressed");
}

fn maximum(builder: &StreamsBuilder, by_key: &KGroupedStream<String, i32>) -> KTable<String, i32> {
    let max = by_key.windowed_by(two_days()).aggregate(
        || i32::MIN,
        |_key, value, max: i32| max.max(*value),
        Materialized::named("uwin-max"),
    );
    unwindow(&max).to("max");
    read_back(builder, "max", Materialized::named("maxStoreName"))
}

fn sum_and_count(
    builder: &StreamsBuilder,
    by_key: &KGroupedStream<String, i32>,
) -> (KTable<String, i64>, KTable<String, i64>) {
    let sum = by_key.windowed_by(two_days()).aggregate(
        || 0,
        |_key, value, sum: i64| sum + i64::from(*value),
        Materialized::named("win-sum"),
    );
    unwindow(&sum).to("sum");
    let sum = read_back(builder, "sum", Materialized::unnamed());
    let count = by_key.windowed_by(two_days()).count(Materialized::named("uwin-cnt"));
    unwindow(&count).to("cnt");
    (sum, read_back(builder, "cnt", Materialized::named("cntStoreName")))
}

fn two_days() -> TimeWindows {
    TimeWindows::of(2 * DAY).grace(Duration::ZERO)
}

/// A table of one of the outputs. As in Java, something counts its updates.
fn read_back<V: DefaultSerde + Clone>(
    builder: &StreamsBuilder,
    topic: &str,
    materialized: Materialized<String, V>,
) -> KTable<String, V> {
    let table = builder.table_with(topic, streams_dsl::Consumed::default(), materialized);
    table.to_stream().process(Count::default);
    table
}

fn unflush<V: 'static>(stream: &KStream<String, V>) -> KStream<String, V> {
    stream.filter_not(|key, _value| key == FLUSH)
}

/// The updates under the key without its window.
fn unwindow<V: 'static>(table: &KTable<Windowed<String>, V>) -> KStream<String, Option<V>> {
    unflush(&table.to_stream().select_key(|windowed, _value| windowed.key.clone()))
}

/// The updates under `[key@start/end]`, written to a topic.
fn streamify(table: &KTable<Windowed<String>, i32>, topic: &str) {
    table
        .to_stream()
        .filter_not(|windowed, _value| windowed.key == FLUSH)
        .map(|windowed, value| (windowed.to_string(), *value))
        .to(topic);
}

/// Counts what passes and logs a line now and then.
#[derive(Default)]
struct Count(u64);

impl<K: 'static, V: 'static> Processor<K, V, (), ()> for Count {
    fn process(&mut self, cx: &mut ProcessorContext<'_, (), ()>, _record: Record<'_, K, V>) -> Result<(), BoxError> {
        self.0 += 1;
        if self.0.is_multiple_of(1_000) {
            tracing::info!(records = self.0, topic = %cx.record_context().topic, "processed");
        }
        Ok(())
    }
}

/// Runs the client; orders as for [`crate::eos::client`].
///
/// # Errors
/// When the application can't start, fails, or does not close in time.
pub fn client() -> anyhow::Result<()> {
    let kept = ("windowstore.changelog.additional.retention.ms", "259200000");
    crate::system::client("smoke", topology()?, &[kept])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_stores_have_the_names_of_javas_client() -> Result<(), TopologyError> {
        let text = topology()?.describe().to_string();
        // Of Java's description, one name of each step in tests/peers/smoke-topology.md.
        for name in [
            "KSTREAM-SINK-0000000002",
            "KSTREAM-PROCESSOR-0000000004",
            "KSTREAM-AGGREGATE-0000000005 (stores: [uwin-min])",
            "KSTREAM-SINK-0000000009 (topic: min-raw)",
            "KTABLE-SUPPRESS-0000000010 (stores: [KTABLE-SUPPRESS-STATE-STORE-0000000011])",
            "KSTREAM-SINK-0000000015 (topic: min-suppressed)",
            "KSTREAM-SINK-0000000019 (topic: min)",
            "KSTREAM-REDUCE-0000000021 (stores: [KSTREAM-REDUCE-STATE-STORE-0000000020])",
            "KSTREAM-SINK-0000000031 (topic: sws-suppressed)",
            "KTABLE-SOURCE-0000000033 (stores: [minStoreName])",
            "KSTREAM-SINK-0000000040 (topic: max)",
            "KTABLE-SOURCE-0000000042 (stores: [maxStoreName])",
            "KTABLE-SOURCE-0000000052 (stores: [sum-STATE-STORE-0000000050])",
            "KSTREAM-SINK-0000000059 (topic: cnt)",
            "KTABLE-SOURCE-0000000061 (stores: [cntStoreName])",
            "KSTREAM-SINK-0000000069 (topic: dif)",
            "KSTREAM-SINK-0000000075 (topic: avg)",
            "(topic: cntByCnt-repartition)",
            "KTABLE-AGGREGATE-0000000079 (stores: [cntByCnt])",
            "KSTREAM-SINK-0000000081 (topic: tagg)",
        ] {
            assert!(text.contains(name), "{name} is not in\n{text}");
        }
        Ok(())
    }
}
