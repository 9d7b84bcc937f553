//! What the files of a process's directory are read from.

use super::files::{holder, marked_format, marker_text};
use super::identity::IdentityFile;
use crate::fuzzing::law;

pub(crate) fn identity(bytes: &[u8]) -> Result<(), String> {
    let Some(file) = text(bytes).and_then(|text| IdentityFile::decode(text).ok()) else {
        return Ok(());
    };
    let written = file.encode().map_err(|error| error.to_string())?;
    let again = text(&written).and_then(|text| IdentityFile::decode(text).ok());
    law(again == Some(file), "an identity is read back as it was")
}

pub(crate) fn identity_seeds() -> Vec<Vec<u8>> {
    IdentityFile::example().encode().into_iter().collect()
}

pub(crate) fn marker(bytes: &[u8]) -> Result<(), String> {
    let Some(format) = text(bytes).and_then(marked_format) else {
        return Ok(());
    };
    let again = marked_format(&marker_text(format));
    law(again == Some(format), "a format marker is read back as it was")
}

pub(crate) fn marker_seeds() -> Vec<Vec<u8>> {
    [1, u32::MAX].map(|format| marker_text(format).into_bytes()).into()
}

pub(crate) fn lock(mut bytes: &[u8]) -> Result<(), String> {
    let name = holder(&mut bytes);
    law(
        !name.is_empty() && !name.contains('\n'),
        "who holds a lock is one line of text",
    )
}

pub(crate) fn lock_seeds() -> Vec<Vec<u8>> {
    vec![b"process 4711 on host-1\n".to_vec(), Vec::new()]
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
