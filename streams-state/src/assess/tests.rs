#![allow(missing_docs)]
use super::*;

const DAY: i64 = 86_400_000;
const NOW: i64 = 1_700_000_000_000;

fn at(position: i64, own_commit: bool) -> StoreMetadata {
    StoreMetadata {
        changelog_topic_id: Some([1; 16]),
        position,
        own_commit,
        applied_at_ms: NOW - 1_000,
    }
}

fn log(log_start: i64, high_watermark: i64, cleanup: Cleanup) -> ChangelogFacts {
    ChangelogFacts {
        topic_id: Some([1; 16]),
        log_start,
        high_watermark,
        cleanup,
        delete_retention_ms: DAY,
        source_topic_committed: None,
    }
}

#[test]
fn rule_2_1_the_end_at_the_position_is_current() {
    assert_eq!(
        assess(Some(&at(10, false)), &log(0, 10, Cleanup::Compact), NOW),
        Verdict::Current
    );
}

#[test]
fn rule_2_1_our_own_marker_behind_the_position_is_current() {
    assert_eq!(
        assess(Some(&at(10, true)), &log(0, 11, Cleanup::Compact), NOW),
        Verdict::Current
    );
    assert_eq!(
        assess(Some(&at(10, true)), &log(0, 12, Cleanup::Compact), NOW),
        Verdict::Tail { from: 10, to: 12 }
    );
}

#[test]
fn rule_2_1_without_the_flag_the_entry_at_the_position_may_be_a_record() {
    assert_eq!(
        assess(Some(&at(0, false)), &log(0, 1, Cleanup::Compact), NOW),
        Verdict::Tail { from: 0, to: 1 }
    );
}

#[test]
fn rule_2_3_a_source_topic_is_restored_to_the_committed_offset_only() {
    let facts = |committed| ChangelogFacts {
        source_topic_committed: Some(committed),
        ..log(0, 100, Cleanup::Compact)
    };
    assert_eq!(
        assess(Some(&at(40, false)), &facts(60), NOW),
        Verdict::Tail { from: 40, to: 60 }
    );
    assert_eq!(assess(Some(&at(60, false)), &facts(60), NOW), Verdict::Current);
    assert_eq!(
        assess(Some(&at(60, true)), &facts(61), NOW),
        Verdict::Tail { from: 60, to: 61 },
        "the entry at the position of a source topic is a record of its producer, not our marker"
    );
    assert_eq!(
        assess(None, &facts(0), NOW),
        Verdict::FullRestore {
            reason: RestoreReason::NoPosition,
            from: 0,
            to: 0
        }
    );
}

#[test]
fn rule_2_4a_a_trimmed_delete_policy_changelog_keeps_the_rows() {
    for cleanup in [Cleanup::Delete, Cleanup::CompactDelete] {
        let old = StoreMetadata {
            applied_at_ms: NOW - 30 * DAY,
            ..at(10, false)
        };
        assert_eq!(
            assess(Some(&old), &log(50, 80, cleanup), NOW),
            Verdict::KeepRowsFrom { from: 50, to: 80 },
            "{cleanup:?}"
        );
    }
}

#[test]
fn rule_2_4a_an_idle_delete_policy_changelog_that_was_emptied_is_current_or_kept() {
    assert_eq!(
        assess(Some(&at(10, true)), &log(11, 11, Cleanup::Delete), NOW),
        Verdict::Current
    );
    let others = assess(Some(&at(10, false)), &log(12, 12, Cleanup::Delete), NOW);
    assert_eq!(others, Verdict::KeepRowsFrom { from: 12, to: 12 });
}

