//! Group membership without I/O: which tasks this stream thread has, by which epoch, and what the coordinator is told.
//!
//! One interface serves every group protocol: [`MembershipEvent`]s reach the stream thread in one ordered channel, and
//! [`MembershipCommand`]s go back. Behind it here stands the protocol of streams groups (KIP-1071): a [`member::Member`] is
//! told the time, answers and commands, and says what to send next. `kafka/group` carries that out.
//!
//! The rule that matters most: the pair (member id, epoch) of a commit is the one of the last event that the stream thread
//! itself has applied ([`MemberEpoch`]). There is no shared "current epoch", because a coordinator checks no partition of a
//! commit whose epoch is current: a thread that was fenced and has rejoined could commit what it processed before.

pub mod codec;
pub mod error;
pub mod events;
mod gate;
pub mod member;
pub mod topology_diff;
pub mod topology_wire;

pub use error::MembershipError;
pub use events::{LostReason, MemberEpoch, MembershipCommand, MembershipEvent, Status, StatusCode};
pub use gate::TaskGate;
pub use topology_wire::{CopartitionGroup, GroupTopology, Subtopology, TopicInfo};
