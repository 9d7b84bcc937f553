//! Java's list format (`ListSerializer`), also the value of a list-valued store (`ListValueStore`).

use super::io::{CodecError, Reader, invalid, length_i32, put_nullable};

const WHAT: &str = "list";

/// How the elements of a list stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListEncoding {
    /// `00 ++ nulls4 ++ {index4}* ++ count4 ++ elements`: all of this many bytes, nulls left out.
    Fixed(usize),
    /// `01 ++ count4 ++ {length4 element}*`, length −1 for null.
    Variable,
}

/// Appends a list; `None` is a null element.
///
/// # Errors
/// When there are too many elements for the format, or an element of a fixed-size list has another size.
pub fn encode_list<'a>(
    encoding: ListEncoding,
    elements: impl IntoIterator<Item = Option<&'a [u8]>>,
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let elements: Vec<_> = elements.into_iter().collect();
    let count = length_i32(WHAT, elements.len())?.to_be_bytes();
    match encoding {
        ListEncoding::Variable => {
            out.push(1);
            out.extend_from_slice(&count);
            elements
                .into_iter()
                .try_for_each(|element| put_nullable(WHAT, element, out))
        }
        ListEncoding::Fixed(size) => {
            out.push(0);
            let nulls = (0i32..)
                .zip(&elements)
                .filter(|(_, element)| element.is_none())
                .map(|(index, _)| index);
            let nulls: Vec<i32> = nulls.collect();
            out.extend_from_slice(&length_i32(WHAT, nulls.len())?.to_be_bytes());
            nulls
                .iter()
                .for_each(|index| out.extend_from_slice(&index.to_be_bytes()));
            out.extend_from_slice(&count);
            for element in elements.into_iter().flatten() {
                if element.len() != size {
                    return Err(invalid(
                        WHAT,
                        format!("an element of {} bytes where each has {size}", element.len()),
                    ));
                }
                out.extend_from_slice(element);
            }
            Ok(())
        }
    }
}

/// Reads a list; `None` is a null element.
///
/// # Errors
/// When the list is of the other encoding, ends early, or something is left over.
pub fn decode_list(encoding: ListEncoding, bytes: &[u8]) -> Result<Vec<Option<&[u8]>>, CodecError> {
    let mut reader = Reader::new(WHAT, bytes);
    let elements = match (reader.u8()?, encoding) {
        (0, ListEncoding::Fixed(size)) => fixed_elements(&mut reader, size)?,
        (1, ListEncoding::Variable) => {
            let count = reader.i32()?;
            let count = reader.length(count)?;
            let mut elements = Vec::with_capacity(reader.capacity(count, 4));
            for _ in 0..count {
                elements.push(reader.nullable()?);
            }
            elements
        }
        (strategy, _) => {
            return Err(invalid(
                WHAT,
                format!("it begins with {strategy}, which is not for elements as {encoding:?}"),
            ));
        }
    };
    reader.end()?;
    Ok(elements)
}

fn fixed_elements<'a>(reader: &mut Reader<'a>, size: usize) -> Result<Vec<Option<&'a [u8]>>, CodecError> {
    let nulls = reader.i32()?;
    let nulls = reader.length(nulls)?;
    let mut null_at = Vec::with_capacity(reader.capacity(nulls, 4));
    for _ in 0..nulls {
        null_at.push(reader.i32()?);
    }
    null_at.sort_unstable();
    null_at.dedup();
    let count = reader.i32()?;
    // A null needs no bytes in the list itself but has its index, so a count beyond both cannot be true.
    if reader.length(count)? > null_at.len() + reader.capacity(usize::MAX, size) {
        return Err(invalid(
            WHAT,
            format!("it claims {count} elements and has bytes for fewer"),
        ));
    }
    let mut nulls = null_at.into_iter().peekable();
    let mut elements = Vec::new();
    for index in 0..count {
        let element = if nulls.next_if_eq(&index).is_some() {
            None
        } else {
            Some(reader.bytes(size)?)
        };
        elements.push(element);
    }
    Ok(elements)
}
