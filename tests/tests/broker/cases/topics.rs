//! Topics that vanish or grow under an application.

use rdkafka::admin::{AdminOptions, NewPartitions};
use streams_tests::local::{stop, wait_error};

use super::{THREE, admin, counting, wait};

#[test]
fn case_top_partitions_increased() {
    let app = counting("partitions-increased", 2);
    let streams = app.start_running();
    app.produce("in", &[("a", Some("x"), 1)]);
    app.wait_committed(&streams, "in", 1);
    let more = NewPartitions::new(app.name("in"), 4);
    wait(admin().create_partitions([&more], &AdminOptions::new())).unwrap();
    let error = wait_error(&streams);
    assert!(error.contains(&app.changelog("c")), "{error}");
    assert!(error.contains('2') && error.contains('4'), "{error}");
    assert_eq!(app.counts("out").len(), 1);
}

#[test]
fn case_top_changelog_deleted() {
    let app = counting("changelog-deleted", 1);
    app.produce("in", &THREE);
    let streams = app.start_running();
    app.wait_committed(&streams, "in", 3);
    stop(&streams);
    let before = app.counts("out").len();
    app.kafka().topics().delete(&app.changelog("c")).unwrap();
    app.produce("in", &[("a", Some("x"), 4)]);
    let error = wait_error(&app.start());
    assert!(
        error.contains(&app.changelog("c")) && error.contains("task 0_0"),
        "{error}"
    );
    assert_eq!(app.counts("out").len(), before);
}
