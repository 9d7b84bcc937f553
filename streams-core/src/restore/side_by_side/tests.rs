#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use streams_state::{StoreMetadata, StoreSpec, TaskState};

use super::*;
use crate::TopicPartition;

const NO_HEADERS: [(&str, Option<&[u8]>); 0] = [];

fn job(partition: i32, to: i64) -> RestoreJob {
    let task = TaskId::new(0, partition);
    let state = TaskState::in_memory(&task.to_string(), vec![StoreSpec::key_value("counts")]).unwrap();
    let changelog = ChangelogRestore {
        store: state.store_id("counts").unwrap(),
        name: "counts".to_owned(),
        topic_partition: TopicPartition::new("app-counts-changelog", partition),
        from: 0,
        to,
        exact_end: false,
        from_zero: false,
        resumed: false,
        timestamped: false,
        rows: None,
        buffered: None,
        metadata: StoreMetadata {
            changelog_topic_id: None,
            position: 0,
            own_commit: false,
            applied_at_ms: 0,
        },
        meanwhile_ms: 0,
    };
    RestoreJob {
        task,
        incarnation: 7,
        state,
        changelogs: vec![changelog],
    }
}

/// Restores of the partitions 0, 1 … to these ends, and the numbers that they are fetched under.
fn started(ends: &[i64]) -> (SideBySide, Vec<PartitionId>) {
    let mut restores = SideBySide::default();
    let ids = ends.iter().enumerate().map(|(partition, to)| {
        let job = job(i32::try_from(partition).unwrap(), *to);
        let Ok(assignments) = restores.start(job, 0) else {
            panic!("it does not begin")
        };
        assert_eq!((assignments[0].start_offset, assignments[0].incarnation), (0, 7));
        assignments[0].id
    });
    let ids = ids.collect();
    (restores, ids)
}

fn rows(id: PartitionId, offsets: std::ops::Range<i64>) -> Fetched {
    let mut batch = PartitionBatch::new(id, 7);
    for offset in offsets {
        assert!(batch.push(offset, 0, -1, Some(b"key"), Some(&offset.to_be_bytes()), NO_HEADERS));
    }
    Fetched::Records(batch)
}

fn eof(partition: PartitionId, offset: i64) -> Fetched {
    let incarnation = 7;
    Fetched::Eof {
        partition,
        incarnation,
        offset,
    }
}

fn failed(partition: Option<PartitionId>, kind: FetchErrorKind) -> Fetched {
    Fetched::Error(FetchError {
        partition: partition.map(|id| (id, 7)),
        kind,
        message: "told to fail".to_owned(),
    })
}

/// One round; answers who has ended and with which code.
fn round(restores: &mut SideBySide) -> Vec<(i32, Option<(FailureClass, String)>)> {
    let ended = restores.round(0, |_, lease| lease == 7, || {});
    ended.iter().map(outcome).collect()
}

fn outcome(ended: &EndedRestore) -> (i32, Option<(FailureClass, String)>) {
    let failure = ended.restored.failure.as_ref().map(|failure| match failure {
        RestoreFailure::Call(failure) => (failure.class, failure.code.clone()),
        RestoreFailure::Fatal(error) => panic!("{error}"),
    });
    (ended.restored.task.partition, failure)
}

fn code(class: FailureClass, code: &str) -> Option<(FailureClass, String)> {
    Some((class, code.to_owned()))
}

#[test]
fn rule_5_1_a_restore_that_waits_does_not_hold_up_the_others() {
    let (mut restores, ids) = started(&[3, 3]);
    restores.take(rows(ids[0], 0..2));
    restores.take(rows(ids[1], 0..3));
    assert_eq!(round(&mut restores), [(1, None)]);
    assert_eq!(restores.partitions().collect::<Vec<_>>(), [ids[0]]);
    let progress: Vec<_> = restores.progress().map(|(_, progress)| progress).collect();
    assert_eq!((progress[0].restored, progress[0].remaining), (2, 1));
    restores.take(rows(ids[0], 2..3));
    assert_eq!(round(&mut restores), [(0, None)]);
    assert!(restores.is_empty());
}

