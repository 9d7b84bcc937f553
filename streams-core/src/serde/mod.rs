//! Serdes: how keys and values become bytes. The byte form is a public contract, so a type names it in one line.

mod change;
mod format;
mod json;
mod list;
mod option;
mod parts;
mod primitives;
mod shared;
#[cfg(test)]
mod tests;
mod windowed;

use std::sync::Arc;

pub use change::ChangeSerde;
pub use format::{Format, short_type_name};
pub use json::Json;
pub use list::List;
pub use option::OptionSerde;
pub use parts::{Part, PartOfKey, PartOfValue, Parts, PartsList};
pub use primitives::{Boolean, Bytes, Double, Float, Integer, Long, Short, Utf8, UuidText, Void};
pub use windowed::{SessionWindowed, TimeWindowed};

/// Why bytes could not be read, or a value not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SerdeError {
    /// A null met a type that has none.
    #[error(
        "the {what} is null, but `{type_name}` cannot be null: read it as `Option<{type_name}>`, or let the deserialization handler skip it"
    )]
    Null {
        /// `key` or `value`, filled in by the caller where it is known.
        what: &'static str,
        /// The Rust type that was wanted.
        type_name: &'static str,
    },
    /// The bytes have a length that the type cannot have.
    #[error("{type_name} takes {expected} bytes, got {actual}")]
    Length {
        /// The Rust type that was wanted.
        type_name: &'static str,
        /// How many bytes it takes.
        expected: usize,
        /// How many there were.
        actual: usize,
    },
    /// The bytes do not decode, or the value does not encode.
    #[error("cannot convert {type_name}: {message}")]
    Convert {
        /// The Rust type that was wanted.
        type_name: &'static str,
        /// What the format said.
        message: String,
    },
}

/// Turns values of `T` into bytes and back. Stateless from the outside and shared by all threads.
///
/// Java counterpart: `org.apache.kafka.common.serialization.Serde`.
pub trait Serde<T>: Send + Sync + 'static {
    /// Appends the byte form of `value` to `out` and answers true, or answers false for a null (nothing is appended).
    ///
    /// # Errors
    /// When the value has no byte form.
    fn serialize(&self, topic: &str, value: &T, out: &mut Vec<u8>) -> Result<bool, SerdeError>;

    /// Reads a value from borrowed bytes; `None` is Kafka's null.
    ///
    /// # Errors
    /// When the bytes are not a `T`, or are null and `T` has no null.
    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<T, SerdeError>;

    /// As [`deserialize`](Self::deserialize), into a value that is there already: what it holds is overwritten, and a
    /// serde may keep its memory. A source reads records one after the other into the same key and value, so text and
    /// bytes cost no allocation a record. After an error `into` is some value of `T`, and is thrown away.
    ///
    /// # Errors
    /// As [`deserialize`](Self::deserialize).
    fn deserialize_into(&self, topic: &str, bytes: Option<&[u8]>, into: &mut T) -> Result<(), SerdeError> {
        *into = self.deserialize(topic, bytes)?;
        Ok(())
    }

    /// Whether this value is a null on the wire (then stream aggregations drop it, as Java does).
    fn is_null(&self, _value: &T) -> bool {
        false
    }

    /// The inner key's bytes of a windowed key, by which its partition is chosen
    /// (Java: `WindowedStreamPartitioner`); the whole key otherwise.
    fn partition_bytes<'b>(&self, serialized: &'b [u8]) -> &'b [u8] {
        serialized
    }

    /// How many bytes an element of a list takes, if they are always as many. Lists of such elements are packed
    /// (Java knows them by class: short, integer, long, float, double, UUID).
    fn list_element_size(&self) -> Option<usize> {
        None
    }

    /// The name of the byte form: two serdes with one name read each other's bytes. A lockfile
    /// ([`TopologyLock`](crate::topology::TopologyLock)) compares it between versions of a program.
    ///
    /// The default is the name of the serde's type. A serde with a schema says more (`avro 7f3a`, a fingerprint), so that
    /// a change of the schema shows too; [`Json`] does not, as it can't see the fields.
    fn format(&self) -> String {
        short_type_name::<Self>()
    }
}

/// A shared serde behind a pointer, as nodes hold it.
pub type SharedSerde<T> = Arc<dyn Serde<T>>;

/// The serde that a type uses unless another one is passed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no default serde",
    label = "this type cannot be written to a topic",
    note = "for a type of yours: `impl DefaultSerde for {Self} {{ type Serde = Json<Self>; }}`",
    note = "for others: make an owned value of a type that has one (`String`, integers, `Vec<u8>`), or pass one with a `…_with` method"
)]
pub trait DefaultSerde: Sized + 'static {
    /// The serde.
    type Serde: Serde<Self> + Default;

    /// The serde, shared.
    fn shared() -> SharedSerde<Self> {
        Arc::new(Self::Serde::default())
    }
}
