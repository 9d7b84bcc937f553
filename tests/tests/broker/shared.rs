//! The shared broker itself.

use std::time::Duration;

use streams_testkit::NewRecord;
use streams_tests::{broker, topic, topic_with};

#[test]
fn all_tests_of_a_binary_meet_the_same_broker_but_not_the_same_topics() {
    let (one, two) = (topic("orders", 2), topic("orders", 3));
    broker().produce(&one, [NewRecord::new("k", "v").at(1)]).unwrap();
    let there = std::thread::spawn(|| broker().bootstrap().to_owned());
    assert_eq!(there.join().unwrap(), broker().bootstrap());
    assert_eq!(broker().collect(&one).unwrap().len(), 1);
    assert!(broker().collect(&two).unwrap().is_empty());
    assert_eq!(broker().topics().partitions(&two).unwrap(), 3);
}

#[test]
fn records_with_event_times_of_2013_stay() {
    let configs = [("cleanup.policy", "compact,delete"), ("retention.ms", "-1")];
    let changelog = topic_with("changelog", 1, &configs);
    let january = 1_357_034_400_000;
    broker()
        .produce(&changelog, [NewRecord::new("k", "v").at(january)])
        .unwrap();
    let limit = Duration::from_secs(30);
    let records = broker().collector().wait_for_count(&changelog, 1, limit);
    assert_eq!(records.unwrap()[0].timestamp, january);
    let found = broker().topics().configs(&changelog).unwrap();
    assert_eq!(found["retention.ms"], "-1");
}
