//! Records that are larger than their topic takes (design rule 4.4).

use std::sync::Arc;

use super::World;
use super::nodes::{copy, counting, heedless_counting};
use crate::processor::{ErrorHandlers, LogAndContinue};
use crate::topology::Topology;

/// A batch with a key of one byte and this many bytes of value.
const fn with_value(bytes: usize) -> usize {
    69 + bytes
}

/// 30 records whose values have one byte, up to the tenth, or two.
fn world(topology: Topology, limits: &[(&'static str, usize)], cache_bytes: usize) -> World {
    let mut world = World::new(topology, cache_bytes);
    world.max_message_bytes = limits.to_vec();
    world.feed((0..30).map(|at| (["a", "b", "c"][at as usize % 3], i64::from(at))));
    world
}

fn resume(dead_letters: Option<&str>) -> Arc<ErrorHandlers> {
    Arc::new(ErrorHandlers {
        production: Arc::new(LogAndContinue),
        processing: Arc::new(LogAndContinue),
        dead_letter_topic: dead_letters.map(Arc::from),
        ..ErrorHandlers::default()
    })
}

fn error(mut world: World) -> (String, World) {
    world.start();
    let error = world.run(|_, _| false).unwrap_err();
    (error.to_string(), world)
}

#[test]
fn rule_4_4_a_record_above_the_limit_of_its_topic_is_refused_before_it_is_sent_and_the_error_says_all() {
    let (text, world) = error(world(copy(), &[("out", with_value(1))], 0));
    for words in [
        "MSG_SIZE_TOO_LARGE",
        "71 bytes",
        "topic out takes 70 (its max.message.bytes)",
        "its key has 1 bytes, murmur2 ",
        "producer.max.request.size",
        "production handler",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let values = world.all("out").into_iter().map(|(.., value)| value.unwrap());
    assert!(values.clone().all(|value| value.len() == 1), "{values:?}");
}

#[test]
fn rule_4_4_a_record_as_large_as_the_limit_is_sent() {
    let mut world = world(copy(), &[("out", with_value(2))], 0);
    world.start();
    world.run_to_end();
    assert_eq!(world.all("out").len(), 30);
}

#[test]
fn rule_4_4_a_record_above_the_limit_may_be_dropped_if_the_handler_says_so_and_is_counted() {
    let mut world = world(copy(), &[("out", with_value(1))], 0);
    world.handlers = resume(None);
    world.start();
    world.run_to_end();
    assert_eq!(world.all("out").len(), 10);
    let status = world.core().status();
    assert_eq!((status.counters.dropped_records, status.totals.aborts), (20, 0));
}

#[test]
fn rule_4_4_a_record_that_is_dropped_for_its_size_is_kept_as_a_dead_letter() {
    let mut world = world(copy(), &[("out", with_value(1))], 0);
    world.broker.create_topic("dead", 1);
    world.handlers = resume(Some("dead"));
    world.start();
    world.run_to_end();
    assert_eq!((world.all("out").len(), world.all("dead").len()), (10, 20));
    let (_, letter) = world.broker.read_committed("dead").into_iter().next().unwrap();
    let class = letter.headers.iter().next().and_then(|header| header.value.clone());
    assert_eq!(class.as_deref(), Some(&b"RecordTooLargeException"[..]));
}

#[test]
fn rule_4_4_a_dead_letter_above_the_limit_of_its_own_topic_stops_the_thread() {
    let mut world = world(copy(), &[("out", with_value(1)), ("dead", 100)], 0);
    world.broker.create_topic("dead", 1);
    world.handlers = resume(Some("dead"));
    let (text, _) = error(world);
    assert!(
        text.contains("topic dead takes 100") && text.contains("it is a dead letter"),
        "{text}"
    );
}

#[test]
fn rule_4_4_a_row_above_the_limit_of_its_changelog_stops_the_thread_whatever_handlers_and_user_code_say() {
    const CHANGELOG: &str = "app-counts-changelog";
    // Uncached, cached, and by a processor that makes nothing of the store's failure.
    for (topology, cache_bytes) in [(counting(), 0), (counting(), 1 << 20), (heedless_counting(), 0)] {
        let limits = [(CHANGELOG, with_value(8) - 1)];
        let mut world = world(topology, &limits, cache_bytes);
        world.handlers = resume(None);
        let (text, world) = error(world);
        for words in [
            CHANGELOG,
            "77 bytes",
            "takes 76",
            "murmur2",
            "no handler can let it pass",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(world.all(CHANGELOG).is_empty() && world.all("out").is_empty());
    }
    let mut world = world(counting(), &[(CHANGELOG, with_value(8))], 0);
    world.start();
    world.run_to_end();
    assert_eq!(world.all(CHANGELOG).len(), 30);
}

/// A topic whose limit was not known, or has shrunk: the shell learns it when the broker refuses, and what is processed
/// again meets it before it is sent.
#[test]
fn rule_4_4_a_limit_that_is_learned_by_a_refusal_counts_when_the_records_are_processed_again() {
    let mut world = world(copy(), &[], 0);
    world.handlers = resume(None);
    world.start();
    world.run_to(|effect| matches!(effect, crate::runtime::Effect::Flush { .. }));
    let mut topics = crate::topics::Topics::clone(world.core().topics());
    topics.set_max_message_bytes("out", with_value(1));
    world.core().set_topics(Arc::new(topics));
    let now_ms = world.now_ms;
    let refused = super::failure(crate::runtime::FailureClass::Fatal);
    world.core().on_outcome(refused, now_ms).unwrap();
    world.run_to_end();
    assert_eq!(world.all("out").len(), 10);
    assert_eq!(world.core().status().counters.dropped_records, 20);
}

#[test]
fn a_producer_with_new_settings_takes_the_place_of_the_old_one_between_transactions() {
    let mut world = world(copy(), &[], 0);
    world.start();
    world.run_to(|effect| matches!(effect, crate::runtime::Effect::CommitTransaction { .. }));
    world.core().renew_producer();
    let now_ms = world.now_ms;
    let process = world.process.as_mut().unwrap();
    process.shell.end_transaction(&mut world.broker, true);
    process.core.on_outcome(crate::runtime::Outcome::Done, now_ms).unwrap();
    world.run_to_end();
    let totals = world.core().status().totals;
    assert_eq!((totals.producers, totals.aborts), (1, 0));
    assert_eq!(world.all("out").len(), 30);
}
