//! Byte layouts that Kafka Streams (Java) writes to topics and into stores, as pure functions over bytes.
//!
//! Integers are big-endian; a "varint" is Kafka's zig-zag LEB128 (`ByteUtils.writeVarint`). Every layout is compared
//! with bytes that the Java classes wrote (`golden_tests.rs`), and no decoder panics on any input. Encoders append to
//! `out`; an encoder that fails may leave a part of its output there.

mod buffer;
mod change;
mod commit_metadata;
mod foreign_key;
#[cfg(test)]
mod golden_tests;
mod headers;
mod io;
mod join;
mod list;
mod position;
#[cfg(test)]
mod property_tests;
pub(crate) mod record_size;
mod value;

pub use buffer::{BufferedValue, RecordContext, SUPPRESS_VERSION_HEADER, SUPPRESS_VERSION_VALUE};
pub use change::{ChangeBytes, decode_change, encode_change};
pub use commit_metadata::CommitMetadata;
pub use foreign_key::{
    Instruction, Subscription, SubscriptionResponse, combined_key, combined_key_prefix, split_combined_key,
};
pub use headers::{decode_headers, encode_headers};
pub use io::CodecError;
pub use join::{JoinSide, TimestampedSideKey, decode_side_value, encode_side_value};
pub use list::{ListEncoding, decode_list, encode_list};
pub use position::Position;
pub use streams_state::codec::{session_key::SessionKey, window_key::WindowKey};
pub use value::{
    decode_headers_session, decode_headers_value, decode_timestamped, encode_headers_session, encode_headers_value,
    encode_timestamped,
};
