//! The byte forms of Java's `Serdes` for plain types (`org.apache.kafka.common.serialization`).

use std::any::type_name;
use std::sync::Arc;

use super::{DefaultSerde, Serde, SerdeError};

/// The error for a null that met a type without one.
pub(super) fn null_of<T>() -> SerdeError {
    SerdeError::Null {
        what: "data",
        type_name: type_name::<T>(),
    }
}

/// The error for bytes or a value that do not convert.
pub(super) fn convert_error<T>(cause: impl ToString) -> SerdeError {
    SerdeError::Convert {
        type_name: type_name::<T>(),
        message: cause.to_string(),
    }
}

fn fixed<T, const N: usize>(bytes: Option<&[u8]>) -> Result<[u8; N], SerdeError> {
    let bytes = bytes.ok_or_else(null_of::<T>)?;
    bytes.try_into().map_err(|_| SerdeError::Length {
        type_name: type_name::<T>(),
        expected: N,
        actual: bytes.len(),
    })
}

/// The name of a byte form, which is that of Java's `Serdes`.
macro_rules! format_name {
    ($name:expr) => {
        fn format(&self) -> String {
            $name.to_owned()
        }
    };
}

macro_rules! big_endian {
    ($($(#[$doc:meta])* $serde:ident: $type:ty, $size:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $serde;

        impl Serde<$type> for $serde {
            fn serialize(&self, _topic: &str, value: &$type, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
                out.extend_from_slice(&value.to_be_bytes());
                Ok(true)
            }

            fn deserialize(&self, _topic: &str, bytes: Option<&[u8]>) -> Result<$type, SerdeError> {
                fixed::<$type, $size>(bytes).map(<$type>::from_be_bytes)
            }

            fn list_element_size(&self) -> Option<usize> {
                Some($size)
            }

            format_name!(stringify!($serde).to_ascii_lowercase());
        }

        impl DefaultSerde for $type {
            type Serde = $serde;
        }
    )*};
}

big_endian! {
    /// `i16` as two bytes, big-endian (`ShortSerializer`).
    Short: i16, 2;
    /// `i32` as four bytes, big-endian (`IntegerSerializer`).
    Integer: i32, 4;
    /// `i64` as eight bytes, big-endian (`LongSerializer`).
    Long: i64, 8;
    /// `f32` as its four IEEE bytes, big-endian (`FloatSerializer`).
    Float: f32, 4;
    /// `f64` as its eight IEEE bytes, big-endian (`DoubleSerializer`).
    Double: f64, 8;
}

/// `bool` as one byte, 1 or 0 (`BooleanSerializer`). Any other byte is refused, as in Java.
#[derive(Clone, Copy, Debug, Default)]
pub struct Boolean;

impl Serde<bool> for Boolean {
    fn serialize(&self, _topic: &str, value: &bool, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        out.push(u8::from(*value));
        Ok(true)
    }

    fn deserialize(&self, _topic: &str, bytes: Option<&[u8]>) -> Result<bool, SerdeError> {
        match fixed::<bool, 1>(bytes)? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(convert_error::<bool>(format!("byte {other} is neither 0 nor 1"))),
        }
    }

    format_name!("boolean");
}

impl DefaultSerde for bool {
    type Serde = Boolean;
}

/// Text as UTF-8 (`StringSerializer`), for `String` and `Arc<str>`.
///
/// Bytes that are not UTF-8 are refused. Java reads them with replacement characters, which loses the bytes unseen.
///
/// ```
/// use streams_core::serde::{Serde, Utf8};
/// let text: String = Utf8.deserialize("topic", Some("héllo".as_bytes()))?;
/// assert_eq!(text, "héllo");
/// # Ok::<(), streams_core::SerdeError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Utf8;

fn utf8<T>(bytes: Option<&[u8]>) -> Result<&str, SerdeError> {
    std::str::from_utf8(bytes.ok_or_else(null_of::<T>)?).map_err(convert_error::<T>)
}

/// Raw bytes (`ByteArraySerializer`, `BytesSerializer`), for `Vec<u8>` and `Arc<[u8]>`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes;

/// Overwrites text and keeps its memory, unless what it held before was far larger.
fn refill_text(text: &mut String, bytes: Option<&[u8]>) -> Result<(), SerdeError> {
    let new = utf8::<String>(bytes)?;
    text.clear();
    text.shrink_to(kept(new.len()));
    text.push_str(new);
    Ok(())
}

