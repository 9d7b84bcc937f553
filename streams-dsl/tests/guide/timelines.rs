//! The programs of the guide's timelines: one for each table and result column.

use streams_dsl::{
    Consumed, EmitStrategy, JoinWindows, Joined, KStream, KTable, Materialized, SECOND, SessionWindows, SlidingWindows,
    StreamsBuilder, Suppressed, TimeWindows, Windowed,
};

pub(crate) const NAMES: [&str; 8] = [
    "foreign-key",
    "stream-global",
    "stream-stream",
    "stream-table",
    "stream-versioned-table",
    "table-table",
    "tumbling",
    "windows",
];

/// How many columns after the time are topics.
pub(crate) fn inputs(name: &str) -> usize {
    if matches!(name, "tumbling" | "windows") { 1 } else { 2 }
}

type Text = Option<String>;

fn pair(left: Option<&String>, right: Option<&String>) -> Text {
    let shown = |side: Option<&String>| side.cloned().unwrap_or_else(|| "null".to_owned());
    Some(format!("[{}, {}]", shown(left), shown(right)))
}

/// Builds the program of a column. It reads the topics that the table's head names, and writes `out`.
pub(crate) fn build(name: &str, column: &str, b: &StreamsBuilder) {
    match name {
        "stream-stream" => stream_stream(column, b),
        "stream-table" => stream_table(column, b),
        "stream-versioned-table" => stream_versioned_table(column, b),
        "stream-global" => stream_global(column, b),
        "table-table" => table_table(column, b),
        "foreign-key" => foreign_key(column, b),
        "tumbling" | "windows" => windows(column, b),
        other => panic!("there is no program for the timeline {other}"),
    }
}

fn no_column(column: &str) -> ! {
    panic!("there is no program for the column {column}")
}

fn stream_stream(column: &str, b: &StreamsBuilder) {
    let (left, right) = (b.stream::<String, String>("left"), b.stream::<String, String>("right"));
    let within = JoinWindows::of(10 * SECOND);
    let joined: KStream<String, Text> = match column {
        "join" => left.join(&right, |_, l, r| pair(Some(l), Some(r)), within),
        "left_join" => left.left_join(&right, |_, l, r| pair(Some(l), r), within),
        "outer_join" => left.outer_join(&right, |_, l, r| pair(l, r), within),
        other => no_column(other),
    };
    joined.to("out");
}

fn stream_table(column: &str, b: &StreamsBuilder) {
    let (stream, table) = (b.stream::<String, String>("stream"), b.table::<String, String>("table"));
    let joined: KStream<String, Text> = match column {
        "join_table" => stream.join_table(&table, |_, l, r| pair(Some(l), Some(r))),
        "left_join_table" => stream.left_join_table(&table, |_, l, r| pair(Some(l), r)),
        other => no_column(other),
    };
    joined.to("out");
}

fn stream_versioned_table(column: &str, b: &StreamsBuilder) {
    let versions = Materialized::named("table").versioned(60 * SECOND);
    let table = b.table_with::<String, String>("table", Consumed::default(), versions);
    let how = match column {
        "versioned" => Joined::default(),
        "versioned, grace" => Joined::named("waits").grace(5 * SECOND),
        other => no_column(other),
    };
    let stream = b.stream::<String, String>("stream");
    let joined = stream.left_join_table_with(&table, |_, l, r| pair(Some(l), r), how);
    joined.to("out");
}

fn stream_global(column: &str, b: &StreamsBuilder) {
    let (table, stream) = (
        b.global_table::<String, String>("table"),
        b.stream::<String, String>("stream"),
    );
    let key = |_: &String, value: &String| value.clone();
    let joined: KStream<String, Text> = match column {
        "join_global" => stream.join_global(&table, key, |_, l, r| pair(Some(l), Some(r))),
        "left_join_global" => stream.left_join_global(&table, key, |_, l, r| pair(Some(l), r)),
        other => no_column(other),
    };
    joined.to("out");
}

fn table_table(column: &str, b: &StreamsBuilder) {
    let (left, right) = (b.table::<String, String>("left"), b.table::<String, String>("right"));
    let shown = |left: Option<&String>, right: Option<&String>| pair(left, right).unwrap_or_default();
    let joined: KTable<String, String> = match column {
        "join" => left.join(&right, move |_, l, r| shown(Some(l), Some(r))),
        "left_join" => left.left_join(&right, move |_, l, r| shown(Some(l), r)),
        "outer_join" => left.outer_join(&right, move |_, l, r| shown(l, r)),
        other => no_column(other),
    };
    joined.to_stream().to("out");
}

fn foreign_key(column: &str, b: &StreamsBuilder) {
    let (left, right) = (b.table::<String, String>("left"), b.table::<String, String>("right"));
    let shown = |left: Option<&String>, right: Option<&String>| pair(left, right).unwrap_or_default();
    let key = |_: &String, value: &String| Some(value.clone());
    let joined: KTable<String, String> = match column {
        "join_foreign_key" => left.join_foreign_key(&right, key, move |_, l, r| shown(Some(l), Some(r))),
        "left_join_foreign_key" => left.left_join_foreign_key(&right, key, move |_, l, r| shown(Some(l), r)),
        other => no_column(other),
    };
    joined.to_stream().to("out");
}

fn windows(column: &str, b: &StreamsBuilder) {
    let visits = b.stream::<String, String>("visit").group_by_key();
    let tumbling = visits.windowed_by(TimeWindows::of(10 * SECOND).grace(5 * SECOND));
    let hopping = TimeWindows::of(10 * SECOND).advance_by(5 * SECOND).grace(5 * SECOND);
    let half_open = |w: &Windowed<String>| format!("[{}, {})", w.window.start_ms / 1_000, w.window.end_ms / 1_000);
    let closed = |w: &Windowed<String>| format!("[{}, {}]", seconds(w.window.start_ms), seconds(w.window.end_ms));
    let (counts, shown): (KTable<Windowed<String>, i64>, fn(&Windowed<String>) -> String) = match column {
        "on update" => (tumbling.count("counts"), half_open),
        "on close" => (
            tumbling.emit_strategy(EmitStrategy::OnWindowClose).count("counts"),
            half_open,
        ),
        "suppressed" => (
            tumbling.count("counts").suppress(Suppressed::until_window_closes()),
            half_open,
        ),
        "hopping" => (visits.windowed_by(hopping).count("counts"), half_open),
        "sliding" => (
            visits
                .windowed_by(SlidingWindows::of(10 * SECOND).grace(5 * SECOND))
                .count("counts"),
            closed,
        ),
        "session" => (
            visits
                .windowed_by(SessionWindows::of(5 * SECOND).grace(5 * SECOND))
                .count("counts"),
            closed,
        ),
        other => no_column(other),
    };
    counts
        .to_stream()
        .map(move |window, count| (shown(window), count.map(|count| count.to_string())))
        .to("out");
}

/// Seconds, with milliseconds where there are some.
fn seconds(ms: i64) -> String {
    if ms % 1_000 == 0 {
        (ms / 1_000).to_string()
    } else {
        format!("{}.{:03}", ms / 1_000, ms % 1_000)
    }
}