#[test]
fn rule_2_4b_an_old_store_that_is_not_current_is_restored_from_zero() {
    let old = StoreMetadata {
        applied_at_ms: NOW - DAY / 2 - 1,
        ..at(10, false)
    };
    let full = Verdict::FullRestore {
        reason: RestoreReason::DeletionsMayBeGone,
        from: 0,
        to: 20,
    };
    assert_eq!(assess(Some(&old), &log(0, 20, Cleanup::Compact), NOW), full);
    assert_eq!(assess(Some(&old), &log(0, 20, Cleanup::CompactDelete), NOW), full);
    assert_eq!(
        assess(Some(&old), &log(0, 20, Cleanup::Delete), NOW),
        Verdict::Tail { from: 10, to: 20 }
    );
}

#[test]
fn rule_2_4b_an_old_store_that_is_current_stays() {
    let old = StoreMetadata {
        applied_at_ms: NOW - 30 * DAY,
        ..at(10, true)
    };
    assert_eq!(assess(Some(&old), &log(0, 11, Cleanup::Compact), NOW), Verdict::Current);
}

#[test]
fn rule_2_4b_a_trimmed_changelog_keeps_rows_that_no_record_could_bring_back() {
    let old = StoreMetadata {
        applied_at_ms: NOW - 30 * DAY,
        ..at(10, false)
    };
    assert_eq!(
        assess(Some(&old), &log(5, 20, Cleanup::CompactDelete), NOW),
        Verdict::Tail { from: 10, to: 20 }
    );
}

#[test]
fn rule_2_4_a_compacted_changelog_that_begins_above_the_position_is_restored_from_zero() {
    let verdict = assess(Some(&at(10, false)), &log(11, 20, Cleanup::Compact), NOW);
    assert_eq!(
        verdict,
        Verdict::FullRestore {
            reason: RestoreReason::CompactedAway,
            from: 11,
            to: 20
        }
    );
}

#[test]
fn rule_2_4c_a_recreated_topic_stops() {
    let facts = ChangelogFacts {
        topic_id: Some([2; 16]),
        ..log(0, 10, Cleanup::Compact)
    };
    let stop = Verdict::Stop {
        reason: StopReason::TopicRecreated,
    };
    assert_eq!(assess(Some(&at(10, false)), &facts, NOW), stop);
    let unknown = ChangelogFacts {
        topic_id: None,
        ..facts
    };
    assert_eq!(assess(Some(&at(10, false)), &unknown, NOW), Verdict::Current);
}

#[test]
fn rule_2_4d_a_position_beyond_the_end_stops() {
    let stop = Verdict::Stop {
        reason: StopReason::PositionBeyondEnd { position: 11, end: 10 },
    };
    assert_eq!(assess(Some(&at(11, false)), &log(0, 10, Cleanup::Compact), NOW), stop);
}

#[test]
fn a_clock_that_went_back_is_no_reason_to_restore() {
    let future = StoreMetadata {
        applied_at_ms: NOW + DAY,
        ..at(10, false)
    };
    assert_eq!(
        assess(Some(&future), &log(0, 20, Cleanup::Compact), NOW),
        Verdict::Tail { from: 10, to: 20 }
    );
}

#[test]
fn rule_2_5_missing_or_lower_committed_offsets_are_found() {
    let input = |partition| ("in".to_owned(), partition);
    let in_state = BTreeMap::from([(input(0), 10), (input(1), 10), (input(2), 10), (input(3), 10)]);
    let committed = BTreeMap::from([(input(0), Some(10)), (input(1), Some(9)), (input(2), None)]);
    let found = disagreeing_inputs(&in_state, &committed);
    let told: Vec<_> = found.iter().map(|input| (input.partition, input.committed)).collect();
    assert_eq!(told, [(1, Some(9)), (2, None)], "partition 3 is no input any more");
}

#[test]
fn rule_2_5_a_higher_committed_offset_is_normal() {
    let input = ("in".to_owned(), 0);
    let found = disagreeing_inputs(
        &BTreeMap::from([(input.clone(), 10)]),
        &BTreeMap::from([(input, Some(11))]),
    );
    assert_eq!(found, []);
}
