//! Kafka's own exactly-once system test (`EosTestDriver` of its 4.2.0 test jar) against our client, with SIGKILLs.
//!
//! The driver generates, kills, and compares every output record by record with a replay of the input, in order.
//! `STREAMS_CRASH_EOS_SECONDS` says for how long it generates (12 s unless set) and `STREAMS_CRASH_EOS_KILLS` how often
//! it kills (2). Its jars come through Maven, once.

use streams_testkit::is_child_of_test;

use crate::system::{SystemTest, setting};

const APP: &str = "eos::client";

#[test]
fn kafkas_own_exactly_once_test_passes_with_two_instances_and_kills() {
    let test = SystemTest {
        name: "eos",
        client: APP,
        version: "4.2.0",
        seconds: setting("STREAMS_CRASH_EOS_SECONDS", 12),
        kills: setting("STREAMS_CRASH_EOS_KILLS", 2),
        options: vec![("--progress", 20)],
    };
    test.assert_passes();
}

#[test]
#[ignore = "run by kafkas_own_exactly_once_test_passes_with_two_instances_and_kills"]
fn client() {
    if is_child_of_test(APP) {
        benches::eos::client().unwrap();
    }
}
