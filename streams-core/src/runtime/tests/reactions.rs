//! Each way in which Kafka can fail a stream thread, and what the thread does about it: the rows of the table of errors
//! that `tests/RULES.md` lists.

use std::sync::Arc;

use super::nodes::{copy, copy_from, counting};
use super::{World, failure};
use crate::TopicPartition;
use crate::error::{Error, ProcessResult};
use crate::fetch::FetchErrorKind;
use crate::processor::{
    Decision, ErrorContext, ErrorHandlers, HandlerResponse, LogAndContinue, ProductionDecision, ProductionHandler,
};
use crate::runtime::{AbortReason, CallFailure, Effect, FailureClass, Outcome, ResetTo};
use crate::serde::SerdeError;
use crate::topology::AutoOffsetReset;

fn world() -> World {
    let mut world = World::new(counting(), 1 << 20);
    world.feed((0..30).map(|at| (["a", "b", "c"][at as usize % 3], i64::from(at))));
    world.start();
    world
}

fn assert_exact(world: &World, what: &str) {
    let counts = world.latest("out");
    assert_eq!(counts.len(), 3, "{what}");
    assert!(
        counts.values().all(|count| count.as_deref() == Some(b"10")),
        "{what}: {counts:?}"
    );
}

fn refused(class: FailureClass, code: &str) -> Outcome {
    Outcome::Failed(CallFailure {
        class,
        code: code.to_owned(),
        message: "Broker: refused".to_owned(),
    })
}

fn out() -> TopicPartition {
    TopicPartition::new("out", 0)
}

fn is_flush(effect: &Effect) -> bool {
    matches!(effect, Effect::Flush { .. })
}

/// What a record that can't be delivered comes to, with this production handler.
fn undelivered(handler: Option<Arc<dyn ProductionHandler>>, code: &str, retriable: bool) -> (World, ProcessResult) {
    let mut world = world();
    if let Some(production) = handler {
        world.handlers = Arc::new(ErrorHandlers {
            production,
            ..ErrorHandlers::default()
        });
        world.kill();
        world.start();
    }
    world.run_to(is_flush);
    let answer = world.core().on_undelivered(&out(), code, "Broker: refused", retriable);
    (world, answer)
}

#[test]
fn a_fenced_producer_is_made_anew_and_nothing_is_lost_or_repeated() {
    let steps: [fn(&Effect) -> bool; 5] = [
        |effect| matches!(effect, Effect::BeginTransaction),
        |effect| matches!(effect, Effect::Send { .. }),
        is_flush,
        |effect| matches!(effect, Effect::SendOffsets { .. }),
        |effect| matches!(effect, Effect::CommitTransaction { .. }),
    ];
    for class in [FailureClass::Fenced, FailureClass::Fatal] {
        for (at, is) in steps.into_iter().enumerate() {
            let mut world = world();
            world.answer_at(is, failure(class)).unwrap();
            world.run_to_end();
            assert_exact(&world, &format!("{class:?} at step {at}"));
            assert_eq!(world.core().status().totals.producers, 1, "{class:?} at step {at}");
        }
    }
}

#[test]
fn an_unknown_member_aborts_asks_the_group_at_once_and_goes_on() {
    let mut world = world();
    let is = |effect: &Effect| matches!(effect, Effect::SendOffsets { .. });
    world
        .answer_at(is, refused(FailureClass::StaleMember, "UNKNOWN_MEMBER_ID"))
        .unwrap();
    world.run_to(|effect| matches!(effect, Effect::HeartbeatNow));
    let now_ms = world.now_ms;
    world.core().on_outcome(Outcome::Done, now_ms).unwrap();
    world.run_to_end();
    assert_exact(&world, "after the abort");
    assert_eq!(world.core().status().totals.aborts_by(AbortReason::StaleMember), 1);
}

#[test]
fn what_nothing_helps_against_stops_the_thread_with_the_brokers_words() {
    let is = |effect: &Effect| matches!(effect, Effect::SendOffsets { .. });
    for code in ["FENCED_INSTANCE_ID", "OFFSET_METADATA_TOO_LARGE", "_STATE"] {
        let mut world = world();
        let error = world.answer_at(is, refused(FailureClass::Stop, code)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(code) && text.contains("Broker: refused"), "{text}");
        assert!(world.all("out").is_empty());
    }
}

