//! What has a form on the wire, and what can be wrong with received bytes.
//!
//! Source: the protocol guide's "Protocol Primitive Types", KIP-482 (flexible versions).

pub use super::reader::Reader;
pub use super::writer::Writer;

/// Why received bytes are not the message they should be.
///
/// None of these can be mended by asking again on the same connection: the connection is closed and opened anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end inside a field.
    #[error("message is cut short: {needed} bytes needed at byte {at}, {left} left")]
    Truncated {
        /// Position of the field.
        at: usize,
        /// Bytes the field needs.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// A length or a flag has a value that the format does not know.
    #[error("message has an impossible {what} ({value}) at byte {at}")]
    Impossible {
        /// The field.
        what: &'static str,
        /// What was read.
        value: i64,
        /// Position of the field.
        at: usize,
    },
    /// A string is not UTF-8.
    #[error("message has a string that is not UTF-8 at byte {at}")]
    NotUtf8 {
        /// Position of the string.
        at: usize,
    },
    /// Bytes are left over behind the message.
    #[error("message has {left} bytes more than its format")]
    LeftOver {
        /// Number of bytes.
        left: usize,
    },
    /// The answer belongs to another request.
    #[error("answer has correlation id {got} where {expected} was asked")]
    Correlation {
        /// The id that was sent.
        expected: i32,
        /// The id that came.
        got: i32,
    },
}

/// A value with one form on the wire, whatever the message version.
pub trait Wire: Sized {
    /// Appends the value.
    fn write(&self, out: &mut Writer);

    /// Reads the value.
    ///
    /// # Errors
    /// [`WireError`] when the bytes are not such a value.
    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError>;
}

impl Wire for String {
    fn write(&self, out: &mut Writer) {
        out.string(self);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        bytes.string()
    }
}

impl Wire for i32 {
    fn write(&self, out: &mut Writer) {
        out.i32(*self);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        bytes.i32()
    }
}

impl Wire for i16 {
    fn write(&self, out: &mut Writer) {
        out.i16(*self);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        bytes.i16()
    }
}
