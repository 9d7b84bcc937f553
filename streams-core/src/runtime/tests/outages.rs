//! A coordinator that is away: for how long an application waits, and what ends it.

use super::nodes::counting;
use super::{World, failure};
use crate::config::ProcessingGuarantee;
use crate::runtime::{CallFailure, Effect, FailureClass, Outcome};

/// Longer than a transaction may take (10 s) and a busy broker was seen to be without its coordinators.
const AWAY_MS: i64 = 30_000;

fn world(guarantee: ProcessingGuarantee) -> World {
    let mut world = World::new(counting(), 1 << 20);
    world.settings.guarantee = guarantee;
    world.feed((0..30).map(|at| (["a", "b", "c"][at as usize % 3], i64::from(at))));
    world.start();
    world
}

/// What a coordinator of groups or transactions is asked.
fn asks_a_coordinator(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::InitTransactions
            | Effect::FetchCommitted { .. }
            | Effect::SendOffsets { .. }
            | Effect::CommitTransaction { .. }
            | Effect::AbortTransaction
            | Effect::CommitOffsets { .. }
    )
}

fn not_coordinator() -> Outcome {
    Outcome::Failed(CallFailure {
        class: FailureClass::Retriable,
        code: "NOT_COORDINATOR".to_owned(),
        message: "Broker: Not coordinator".to_owned(),
    })
}

fn assert_exact(world: &World, what: &str) {
    let counts = world.latest("out");
    assert_eq!(counts.len(), 3, "{what}");
    let exact = counts.values().all(|count| count.as_deref() == Some(b"10"));
    assert!(exact, "{what}: {counts:?}");
}

/// From the `first` question on nobody answers for 30 s, each try taking two of them.
#[test]
fn a_coordinator_that_is_away_for_30_s_ends_no_application_whenever_it_goes() {
    for guarantee in [ProcessingGuarantee::ExactlyOnceV2, ProcessingGuarantee::AtLeastOnce] {
        for first in 0.. {
            let what = format!("{guarantee:?}, away from question {first} on");
            let mut world = world(guarantee);
            let mut asked = 0;
            let reached = world
                .run(|_, effect| {
                    asked += usize::from(asks_a_coordinator(effect));
                    asks_a_coordinator(effect) && asked > first
                })
                .unwrap();
            if !reached {
                assert!(first > 5, "the run is too short to prove anything: {first}");
                break;
            }
            let back_ms = world.now_ms + AWAY_MS;
            while world.now_ms < back_ms {
                world.now_ms += 2_000;
                let now_ms = world.now_ms;
                let answered = world.core().on_outcome(not_coordinator(), now_ms);
                answered.unwrap_or_else(|error| panic!("{what}: {error}"));
                if !world.run(|_, effect| asks_a_coordinator(effect)).unwrap() {
                    break;
                }
            }
            let process = world.process.as_mut().unwrap();
            if !process.core.is_idle() {
                // The question that was on its way is answered at last.
                let now_ms = world.now_ms;
                process.core.on_outcome(not_coordinator(), now_ms).unwrap();
            }
            world.run_to_end();
            if guarantee == ProcessingGuarantee::ExactlyOnceV2 {
                assert_exact(&world, &what);
            } else {
                let counts = world.latest("out");
                assert_eq!(counts.len(), 3, "{what}: {counts:?}");
            }
        }
    }
}

/// librdkafka loses count of its own calls when one is answered late, beside the next: it must not end the application.
#[test]
fn a_client_that_is_out_of_step_is_made_anew_and_nothing_is_lost() {
    let steps: [fn(&Effect) -> bool; 3] = [
        |effect| matches!(effect, Effect::BeginTransaction),
        |effect| matches!(effect, Effect::SendOffsets { .. }),
        |effect| matches!(effect, Effect::CommitTransaction { .. }),
    ];
    for (at, is) in steps.into_iter().enumerate() {
        // Before the broker has committed, and after it: nobody can tell.
        for carried_out in [false, true] {
            let mut world = world(ProcessingGuarantee::ExactlyOnceV2);
            world.run_to(is);
            if carried_out && at == 2 {
                let process = world.process.as_mut().unwrap();
                process.shell.end_transaction(&mut world.broker, true);
            }
            let now_ms = world.now_ms;
            world.core().on_outcome(failure(FailureClass::Fatal), now_ms).unwrap();
            world.run_to_end();
            assert_exact(&world, &format!("at step {at}, carried out: {carried_out}"));
        }
    }
}

#[test]
fn a_client_that_never_comes_into_step_again_ends_the_thread() {
    let mut world = world(ProcessingGuarantee::ExactlyOnceV2);
    let is = |effect: &Effect| matches!(effect, Effect::BeginTransaction);
    let mut tries = 0;
    let error = loop {
        tries += 1;
        assert!(tries < 1_000, "it is tried for ever");
        if let Err(error) = world.answer_at(is, failure(FailureClass::Fatal)) {
            break error;
        }
    };
    assert!(error.to_string().contains("told to fail"), "{error}");
    assert_eq!(tries, 101);
}