#[test]
fn missing_permissions_stop_the_thread_and_are_named() {
    type Is = fn(&Effect) -> bool;
    let rows: [(Is, &str, &str); 5] = [
        (
            |effect| matches!(effect, Effect::InitTransactions),
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            "grant Write and Describe on the transactional ids",
        ),
        (
            |effect| matches!(effect, Effect::FetchCommitted { .. }),
            "GROUP_AUTHORIZATION_FAILED",
            "grant Read on the consumer group",
        ),
        (
            |effect| matches!(effect, Effect::ListChangelogs { .. }),
            "TOPIC_AUTHORIZATION_FAILED",
            "grant Describe, Read and Write on the topic",
        ),
        (
            |effect| matches!(effect, Effect::SendOffsets { .. }),
            "GROUP_AUTHORIZATION_FAILED",
            "grant Read on the consumer group",
        ),
        (
            |effect| matches!(effect, Effect::CommitTransaction { .. }),
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            "grant Write and Describe on the transactional ids",
        ),
    ];
    for (is, code, permission) in rows {
        let mut world = world();
        let error = world.answer_at(is, refused(FailureClass::Stop, code)).unwrap_err();
        assert!(error.to_string().contains(permission), "{error}");
    }
    let (_, answer) = undelivered(None, "TOPIC_AUTHORIZATION_FAILED", false);
    let text = answer.unwrap_err().to_string();
    assert!(
        text.contains("out-0") && text.contains("grant Write and Describe on the topic"),
        "{text}"
    );
}

#[test]
fn an_input_that_may_not_be_read_stops_the_thread_and_says_what_to_do() {
    for (kind, remedy) in [
        (
            FetchErrorKind::TopicAuthorization,
            "grant Read and Describe on the topic",
        ),
        (FetchErrorKind::GroupAuthorization, "grant Read on the consumer group"),
        (FetchErrorKind::UnknownTopic, "the topic was deleted"),
        (FetchErrorKind::Authentication, "check the credentials"),
        (FetchErrorKind::Fatal, "told to fail"),
    ] {
        let mut world = world();
        world.run_to_end();
        let text = world.fetch_fails(1, kind).unwrap_err().to_string();
        assert!(text.contains("in-1") && text.contains(remedy), "{kind:?}: {text}");
    }
}

#[test]
fn a_deleted_input_topic_is_named_when_its_task_starts() {
    let mut world = World::new(copy(), 0);
    world.start();
    world.core().set_topics(Arc::new(crate::topics::Topics::new("app")));
    let error = world.run(|_, _| false).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("source topic in of task 0_0 does not exist: create it"),
        "{text}"
    );
}

#[test]
fn connection_trouble_while_fetching_is_the_clients_own_business() {
    let mut world = world();
    world.run_to(is_flush);
    for kind in [FetchErrorKind::Transport, FetchErrorKind::Other(-1)] {
        world.fetch_fails(1, kind).unwrap();
    }
    let now_ms = world.now_ms;
    world
        .core()
        .on_outcome(failure(FailureClass::Retriable), now_ms)
        .unwrap();
    world.run_to_end();
    assert_exact(&world, "after trouble");
    assert_eq!(world.core().status().totals.aborts, 0);
}

