//! A small codec for the requests that group membership needs; all other traffic goes through librdkafka, which does not
//! know streams groups.
//!
//! | request | key | versions |
//! |---|---|---|
//! | ApiVersions | 18 | 0, 3 |
//! | FindCoordinator | 10 | 4 |
//! | OffsetCommit | 8 | 9 |
//! | StreamsGroupHeartbeat | 88 | 0, 1 |
//! | StreamsGroupDescribe | 89 | 0, 1 |
//!
//! Source: the message definitions of Kafka 4.4 (`common/message/*.json`), KIP-482, KIP-1071; the tests hold frames that a
//! 4.4 broker and its Java client exchanged.

pub mod api_versions;
pub mod coordinator;
pub mod describe;
pub mod heartbeat;
pub mod offset_commit;
mod reader;
pub mod structs;
pub mod wire;
mod writer;

#[cfg(test)]
mod tests;

use wire::{Reader, WireError, Writer};

/// A request: which one it is and how its answer is read.
pub trait Request {
    /// What the broker answers.
    type Response;
    /// Key of the request.
    const API_KEY: i16;

    /// Whether the answer's header ends with tagged fields (header v1). ApiVersions never has them (KIP-511).
    const TAGS_IN_RESPONSE_HEADER: bool = true;

    /// Whether the request of `version` has the header with tagged fields (header v2).
    fn flexible(_version: i16) -> bool {
        true
    }

    /// Writes the body.
    fn write(&self, version: i16, out: &mut Writer);

    /// Reads the body of the answer.
    ///
    /// # Errors
    /// [`WireError`] when the bytes are not such an answer.
    fn read_response(version: i16, bytes: &mut Reader<'_>) -> Result<Self::Response, WireError>;
}

/// The whole frame of a request, its int32 length in front.
///
/// # Example
/// ```
/// use streams_core::membership::codec::{api_versions::ApiVersionsRequest, encode_request};
/// let frame = encode_request(&ApiVersionsRequest, 0, 7, "me");
/// assert_eq!(frame, [0, 0, 0, 12, 0, 18, 0, 0, 0, 0, 0, 7, 0, 2, b'm', b'e']);
/// ```
pub fn encode_request<R: Request>(request: &R, version: i16, correlation_id: i32, client_id: &str) -> Vec<u8> {
    let mut body = Writer::new();
    body.i16(R::API_KEY);
    body.i16(version);
    body.i32(correlation_id);
    // The client id keeps the old form of a string in every header version.
    body.short_string(client_id);
    if R::flexible(version) {
        body.no_tags();
    }
    request.write(version, &mut body);
    let body = body.into_bytes();
    let mut frame = Writer::new();
    frame.i32(i32::try_from(body.len()).unwrap_or(i32::MAX));
    frame.raw(&body);
    frame.into_bytes()
}

/// Reads an answer from its frame, the length already taken off.
///
/// # Errors
/// [`WireError`] when it is not the answer to the request `correlation_id` of this version.
pub fn decode_response<R: Request>(version: i16, correlation_id: i32, frame: &[u8]) -> Result<R::Response, WireError> {
    let mut bytes = Reader::new(frame);
    let got = bytes.i32()?;
    if got != correlation_id {
        return Err(WireError::Correlation {
            expected: correlation_id,
            got,
        });
    }
    if R::TAGS_IN_RESPONSE_HEADER {
        bytes.skip_tags()?;
    }
    let response = R::read_response(version, &mut bytes)?;
    bytes.end()?;
    Ok(response)
}