/// Overwrites bytes and keeps their memory, as [`refill_text`].
fn refill_bytes(held: &mut Vec<u8>, bytes: Option<&[u8]>) -> Result<(), SerdeError> {
    let new = bytes.ok_or_else(null_of::<Vec<u8>>)?;
    held.clear();
    held.shrink_to(kept(new.len()));
    held.extend_from_slice(new);
    Ok(())
}

/// One huge record must not hold its memory for ever.
fn kept(len: usize) -> usize {
    len.max(64 * 1024)
}

macro_rules! as_is {
    ($($type:ty, $serde:ident, $format:literal, $bytes:expr, $read:expr, $refill:expr;)*) => {$(
        impl Serde<$type> for $serde {
            fn serialize(&self, _topic: &str, value: &$type, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
                let bytes: fn(&$type) -> &[u8] = $bytes;
                out.extend_from_slice(bytes(value));
                Ok(true)
            }

            fn deserialize(&self, _topic: &str, bytes: Option<&[u8]>) -> Result<$type, SerdeError> {
                let read: fn(Option<&[u8]>) -> Result<$type, SerdeError> = $read;
                read(bytes)
            }

            fn deserialize_into(
                &self,
                _topic: &str,
                bytes: Option<&[u8]>,
                into: &mut $type,
            ) -> Result<(), SerdeError> {
                let refill: fn(&mut $type, Option<&[u8]>) -> Result<(), SerdeError> = $refill;
                refill(into, bytes)
            }

            format_name!($format);
        }

        impl DefaultSerde for $type {
            type Serde = $serde;
        }
    )*};
}

fn read_text(bytes: Option<&[u8]>) -> Result<Arc<str>, SerdeError> {
    utf8::<Arc<str>>(bytes).map(Arc::from)
}

fn read_bytes(bytes: Option<&[u8]>) -> Result<Arc<[u8]>, SerdeError> {
    bytes.map(Arc::from).ok_or_else(null_of::<Arc<[u8]>>)
}

as_is! {
    String, Utf8, "string", |text| text.as_bytes(), |bytes| utf8::<String>(bytes).map(str::to_owned), refill_text;
    Arc<str>, Utf8, "string", |text| text.as_bytes(), read_text, |into, bytes| read_text(bytes).map(|new| *into = new);
    Vec<u8>, Bytes, "bytes", |bytes| bytes, |bytes| bytes.map(<[u8]>::to_vec).ok_or_else(null_of::<Vec<u8>>), refill_bytes;
    Arc<[u8]>, Bytes, "bytes", |bytes| bytes, read_bytes, |into, bytes| read_bytes(bytes).map(|new| *into = new);
}

/// A UUID as its 36 characters of text (`UUIDSerializer`), not as 16 bytes.
///
/// Only the 36-character form reads back; Java also takes shorter groups, which it never writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct UuidText;

impl Serde<uuid::Uuid> for UuidText {
    fn serialize(&self, _topic: &str, value: &uuid::Uuid, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        let mut text = uuid::Uuid::encode_buffer();
        out.extend_from_slice(value.hyphenated().encode_lower(&mut text).as_bytes());
        Ok(true)
    }

    fn deserialize(&self, _topic: &str, bytes: Option<&[u8]>) -> Result<uuid::Uuid, SerdeError> {
        let text: [u8; 36] = fixed::<uuid::Uuid, 36>(bytes)?;
        // The parser's own text quotes the data.
        uuid::Uuid::try_parse_ascii(&text).map_err(|_| convert_error::<uuid::Uuid>("the text is no UUID"))
    }

    fn list_element_size(&self) -> Option<usize> {
        Some(36)
    }

    format_name!("uuid");
}

impl DefaultSerde for uuid::Uuid {
    type Serde = UuidText;
}

/// Nothing, which is a null on the wire (`VoidSerializer`). Any bytes, even none of them, are refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Void;

impl Serde<()> for Void {
    fn serialize(&self, _topic: &str, (): &(), _out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        Ok(false)
    }

    fn deserialize(&self, _topic: &str, bytes: Option<&[u8]>) -> Result<(), SerdeError> {
        bytes.map_or(Ok(()), |bytes| {
            Err(convert_error::<()>(format!("expected null, got {} bytes", bytes.len())))
        })
    }

    fn is_null(&self, (): &()) -> bool {
        true
    }

    format_name!("void");
}

impl DefaultSerde for () {
    type Serde = Void;
}
