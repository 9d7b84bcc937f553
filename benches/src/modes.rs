//! The topologies of the peer: strings are UTF-8, sums i64 big-endian; amount and customer are read from the value.

use std::time::Duration;

use anyhow::bail;
use streams_dsl::{
    Grouped, Joined, KTable, Materialized, SessionWindows, StreamsBuilder, Suppressed, TableJoined, TimeWindows,
    Topology, Windowed,
};

/// The modes that there are.
pub(crate) const NAMES: [&str; 9] = [
    "copy", "map", "sum", "rsum", "window", "suppress", "session", "join", "fk",
];

fn amount(value: &str) -> i64 {
    let digits = value.split_once("\"amount\":").map_or("", |(_, rest)| rest);
    let digits = digits.as_bytes().iter().take_while(|digit| digit.is_ascii_digit());
    digits.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
}

fn customer(value: &str) -> String {
    let rest = value.split_once("\"customer\":\"").map_or("", |(_, rest)| rest);
    rest.split('"').next().unwrap_or_default().to_owned()
}

fn duration(variable: &str, default_ms: u64) -> Duration {
    Duration::from_millis(
        std::env::var(variable)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default_ms),
    )
}

/// The topology of a mode.
pub(crate) fn topology(mode: &str, input: &str, output: &str, second: &str) -> anyhow::Result<Topology> {
    let builder = StreamsBuilder::new();
    match mode {
        "copy" => {
            builder.stream::<Option<Vec<u8>>, Option<Vec<u8>>>(input).to(output);
        }
        "map" => {
            let stream = builder
                .stream::<Option<Vec<u8>>, String>(input)
                .filter(|_, value| !value.is_empty());
            stream.map_values(|_, value| value.replace("api", "API")).to(output);
        }
        "sum" => {
            let grouped = builder.stream::<String, String>(input).group_by_key();
            grouped
                .aggregate(|| 0, |_, value, sum| sum + amount(value), "sums")
                .to_stream()
                .to(output);
        }
        "rsum" => {
            let stream = builder
                .stream::<Option<Vec<u8>>, String>(input)
                .select_key(|_, value| customer(value));
            let grouped = stream.group_by_key_with(Grouped::named("by-customer"));
            grouped
                .aggregate(|| 0, |_, value, sum| sum + amount(value), "sums")
                .to_stream()
                .to(output);
        }
        "window" => {
            let sums: KTable<Windowed<String>, i64> = windows(&builder, input);
            let stream = sums
                .to_stream()
                .select_key(|windowed, _| format!("{}@{}", windowed.key, windowed.window.start_ms));
            stream.to(output);
        }
        "suppress" => {
            let sums = windows(&builder, input).suppress(Suppressed::until_window_closes());
            let stream = sums
                .to_stream()
                .select_key(|windowed, _| format!("{}@{}", windowed.key, windowed.window.start_ms));
            stream.to(output);
        }
        "session" => {
            let windows = SessionWindows::of(duration("GAP_MS", 5_000)).grace(duration("GRACE_MS", 5_000));
            let grouped = builder.stream::<String, String>(input).group_by_key();
            let sums = grouped.windowed_by(windows).aggregate(
                || 0,
                |_, value, sum| sum + amount(value),
                |_, left, right| left + right,
                "ssums",
            );
            let stream = sums.to_stream().select_key(|session, _| {
                let window = &session.window;
                format!("{}@{}/{}", session.key, window.start_ms, window.end_ms)
            });
            stream.to(output);
        }
        "join" => {
            let plans = builder.table_with::<String, String>(second, Default::default(), Materialized::named("plans"));
            let stream = builder
                .stream::<Option<Vec<u8>>, String>(input)
                .select_key(|_, value| customer(value));
            let joined = stream.join_table_with(
                &plans,
                |_, value, plan: &String| format!("{value}|{plan}"),
                Joined::named("by-customer"),
            );
            joined.to(output);
        }
        "fk" => {
            let orders = builder.table_with::<String, String>(input, Default::default(), Materialized::named("orders"));
            let customers =
                builder.table_with::<String, String>(second, Default::default(), Materialized::named("customers"));
            let joined = orders.join_foreign_key_with(
                &customers,
                |_, value| Some(customer(value)),
                |_, value, customer| format!("{value}|{customer}"),
                TableJoined::default(),
                "joined",
            );
            joined.to_stream().to(output);
        }
        other => bail!("there is no mode {other}; modes: {}", NAMES.join(" ")),
    }
    Ok(builder.build()?)
}

fn windows(builder: &StreamsBuilder, input: &str) -> KTable<Windowed<String>, i64> {
    let windows = TimeWindows::of(duration("WINDOW_MS", 10_000)).grace(duration("GRACE_MS", 5_000));
    let grouped = builder.stream::<String, String>(input).group_by_key();
    grouped
        .windowed_by(windows)
        .aggregate(|| 0, |_, value, sum| sum + amount(value), "wsums")
}
