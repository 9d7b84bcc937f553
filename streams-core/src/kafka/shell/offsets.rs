//! Commits outside of transactions: the request for the offsets and what its answer means, and what a flush means.

use crate::TopicPartition;
use crate::kafka::errors::Reaction;
use crate::kafka::group::OffsetCommitFailure;
use crate::kafka::producer::{DeliveryFailure, Reports as DeliveryReports};
use crate::membership::codec::offset_commit::{CommitPartition, CommitTopic, CommittedTopic, OffsetCommitRequest};
use crate::runtime::{
    CallFailure, CommittedOffset, FailureClass, GroupIdentity, Outcome, Reports, Undelivered, class_of_offset_commit,
};

/// The request that commits these offsets as this member.
pub(super) fn request_of(group_id: &str, offsets: Vec<CommittedOffset>, group: GroupIdentity) -> OffsetCommitRequest {
    let mut topics: Vec<CommitTopic> = Vec::new();
    for offset in offsets {
        let CommittedOffset {
            topic_partition,
            offset,
            leader_epoch,
            metadata,
        } = offset;
        let partition = CommitPartition {
            partition: topic_partition.partition,
            offset,
            leader_epoch,
            metadata: Some(metadata),
        };
        match topics.iter_mut().find(|topic| *topic.name == *topic_partition.topic) {
            Some(topic) => topic.partitions.push(partition),
            None => topics.push(CommitTopic {
                name: topic_partition.topic.to_string(),
                partitions: vec![partition],
            }),
        }
    }
    OffsetCommitRequest {
        group_id: group_id.to_owned(),
        member_epoch: group.member_epoch,
        member_id: group.member_id,
        instance_id: None,
        topics,
    }
}

/// What became of a commit: of several refusals the one that forces the most.
pub(super) fn result_of(answer: Result<Vec<CommittedTopic>, OffsetCommitFailure>) -> Result<(), CallFailure> {
    let topics = answer.map_err(|failure| CallFailure {
        class: match &failure {
            OffsetCommitFailure::NotSent(_) => FailureClass::Retriable,
            OffsetCommitFailure::Unknown(_) => FailureClass::Unknown,
        },
        code: "OFFSET_COMMIT".to_owned(),
        message: failure.to_string(),
    })?;
    let mut worst: Option<(FailureClass, i16, String)> = None;
    for topic in &topics {
        for partition in &topic.partitions {
            let Some(class) = class_of_offset_commit(partition.error_code) else {
                continue;
            };
            if worst.as_ref().is_none_or(|(known, ..)| weight(class) > weight(*known)) {
                worst = Some((
                    class,
                    partition.error_code,
                    format!("{}-{}", topic.name, partition.partition),
                ));
            }
        }
    }
    match worst {
        None => Ok(()),
        Some((class, code, at)) => Err(CallFailure {
            class,
            code: name_of(code),
            message: format!("the group refused the offset of {at} (error {code}{})", advice(code)),
        }),
    }
}

/// A record that failed because the producer is of no use any more.
pub(super) fn replacing(reports: &DeliveryReports) -> Option<&DeliveryFailure> {
    reports
        .failed
        .iter()
        .find(|failure| failure.reaction() == Reaction::ReplaceProducer)
}

/// The end of a flush outside of transactions.
pub(super) fn flushed(reports: &DeliveryReports) -> Outcome {
    let acknowledged = reports_of(reports);
    if reports.failed_total == 0 {
        return Outcome::Flushed(acknowledged);
    }
    let undelivered = |failure: &DeliveryFailure| Undelivered {
        topic_partition: TopicPartition::new(failure.topic.clone(), failure.partition),
        code: failure.name.clone(),
        message: failure.message.clone(),
        retriable: is_retriable(failure.reaction()),
        changelog: failure.slot > 0,
    };
    Outcome::PartlyFlushed {
        reports: acknowledged,
        undelivered: reports.failed.iter().map(undelivered).collect(),
        total: reports.failed_total,
    }
}

pub(super) fn reports_of(reports: &DeliveryReports) -> Reports {
    Reports {
        highest: reports.slots().collect(),
        acknowledged: reports.acked,
    }
}

pub(super) fn is_retriable(reaction: Reaction) -> bool {
    matches!(
        reaction,
        Reaction::AbortAndRewind | Reaction::AbortAndRejoin | Reaction::Again
    )
}

fn weight(class: FailureClass) -> u8 {
    match class {
        FailureClass::Stop => 4,
        FailureClass::StaleMember => 3,
        FailureClass::Unknown => 2,
        _ => 1,
    }
}

fn name_of(code: i16) -> String {
    crate::kafka::ffi::error::name(code.into())
}

fn advice(code: i16) -> &'static str {
    match code {
        12 => {
            ": the operators' clocks do not fit into the offset's metadata; raise offset.metadata.max.bytes of the brokers"
        }
        29 => ": allow READ on the topic",
        30 => ": allow READ on the group",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::TopicPartition;
    use crate::membership::codec::offset_commit::CommittedPartition;

    fn offset(topic: &str, partition: i32) -> CommittedOffset {
        CommittedOffset {
            topic_partition: TopicPartition::new(topic, partition),
            offset: 7,
            leader_epoch: 3,
            metadata: "AgA=".to_owned(),
        }
    }

    fn answer(codes: &[i16]) -> Result<Vec<CommittedTopic>, OffsetCommitFailure> {
        let partitions = (0..).zip(codes);
        let partitions = partitions.map(|(partition, code)| CommittedPartition {
            partition,
            error_code: *code,
        });
        Ok(vec![CommittedTopic {
            name: "in".to_owned(),
            partitions: partitions.collect(),
        }])
    }

    #[test]
    fn a_request_names_each_topic_once_and_the_identity_it_is_fenced_by() {
        let group = GroupIdentity {
            member_id: "m".to_owned(),
            member_epoch: 4,
        };
        let request = request_of("app", vec![offset("a", 0), offset("b", 0), offset("a", 1)], group);
        assert_eq!((request.member_id.as_str(), request.member_epoch), ("m", 4));
        let names: Vec<_> = request
            .topics
            .iter()
            .map(|topic| (topic.name.as_str(), topic.partitions.len()))
            .collect();
        assert_eq!(names, [("a", 2), ("b", 1)]);
        let partition = &request.topics[0].partitions[1];
        assert_eq!(
            (partition.partition, partition.offset, partition.leader_epoch),
            (1, 7, 3)
        );
        assert_eq!(partition.metadata.as_deref(), Some("AgA="));
    }

    #[test]
    fn of_several_refusals_the_one_that_forces_the_most_counts() {
        let class = |codes: &[i16]| result_of(answer(codes)).unwrap_err().class;
        assert!(result_of(answer(&[0, 0])).is_ok());
        assert_eq!(class(&[0, 14]), FailureClass::Retriable);
        assert_eq!(class(&[14, 16, 0]), FailureClass::Unknown);
        assert_eq!(class(&[16, 113]), FailureClass::StaleMember);
        assert_eq!(class(&[113, 30, 16]), FailureClass::Stop);
    }

    #[test]
    fn what_was_not_sent_is_known_not_to_be_carried_out() {
        let class = |failure| result_of(Err(failure)).unwrap_err().class;
        assert_eq!(
            class(OffsetCommitFailure::NotSent(String::new())),
            FailureClass::Retriable
        );
        assert_eq!(
            class(OffsetCommitFailure::Unknown(String::new())),
            FailureClass::Unknown
        );
    }
}
