//! JSON by the `serde` crate.

use std::any::type_name;
use std::marker::PhantomData;

use ::serde::Serialize;
use ::serde::de::DeserializeOwned;
use serde_json::error::Category;

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
        serde_json::from_slice(bytes.ok_or_else(null_of::<T>)?).map_err(read_error::<T>)
    }

    fn format(&self) -> String {
        "json".to_owned()
    }
}

/// serde_json quotes the data it does not like (`invalid type: string "…"`), and errors end in logs: what is kept says
/// what was expected, and where.
fn read_error<T>(cause: serde_json::Error) -> SerdeError {
    let text = cause.to_string();
    // Names of missing fields are the type's. What follows the last "expected" of these two is too; the data stands before.
    let known = match text.split_once(':').map(|(kind, _)| kind) {
        Some("invalid type" | "invalid value") => text.rsplit_once(", expected ").map(|(_, expected)| expected),
        _ if text.starts_with("missing field ") => Some(text.as_str()),
        _ => None,
    };
    let place = format!(" at line {} column {}", cause.line(), cause.column());
    let what = match (cause.classify(), known) {
        (_, Some(known)) if known == text => known.trim_end_matches(&place).to_owned(),
        (_, Some(expected)) => format!("expected {}", expected.trim_end_matches(&place)),
        (Category::Eof, None) => "the JSON text ends too early".to_owned(),
        (Category::Data, None) => "the JSON has another shape".to_owned(),
        (Category::Syntax | Category::Io, None) => "the text is no JSON".to_owned(),
    };
    convert_error::<T>(format!("{what}{place}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[derive(::serde::Serialize, ::serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Usage {
        project: i64,
    }

    fn error(text: &str) -> String {
        Json::<Usage>::new()
            .deserialize("t", Some(text.as_bytes()))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn an_error_says_what_was_expected_and_where_but_shows_no_data() {
        let cases = [
            (r#"{"project":"secret"}"#, "expected i64 at line 1 column 19"),
            (
                r#"{"project":"secret, expected secret"}"#,
                "expected i64 at line 1 column",
            ),
            (r#""secret""#, "expected struct Usage at line 1"),
            (r#"{"secret":1}"#, "another shape"),
            ("{}", "missing field `project`"),
            ("{secret", "no JSON"),
            (r#"{"secret"#, "ends too early"),
        ];
        for (text, expected) in cases {
            let error = error(text);
            assert!(error.contains(expected) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
