//! What the error codes of an OffsetCommit force us to do.

use crate::runtime::FailureClass;

/// What a partition's error code in the answer to an OffsetCommit (version 9) means; `None` for 0, success.
///
/// | code | meaning | class |
/// |---|---|---|
/// | 14 | the coordinator loads the group and has done nothing | retriable |
/// | 3, 89 | topic not known there yet, throttled | retriable |
/// | 7, 13, 15, 16, 19, 20 | its log did not take the write in time, or it lost the leadership meanwhile: the write may be there | unknown |
/// | 22, 25, 69, 110, 113 | the group does not know the member, or its epoch is old | stale member |
/// | all others, 12, 29, 30, 35, 42 among them | nothing changes by trying again | stop |
///
/// Source: `OffsetMetadataManager.commitOffset`, `StreamsGroup.validateOffsetCommit`,
/// `CoordinatorOperationExceptionHelper.handleOperationException`, KIP-848. Java treats 7, 15 and 16 as retriable
/// (`ConsumerCoordinator.OffsetCommitResponseHandler`), which is right for at-least-once only.
///
/// ```
/// use streams_core::runtime::{FailureClass, class_of_offset_commit};
/// assert_eq!(class_of_offset_commit(0), None);
/// assert_eq!(class_of_offset_commit(113), Some(FailureClass::StaleMember));
/// assert_eq!(class_of_offset_commit(16), Some(FailureClass::Unknown));
/// ```
#[must_use]
pub fn class_of_offset_commit(code: i16) -> Option<FailureClass> {
    match code {
        0 => None,
        3 | 14 | 89 => Some(FailureClass::Retriable),
        7 | 13 | 15 | 16 | 19 | 20 => Some(FailureClass::Unknown),
        22 | 25 | 69 | 110 | 113 => Some(FailureClass::StaleMember),
        _ => Some(FailureClass::Stop),
    }
}
