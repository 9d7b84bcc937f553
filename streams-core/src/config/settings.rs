//! Values of settings: how they read from text and print.

use std::path::PathBuf;

use crate::metrics::RecordingLevel;

/// What a crash may do to the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ProcessingGuarantee {
    /// Each record counts once, in state and outputs, for readers of committed data.
    #[default]
    ExactlyOnceV2,
    /// A crash loses no record and may repeat those since the last commit. Outputs are visible at once.
    AtLeastOnce,
    /// A crash repeats no record and may lose those that were claimed last, in outputs and state. Ours; each hop through a
    /// repartition topic may lose some.
    AtMostOnce,
}

/// How the members of an application share the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum GroupProtocol {
    /// The best one that the broker and this library have in common.
    #[default]
    Auto,
    /// Streams groups (KIP-1071).
    Streams,
    /// Classic consumer groups.
    Classic,
    /// Consumer groups of KIP-848.
    Consumer,
}

/// What to do with a record that fails, unless a handler is given in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnError {
    /// Stop at it (Java: `LogAndFail…`).
    #[default]
    Fail,
    /// Leave it out, count it and go on (Java: `LogAndContinue…`).
    Continue,
}

/// Where to begin in an input partition without a committed offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OffsetReset {
    /// At the oldest record.
    #[default]
    Earliest,
    /// Behind the newest record.
    Latest,
    /// Nowhere: stop and say so.
    None,
}

/// A value that has a text form.
pub(super) trait Setting: Sized {
    fn from_text(text: &str) -> Result<Self, String>;
    fn to_text(&self) -> String;
}

macro_rules! parsed {
    ($($type:ty: $what:literal),*) => {$(
        impl Setting for $type {
            fn from_text(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| format!("`{text}` is not {}", $what))
            }

            fn to_text(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

parsed!(i32: "a 32-bit integer", i64: "a 64-bit integer", String: "text");

impl Setting for bool {
    fn from_text(text: &str) -> Result<Self, String> {
        one_of(text, &[("true", true), ("false", false)])
    }

    fn to_text(&self) -> String {
        self.to_string()
    }
}

impl Setting for PathBuf {
    fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            Err("a path is not empty".to_owned())
        } else {
            Ok(PathBuf::from(text))
        }
    }

    fn to_text(&self) -> String {
        self.display().to_string()
    }
}

impl<T: Setting> Setting for Option<T> {
    fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() || text == "null" {
            Ok(None)
        } else {
            T::from_text(text).map(Some)
        }
    }

    fn to_text(&self) -> String {
        self.as_ref().map_or_else(|| "null".to_owned(), T::to_text)
    }
}

/// The value of a name, whatever its case.
fn one_of<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    choices
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text))
        .map(|(_, value)| *value)
        .ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            format!("`{text}` is none of {}", names.join(", "))
        })
}

fn name_of<T: PartialEq>(value: &T, choices: &[(&str, T)]) -> String {
    choices
        .iter()
        .find(|(_, choice)| choice == value)
        .map(|(name, _)| (*name).to_owned())
        .unwrap_or_default()
}

macro_rules! named {
    ($($type:ty: [$(($name:literal, $value:expr)),* $(,)?];)*) => {$(
        impl Setting for $type {
            fn from_text(text: &str) -> Result<Self, String> {
                one_of(text, &[$(($name, $value)),*])
            }

            fn to_text(&self) -> String {
                name_of(self, &[$(($name, $value)),*])
            }
        }
    )*};
}

named! {
    RecordingLevel: [
        ("INFO", RecordingLevel::Info),
        ("DEBUG", RecordingLevel::Debug),
        ("TRACE", RecordingLevel::Trace),
    ];
    ProcessingGuarantee: [
        ("exactly_once_v2", ProcessingGuarantee::ExactlyOnceV2),
        ("at_least_once", ProcessingGuarantee::AtLeastOnce),
        ("at_most_once", ProcessingGuarantee::AtMostOnce),
    ];
    GroupProtocol: [
        ("auto", GroupProtocol::Auto),
        ("streams", GroupProtocol::Streams),
        ("classic", GroupProtocol::Classic),
        ("consumer", GroupProtocol::Consumer),
    ];
    OffsetReset: [("earliest", OffsetReset::Earliest), ("latest", OffsetReset::Latest), ("none", OffsetReset::None)];
}

/// Java names handlers by class; its own ones are known by the ends of their names.
impl Setting for OnError {
    fn from_text(text: &str) -> Result<Self, String> {
        let class = text.rsplit(['.', '$']).next().unwrap_or(text);
        match class {
            "LogAndFailExceptionHandler"
            | "LogAndFailProcessingExceptionHandler"
            | "DefaultProductionExceptionHandler" => Ok(OnError::Fail),
            "LogAndContinueExceptionHandler" | "LogAndContinueProcessingExceptionHandler" => Ok(OnError::Continue),
            _ => Err(format!("`{text}` is not a handler known here: give your own in code")),
        }
    }

    fn to_text(&self) -> String {
        match self {
            OnError::Fail => "LogAndFailExceptionHandler",
            OnError::Continue => "LogAndContinueExceptionHandler",
        }
        .to_owned()
    }
}
