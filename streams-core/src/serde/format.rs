//! Names of byte forms, for who compares two versions of a program (`topology::TopologyLock`).

use std::any::type_name;

use super::Serde;

/// What a key or a value is: the name of its byte form, and that of its Rust type. The first is a contract with what lies
/// in topics and stores, the second is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The byte form, as [`Serde::format`] tells it.
    pub format: String,
    /// The type, without the paths of its modules.
    pub type_name: String,
}

impl Format {
    /// What a serde makes of `T`.
    #[must_use]
    pub fn of<T>(serde: &(impl Serde<T> + ?Sized)) -> Self {
        Format {
            format: serde.format(),
            type_name: short_type_name::<T>(),
        }
    }
}

/// The name of a type without the paths of its modules, so that moving a type is no change:
///
/// ```
/// use streams_core::serde::short_type_name;
/// assert_eq!(short_type_name::<Option<Vec<std::time::Duration>>>(), "Option<Vec<Duration>>");
/// ```
#[must_use]
pub fn short_type_name<T: ?Sized>() -> String {
    let name = type_name::<T>();
    let mut short = String::with_capacity(name.len());
    let mut word = String::new();
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ':' if chars.peek() == Some(&':') => {
                chars.next();
                word.clear();
            }
            c if c.is_alphanumeric() || c == '_' => word.push(c),
            c => {
                short.push_str(&word);
                word.clear();
                short.push(c);
            }
        }
    }
    short + &word
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{ChangeSerde, DefaultSerde, Json, List, Long, SessionWindowed, TimeWindowed, Utf8};
    use super::*;
    use crate::{Change, Windowed};

    fn of<T: DefaultSerde>() -> Format {
        Format::of(&*T::shared())
    }

    #[test]
    fn a_format_names_the_bytes_and_not_the_type() {
        assert_eq!(of::<String>().format, "string");
        assert_eq!(of::<Arc<str>>().format, "string");
        assert_eq!(of::<Option<i64>>().format, "long");
        assert_eq!(of::<Windowed<String>>().format, "time-windowed(string)");
        assert_eq!(
            Serde::<Windowed<String>>::format(&SessionWindowed(Utf8)),
            "session-windowed(string)"
        );
        assert_eq!(Serde::<Change<i64>>::format(&ChangeSerde(Long)), "change(long)");
        assert_eq!(Serde::<Vec<i64>>::format(&List(Long)), "list(long)");
        assert_eq!(Serde::<Vec<u8>>::format(&Json::<Vec<u8>>::new()), "json");
        assert_eq!(
            Serde::<Windowed<String>>::format(&TimeWindowed::of_size(Utf8, 5)),
            Serde::<Windowed<String>>::format(&TimeWindowed::<Utf8>::default())
        );
    }

    #[test]
    fn a_serde_of_ones_own_is_named_by_its_type_and_can_say_more() {
        struct Plain;
        struct Versioned;
        macro_rules! serde_of_units {
            ($serde:ident { $($format:item)? }) => {
                impl Serde<()> for $serde {
                    fn serialize(&self, _: &str, (): &(), _: &mut Vec<u8>) -> Result<bool, super::super::SerdeError> {
                        Ok(true)
                    }
                    fn deserialize(&self, _: &str, _: Option<&[u8]>) -> Result<(), super::super::SerdeError> {
                        Ok(())
                    }
                    $($format)?
                }
            };
        }
        serde_of_units!(Plain {});
        serde_of_units!(Versioned {
            fn format(&self) -> String {
                "avro 7f3a".to_owned()
            }
        });
        let shared: super::super::SharedSerde<()> = Arc::new(Arc::new(Versioned));
        assert_eq!(
            (Serde::<()>::format(&Plain).as_str(), shared.format().as_str()),
            ("Plain", "avro 7f3a")
        );
    }
}
