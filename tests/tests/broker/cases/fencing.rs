//! Somebody else has our transactional id; the group has given us up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use streams_core::kafka::group::{GroupTarget, describe_group};
use streams_dsl::State;
use streams_testkit::{Transaction, wait_until};
use streams_tests::local::{LIMIT, Local, expected, stop, wait_running};

use super::{THREE, THREE_COUNTED, counting};

#[test]
fn case_eos_fatal_in_begin() {
    let app = counting("fatal-in-begin", 1);
    app.produce("in", &THREE);
    let streams = app.start_running();
    app.wait_committed(&streams, "in", 3);
    let id = format!("{}-{}-1", app.id, streams.process_id().unwrap());
    // Another producer of the same name: ours is fenced, and finds out at its next transaction.
    let other = Transaction::begin(app.kafka().bootstrap(), &id).unwrap();
    other.abort().unwrap();
    app.produce("in", &[("a", Some("x"), 4)]);
    app.wait_committed(&streams, "in", 4);
    assert_eq!(streams.state(), State::Running);
    let totals = streams.threads()[0].status.as_ref().unwrap().totals;
    assert_eq!(totals.producers_fenced, 1);
    stop(&streams);
    let mut rows = THREE_COUNTED.to_vec();
    rows.push(("a", "3", 4));
    assert_eq!(app.counts("out"), expected(&rows));
}

/// Design rule 6.3 as well: an assign-only consumer has no poll timer, so the membership looks after the thread.
#[test]
fn case_eos_poll_interval_exceeded() {
    let (stuck, released, calls) = (
        Arc::new(AtomicBool::default()),
        Arc::new(AtomicBool::default()),
        Arc::new(AtomicU32::default()),
    );
    let in_closure = (Arc::clone(&stuck), Arc::clone(&released), Arc::clone(&calls));
    let app = Local::new("poll-interval", &[("in", 1), ("out", 1)], move |builder, names| {
        let (stuck, released, calls) = in_closure.clone();
        let stream = builder.stream::<String, String>(names.of("in"));
        // The second record takes longer than the interval, the first time.
        let slow = stream.peek(move |_, _| {
            if calls.fetch_add(1, Ordering::SeqCst) == 1 {
                stuck.store(true, Ordering::SeqCst);
                while !released.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                    std::thread::park_timeout(std::time::Duration::from_millis(5));
                }
            }
        });
        slow.group_by_key().count("c").to_stream().to(names.of("out"));
    })
    .with("max.poll.interval.ms", "2000");
    app.produce("in", &THREE);
    let streams = app.start();
    let target = GroupTarget::new(app.kafka().bootstrap(), &app.id);
    wait_until("the slow record", LIMIT, || Ok(stuck.load(Ordering::SeqCst))).unwrap();
    // The stuck thread is declared lost although its process heartbeats: others could have its task now.
    wait_until("the end of its membership", LIMIT, || {
        Ok(describe_group(&target).is_ok_and(|group| group.members.is_empty()))
    })
    .unwrap();
    released.store(true, Ordering::SeqCst);
    app.wait_committed(&streams, "in", 3);
    wait_running(&streams);
    assert_eq!(describe_group(&target).unwrap().members.len(), 1, "it has rejoined");
    stop(&streams);
    assert_eq!(app.counts("out"), expected(&THREE_COUNTED));
    assert!(
        calls.load(Ordering::SeqCst) >= 4,
        "what was uncommitted is processed again"
    );
}
