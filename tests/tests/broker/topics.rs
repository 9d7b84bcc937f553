//! Topics that do not fit: what the application says.

use rdkafka::admin::{AdminOptions, NewPartitions};
use streams_dsl::{Consumed, Materialized};
use streams_tests::broker;
use streams_tests::local::{Local, stop, wait_error};

use crate::cases::{admin, wait};

fn join(case: &str, left: i32, right: i32) -> Local {
    let topics = [("L", left), ("R", right), ("out", 1)];
    Local::new(case, &topics, |builder, names| {
        let rows =
            builder.table_with::<String, String>(names.of("R"), Consumed::default(), Materialized::named("rows"));
        let stream = builder.stream::<String, String>(names.of("L"));
        stream
            .join_table(&rows, |_, left, right| format!("{left}{right}"))
            .to(names.of("out"));
    })
}

#[test]
fn joined_topics_with_different_counts_are_named_with_their_counts() {
    let app = join("copartition", 2, 3);
    let error = wait_error(&app.start());
    for words in [app.name("L"), app.name("R"), "2", "3", "equal counts"] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn an_internal_topic_with_another_count_than_its_inputs_is_named_with_both() {
    let mut app = Local::without_topics("internal-count", |builder, names| {
        let stream = builder.stream::<String, String>(names.of("in"));
        stream.group_by_key().count("c").to_stream().to(names.of("out"));
    });
    app.topic("in", 2, &[]);
    app.topic("out", 1, &[]);
    let changelog = app.changelog("c");
    broker()
        .create_topic(&changelog, 5, &[("cleanup.policy", "compact")])
        .unwrap();
    let error = wait_error(&app.start());
    for words in [&*changelog, "2", "5"] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn a_source_topic_that_nobody_makes_is_named() {
    let mut app = Local::without_topics("missing", |builder, names| {
        builder.stream::<String, String>(names.of("in")).to(names.of("out"));
    });
    let missing = app.name_topic("in");
    app.topic("out", 1, &[]);
    let error = wait_error(&app.start());
    assert!(error.contains(&missing) && error.contains("Make them"), "{error}");
}

#[test]
fn a_source_topic_that_is_made_in_time_is_read() {
    let mut app = Local::without_topics("late", |builder, names| {
        builder.stream::<String, String>(names.of("in")).to(names.of("out"));
    });
    let late = app.name_topic("in");
    app.topic("out", 1, &[]);
    let streams = app.start();
    broker().create_topic(&late, 2, &[]).unwrap();
    app.produce("in", &[("a", Some("x"), 1)]);
    app.wait_committed(&streams, "in", 1);
    stop(&streams);
}

/// Gives a topic more partitions.
fn grow(topic: &str, partitions: usize) {
    let more = NewPartitions::new(topic, partitions);
    wait(admin().create_partitions([&more], &AdminOptions::new())).unwrap();
}

/// The changelog stays as it was made: its keys are where the old count put them.
#[test]
fn an_input_of_a_store_that_grows_while_the_application_runs_is_named_with_both_counts() {
    let app = Local::new("growing", &[("in", 2), ("out", 1)], |builder, names| {
        let stream = builder.stream::<String, String>(names.of("in"));
        stream.group_by_key().count("c").to_stream().to(names.of("out"));
    });
    let streams = app.start_running();
    app.produce("in", &[("a", Some("x"), 1)]);
    app.wait_committed(&streams, "in", 1);
    grow(app.name("in"), 4);
    let error = wait_error(&streams);
    for words in [&*app.changelog("c"), "2", "4", "new application.id"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    assert_eq!(app.counts("out").len(), 1);
}

#[test]
fn an_input_without_state_that_grows_while_the_application_runs_is_read_whole() {
    let app = Local::new("growing-copy", &[("in", 1), ("out", 1)], |builder, names| {
        builder.stream::<String, String>(names.of("in")).to(names.of("out"));
    });
    let streams = app.start_running();
    app.produce("in", &[("a", Some("x"), 1)]);
    app.wait_committed(&streams, "in", 1);
    grow(app.name("in"), 3);
    app.produce_to("in", 2, &[("b", Some("y"), 2)]);
    app.wait_committed_of(&streams, "in", 2, 1);
    stop(&streams);
    assert_eq!(app.rows("out").len(), 2);
}