/// Where a partition goes on whose position is outside the log, by the thread's policy and the topic's own.
fn reset(thread: Option<ResetTo>, topic: AutoOffsetReset) -> Result<usize, String> {
    let mut world = World::new(copy_from(topic), 0);
    world.settings.reset = Some(ResetTo::Earliest);
    // Two records before the first start, so that every policy has a committed offset to lose.
    world.settings.reset = thread;
    world.feed([("a", 1), ("b", 1)]);
    let tool = world.broker.init_producer("tool");
    let zero = [0, 1].map(|partition| (TopicPartition::new("in", partition), 0, String::new()));
    world.broker.send_offsets(&tool, zero.to_vec(), 0).unwrap();
    world.broker.end_transaction(&tool, true).unwrap();
    world.start();
    world.run_to_end();
    assert_eq!(world.all("out").len(), 2);
    // Deleted before they were read.
    world.feed([("a", 2), ("a", 3), ("a", 4)]);
    let input = TopicPartition::new("in", 1);
    world.broker.log_mut(&input).unwrap().delete_before(2);
    match world.run(|_, _| false) {
        Ok(_) => Ok(world.all("out").len() - 2),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn an_offset_outside_the_log_is_reset_by_the_policy_of_its_topic() {
    use AutoOffsetReset::{Configured, Earliest, Latest, None as Nowhere};
    let (earliest, latest) = (Some(ResetTo::Earliest), Some(ResetTo::Latest));
    assert_eq!(reset(earliest, Configured), Ok(2));
    assert_eq!(reset(latest, Configured), Ok(0));
    assert_eq!(reset(None, Earliest), Ok(2));
    assert_eq!(reset(None, Latest), Ok(0));
    assert_eq!(reset(latest, Earliest), Ok(2));
    for (thread, topic) in [(None, Configured), (earliest, Nowhere), (latest, Nowhere)] {
        let text = reset(thread, topic).unwrap_err();
        assert!(text.contains("in-1") && text.contains("auto.offset.reset"), "{text}");
    }
}

#[test]
fn a_reset_is_counted_as_an_abort_for_that_reason() {
    let mut world = world();
    world.run_to(|effect| matches!(effect, Effect::SendOffsets { .. }));
    let now_ms = world.now_ms;
    world
        .core()
        .on_outcome(failure(FailureClass::Retriable), now_ms)
        .unwrap();
    world.fetch_fails(0, FetchErrorKind::OutOfRange { offset: 7 }).unwrap();
    world.run_to(|effect| matches!(effect, Effect::AbortTransaction));
    world.core().on_outcome(Outcome::Done, now_ms).unwrap();
    assert_eq!(world.core().status().totals.aborts_by(AbortReason::OutOfRange), 1);
}

#[test]
fn a_record_that_a_retry_may_bring_home_is_sent_again_with_its_whole_transaction() {
    let (mut world, answer) = undelivered(None, "_MSG_TIMED_OUT", true);
    answer.unwrap();
    world.run_to_end();
    assert_exact(&world, "after the abort");
    assert_eq!(world.core().status().totals.aborts_by(AbortReason::Undelivered), 1);
}

#[test]
fn rule_4_4_a_record_that_the_broker_refuses_stops_the_thread_whatever_the_handler_says() {
    let (_, answer) = undelivered(None, "MSG_SIZE_TOO_LARGE", false);
    let text = answer.unwrap_err().to_string();
    assert!(text.contains("out-0") && text.contains("MSG_SIZE_TOO_LARGE"), "{text}");
    let resume: Arc<dyn ProductionHandler> = Arc::new(LogAndContinue);
    let (world, answer) = undelivered(Some(resume), "MSG_SIZE_TOO_LARGE", false);
    let text = answer.unwrap_err().to_string();
    assert!(text.contains("can't be dropped"), "{text}");
    assert!(world.all("out").is_empty());
}

#[test]
fn rule_4_4_a_record_that_the_client_refuses_may_be_dropped_if_the_handler_says_so() {
    let mut world = world();
    let refused = world.core().may_drop(&out(), "MSG_SIZE_TOO_LARGE", "too large");
    assert!(matches!(*refused.unwrap_err(), Error::Produce { .. }));
    world.handlers = Arc::new(ErrorHandlers {
        production: Arc::new(LogAndContinue),
        ..ErrorHandlers::default()
    });
    world.kill();
    world.start();
    world
        .core()
        .may_drop(&out(), "MSG_SIZE_TOO_LARGE", "too large")
        .unwrap();
}

/// Answers a retry to everything.
struct Again;

impl ProductionHandler for Again {
    fn handle_serialization(&self, _: &ErrorContext, _: &str, _: &SerdeError) -> HandlerResponse {
        Decision::Fail.into()
    }

    fn handle_send(&self, _: &str, _: &str, _: &str, _: bool) -> ProductionDecision {
        ProductionDecision::Retry
    }
}

#[test]
fn rule_4_1_a_retry_of_what_can_not_be_retried_stops_the_thread() {
    let (_, answer) = undelivered(Some(Arc::new(Again)), "INVALID_RECORD", false);
    assert!(matches!(*answer.unwrap_err(), Error::Produce { .. }));
}

#[test]
fn starting_a_producer_is_tried_for_as_long_as_task_timeout_says() {
    let mut world = world();
    let is = |effect: &Effect| matches!(effect, Effect::InitTransactions);
    for _ in 0..10 {
        world.answer_at(is, failure(FailureClass::Retriable)).unwrap();
        world.now_ms += 29_000;
    }
    world.run_to_end();
    assert_exact(&world, "after the wait");
    world.kill();
    world.start();
    let mut waited = 0;
    let error = loop {
        match world.answer_at(is, failure(FailureClass::Retriable)) {
            Ok(()) => world.now_ms += 30_000,
            Err(error) => break error,
        }
        waited += 30;
        assert!(waited <= 330, "it is tried for ever");
    };
    assert!(error.to_string().contains("InitTransactions"), "{error}");
}

#[test]
fn questions_of_a_start_are_asked_again_until_task_timeout() {
    let steps: [fn(&Effect) -> bool; 3] = [
        |effect| matches!(effect, Effect::FetchCommitted { .. }),
        |effect| matches!(effect, Effect::ResolveReset { .. }),
        |effect| matches!(effect, Effect::ListChangelogs { .. }),
    ];
    for is in steps {
        let mut world = world();
        for _ in 0..5 {
            world.answer_at(is, failure(FailureClass::Retriable)).unwrap();
        }
        world.run_to_end();
        assert_exact(&world, "after five failures");
        // A deleted changelog, for example: the thread says what it waited for.
        world.kill();
        let mut world = self::world();
        let mut error = None;
        for _ in 0..400 {
            world.now_ms += 1_000;
            error = world
                .answer_at(is, refused(FailureClass::Retriable, "UNKNOWN_TOPIC_OR_PART"))
                .err();
            if error.is_some() {
                break;
            }
        }
        let text = error.expect("it is asked for ever").to_string();
        assert!(
            text.contains("UNKNOWN_TOPIC_OR_PART") && text.contains("task.timeout.ms"),
            "{text}"
        );
    }
}

#[test]
fn a_question_that_is_answered_in_between_has_not_failed_for_long() {
    let mut world = world();
    let is = |effect: &Effect| matches!(effect, Effect::FetchCommitted { .. });
    for _ in 0..10 {
        world.answer_at(is, failure(FailureClass::Retriable)).unwrap();
        world.run_to_end();
        world.now_ms += 200_000;
        // All tasks are made anew.
        world.feed([("a", 1)]);
        let commit = |effect: &Effect| matches!(effect, Effect::CommitTransaction { .. });
        world.answer_at(commit, failure(FailureClass::Fatal)).unwrap();
    }
}

#[test]
fn an_assignment_that_fails_beside_an_open_transaction_leaves_no_task_without_input() {
    let mut world = world();
    let mut assigned = 0;
    world
        .run(|_, effect| {
            assigned += usize::from(matches!(effect, Effect::Assign { .. }));
            assigned == 2
        })
        .unwrap();
    // The first task sends while the second one waits for its assignment.
    let now_ms = world.now_ms;
    world.core().transaction_began_ms = Some(now_ms);
    world
        .core()
        .on_outcome(failure(FailureClass::Retriable), now_ms)
        .unwrap();
    world.core().transaction_began_ms = None;
    world.run_to_end();
    assert_exact(&world, "after the second attempt");
}

#[test]
fn an_abort_that_does_not_end_in_time_is_settled_by_a_new_producer() {
    let mut world = world();
    world.answer_at(is_flush, failure(FailureClass::Abortable)).unwrap();
    let is = |effect: &Effect| matches!(effect, Effect::AbortTransaction);
    for _ in 0..3 {
        world.now_ms += 4_000;
        world.answer_at(is, failure(FailureClass::Retriable)).unwrap();
    }
    world.run_to(|effect| matches!(effect, Effect::RecreateProducer));
    let now_ms = world.now_ms;
    world.core().on_outcome(Outcome::Done, now_ms).unwrap();
    world.run_to_end();
    assert_exact(&world, "with a new producer");
}

#[test]
fn a_begin_that_wants_an_abort_is_settled_by_a_new_producer() {
    let mut world = world();
    let is = |effect: &Effect| matches!(effect, Effect::BeginTransaction);
    world.answer_at(is, failure(FailureClass::Abortable)).unwrap();
    world.run_to_end();
    assert_exact(&world, "with a new producer");
    assert_eq!(world.core().status().totals.producers, 1);
}
