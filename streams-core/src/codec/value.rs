//! Values in stores, with their time and headers. On topics the plain value travels; time and headers are the record's.

use super::headers::{decode_sized_headers, encode_sized_headers};
use super::io::{CodecError, Reader};
use crate::Headers;

/// Appends a value with its time (ms since the Unix epoch): 8 bytes of time, the value (`ValueAndTimestampSerializer`).
///
/// ```
/// let mut bytes = Vec::new();
/// streams_core::codec::encode_timestamped(1, b"v", &mut bytes);
/// assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 1, b'v']);
/// ```
pub fn encode_timestamped(timestamp_ms: i64, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&timestamp_ms.to_be_bytes());
    out.extend_from_slice(value);
}

/// Reads a value's time (ms; −1 = unknown, a value from a store without times) and the value.
///
/// # Errors
/// When there are fewer than 8 bytes.
pub fn decode_timestamped(bytes: &[u8]) -> Result<(i64, &[u8]), CodecError> {
    let mut reader = Reader::new("timestamped value", bytes);
    Ok((reader.i64()?, reader.rest()))
}

/// Appends a value with headers and time: varint size of the headers, headers, 8 bytes of time, the value
/// (`ValueTimestampHeadersSerializer`, KIP-1271).
///
/// # Errors
/// When the headers are longer than the format allows.
pub fn encode_headers_value(
    headers: &Headers,
    timestamp_ms: i64,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    encode_sized_headers(headers, out)?;
    encode_timestamped(timestamp_ms, value, out);
    Ok(())
}

/// Reads headers, time (ms) and value.
///
/// # Errors
/// When the bytes end early or the headers do not read.
pub fn decode_headers_value(bytes: &[u8]) -> Result<(Headers, i64, &[u8]), CodecError> {
    let mut reader = Reader::new("value with headers", bytes);
    let headers = decode_sized_headers(&mut reader)?;
    Ok((headers, reader.i64()?, reader.rest()))
}

/// Appends a session's aggregate with headers: varint size of the headers, headers, the aggregate, no time
/// (`AggregationWithHeadersSerializer`).
///
/// # Errors
/// When the headers are longer than the format allows.
pub fn encode_headers_session(headers: &Headers, aggregate: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    encode_sized_headers(headers, out)?;
    out.extend_from_slice(aggregate);
    Ok(())
}

/// Reads headers and a session's aggregate.
///
/// # Errors
/// When the bytes end early or the headers do not read.
pub fn decode_headers_session(bytes: &[u8]) -> Result<(Headers, &[u8]), CodecError> {
    let mut reader = Reader::new("session with headers", bytes);
    let headers = decode_sized_headers(&mut reader)?;
    Ok((headers, reader.rest()))
}
