//! Joins of streams in several partitions at once.

use streams_dsl::{JoinWindows, MILLISECOND};
use streams_tests::local::{Local, expected, stop};

/// Each task has a stream time of its own: a slow partition's rows wait for it, and not for the fast one's. (The case has
/// 0 for 1; librdkafka writes a time of 0 as now.)
#[test]
fn case_reb_outer_join_partitions() {
    let topics = [("L", 2), ("R", 2), ("out", 1)];
    let app = Local::new("outer-join", &topics, |builder, names| {
        let left = builder.stream::<String, String>(names.of("L"));
        let right = builder.stream::<String, String>(names.of("R"));
        let pair = |_: &String, left: Option<&String>, right: Option<&String>| {
            let text = |value: Option<&String>| value.map_or("null".to_owned(), String::clone);
            format!("({},{})", text(left), text(right))
        };
        let windows = JoinWindows::of(10 * MILLISECOND).grace(std::time::Duration::ZERO);
        left.outer_join(&right, pair, windows).to(names.of("out"));
    });
    app.produce_to("L", 0, &[("a", Some("1"), 1)]);
    app.produce_to("L", 1, &[("b", Some("2"), 1_000)]);
    let streams = app.start_running();
    let wait_lag_0 = || ["L", "R"].iter().for_each(|topic| app.wait_lag_0(&streams, topic));
    wait_lag_0();
    app.produce_to("R", 1, &[("b2", Some("y"), 2_000)]);
    wait_lag_0();
    let first = expected(&[("b", "(2,null)", 1_000)]);
    assert_eq!(app.rows("out"), first, "the slower partition's row waits");
    app.produce_to("L", 0, &[("a2", Some("3"), 50)]);
    wait_lag_0();
    stop(&streams);
    assert_eq!(app.rows("out"), [first, expected(&[("a", "(1,null)", 1)])].concat());
}
