//! JSON by the `serde` crate.

use std::any::type_name;
use std::marker::PhantomData;

use ::serde::Serialize;
use ::serde::de::DeserializeOwned;

use super::primitives::{convert_error, null_of};
use super::{Serde, SerdeError};

/// Any type that derives `Serialize` and `Deserialize`, as compact JSON text.
///
/// Keys must serialize the same way every time, because bytes decide the partition: a struct does, a `HashMap` in a
/// key does not. There is no Java counterpart in Kafka itself; the bytes are what its JSON serdes read.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use streams_core::serde::{DefaultSerde, Json, Serde};
/// #[derive(Serialize, Deserialize, PartialEq, Debug)]
/// struct Usage { project: String, bytes: u64 }
/// impl DefaultSerde for Usage { type Serde = Json<Self>; }
///
/// let usage = Usage::shared().deserialize("usage", Some(br#"{"project":"a","bytes":7}"#))?;
/// assert_eq!(usage, Usage { project: "a".into(), bytes: 7 });
/// # Ok::<(), streams_core::SerdeError>(())
/// ```
pub struct Json<T>(PhantomData<fn() -> T>);

impl<T> Json<T> {
    /// The JSON serde of `T`.
    #[must_use]
    pub fn new() -> Self {
        Json(PhantomData)
    }
}

impl<T> Default for Json<T> {
    fn default() -> Self {
        Json::new()
    }
}

impl<T> Clone for Json<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Json<T> {}

impl<T> std::fmt::Debug for Json<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Json<{}>", type_name::<T>())
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Serde<T> for Json<T> {
    fn serialize(&self, _topic: &str, value: &T, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        let before = out.len();
        serde_json::to_writer(&mut *out, value).map_err(|cause| {
            out.truncate(before);
            convert_error::<T>(cause)
        })?;
        Ok(true)
    }

    fn deserialize(&self, _topic: &str, bytes: Option<&[u8]>) -> Result<T, SerdeError> {
        serde_json::from_slice(bytes.ok_or_else(null_of::<T>)?).map_err(convert_error::<T>)
    }
}