#[test]
fn rule_5_3_a_restore_ends_where_it_was_told_to_and_not_where_nothing_can_be_read_now() {
    let (mut restores, ids) = started(&[5]);
    restores.take(rows(ids[0], 0..2));
    restores.take(eof(ids[0], 2));
    assert_eq!(round(&mut restores), []);
    // Behind the last row stand markers alone.
    restores.take(eof(ids[0], 6));
    let ended = restores.round(0, |_, _| true, || {});
    assert_eq!(outcome(&ended[0]), (0, None));
    assert_eq!(ended[0].changelogs[0].1, 6);
    let state = &ended[0].restored.state;
    let id = state.store_id("counts").unwrap();
    assert_eq!(state.store_metadata(id).unwrap().position, 6);
    assert_eq!(ended[0].restored.records["counts"], 2);
}

#[test]
fn a_restore_that_nobody_waits_for_ends_and_gives_its_state_back() {
    let (mut restores, ids) = started(&[3, 3]);
    restores.take(rows(ids[0], 0..1));
    let ended = restores.round(0, |task, _| task.partition == 1, || {});
    let ended: Vec<_> = ended.iter().map(outcome).collect();
    assert_eq!(ended, [(0, code(FailureClass::Retriable, "NOT_WANTED"))]);
    assert_eq!(restores.partitions().collect::<Vec<_>>(), [ids[1]]);
}

#[test]
fn a_fetch_that_fails_ends_the_restores_that_it_concerns() {
    let (mut restores, ids) = started(&[3, 3, 3]);
    restores.take(failed(None, FetchErrorKind::Transport));
    assert_eq!(round(&mut restores), []);
    restores.take(failed(Some(ids[1]), FetchErrorKind::OutOfRange { offset: 0 }));
    assert_eq!(round(&mut restores), [(1, code(FailureClass::Retriable, "FETCH"))]);
    restores.take(failed(Some(ids[0]), FetchErrorKind::TopicAuthorization));
    let denied = code(FailureClass::Stop, "TOPIC_AUTHORIZATION_FAILED");
    assert_eq!(round(&mut restores), [(0, denied)]);
    restores.take(failed(None, FetchErrorKind::Authentication));
    assert_eq!(round(&mut restores), [(2, code(FailureClass::Stop, "FETCH"))]);
    assert!(restores.is_empty());
}

#[test]
fn a_lost_consumer_ends_all_restores_behind_what_was_applied() {
    let (mut restores, ids) = started(&[3, 3]);
    restores.take(rows(ids[0], 0..2));
    assert_eq!(round(&mut restores), []);
    restores.take(rows(ids[0], 2..3));
    let failure = CallFailure {
        class: FailureClass::Retriable,
        code: "_TRANSPORT".to_owned(),
        message: "told to fail".to_owned(),
    };
    let ended = restores.fail_all(&failure);
    let lost = code(FailureClass::Retriable, "_TRANSPORT");
    let ends: Vec<_> = ended.iter().map(outcome).collect();
    assert_eq!(ends, [(0, lost.clone()), (1, lost)]);
    assert_eq!(ended[0].changelogs[0].1, 2);
    assert!(restores.is_empty());
}

#[test]
fn a_restore_whose_assignment_fails_ends_alone() {
    let (mut restores, _) = started(&[3, 3]);
    let failure = CallFailure {
        class: FailureClass::Stop,
        code: "_INVALID_ARG".to_owned(),
        message: "told to fail".to_owned(),
    };
    assert!(restores.fail(TaskId::new(0, 0), 6, &failure).is_none());
    let ended = restores.fail(TaskId::new(0, 0), 7, &failure).unwrap();
    assert_eq!(outcome(&ended), (0, code(FailureClass::Stop, "_INVALID_ARG")));
    assert_eq!(restores.partitions().count(), 1);
}
