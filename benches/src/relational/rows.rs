//! The rows and their bytes: numbers big-endian, texts with their length in front.

use streams_dsl::{DefaultSerde, Serde, SerdeError};

/// A row that becomes bytes and back.
pub trait Row: Sized + 'static {
    /// Appends the row's bytes.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads a row from the front; `None` when there are too few bytes.
    fn read(bytes: &mut &[u8]) -> Option<Self>;
}

/// An article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Article {
    /// Its number.
    pub id: i32,
    /// Its event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// What it says.
    pub text: String,
}

/// A comment on an article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Its number.
    pub id: i32,
    /// Its event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// What it says.
    pub text: String,
    /// The article's number.
    pub article_id: i32,
}

/// An article with the number of its comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AugmentedArticle {
    /// The article.
    pub article: Article,
    /// How many comments it has.
    pub comments: i64,
}

/// A comment with the beginning of its article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AugmentedComment {
    /// The comment.
    pub comment: Comment,
    /// The first letters of the article's text.
    pub prefix: String,
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    let length = i32::try_from(text.len()).unwrap_or(i32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn read_text(bytes: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(i32::from_be_bytes(take(bytes)?)).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

impl Row for Article {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&self.timestamp_ms.to_be_bytes());
        write_text(&self.text, out);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(Article {
            id: i32::from_be_bytes(take(bytes)?),
            timestamp_ms: i64::from_be_bytes(take(bytes)?),
            text: read_text(bytes)?,
        })
    }
}

impl Row for Comment {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&self.timestamp_ms.to_be_bytes());
        write_text(&self.text, out);
        out.extend_from_slice(&self.article_id.to_be_bytes());
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(Comment {
            id: i32::from_be_bytes(take(bytes)?),
            timestamp_ms: i64::from_be_bytes(take(bytes)?),
            text: read_text(bytes)?,
            article_id: i32::from_be_bytes(take(bytes)?),
        })
    }
}

impl Row for AugmentedArticle {
    fn write(&self, out: &mut Vec<u8>) {
        self.article.write(out);
        out.extend_from_slice(&self.comments.to_be_bytes());
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(AugmentedArticle {
            article: Article::read(bytes)?,
            comments: i64::from_be_bytes(take(bytes)?),
        })
    }
}

impl Row for AugmentedComment {
    fn write(&self, out: &mut Vec<u8>) {
        self.comment.write(out);
        write_text(&self.prefix, out);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(AugmentedComment {
            comment: Comment::read(bytes)?,
            prefix: read_text(bytes)?,
        })
    }
}

/// The serde of all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowSerde;

impl<R: Row> Serde<R> for RowSerde {
    fn serialize(&self, _topic: &str, value: &R, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        value.write(out);
        Ok(true)
    }

    fn deserialize(&self, _topic: &str, bytes: Option<&[u8]>) -> Result<R, SerdeError> {
        let type_name = std::any::type_name::<R>();
        let mut bytes = bytes.ok_or(SerdeError::Null {
            what: "value",
            type_name,
        })?;
        let row = R::read(&mut bytes).filter(|_| bytes.is_empty());
        row.ok_or_else(|| SerdeError::Convert {
            type_name,
            message: "the bytes end too early or too late".to_owned(),
        })
    }
}

macro_rules! default_serde {
    ($($row:ty),*) => {$(
        impl DefaultSerde for $row {
            type Serde = RowSerde;
        }
    )*};
}

default_serde!(Article, Comment, AugmentedArticle, AugmentedComment);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_bytes_of_the_specification() -> Result<(), SerdeError> {
        let article = Article {
            id: 1,
            timestamp_ms: 2,
            text: "é".to_owned(),
        };
        let mut bytes = Vec::new();
        RowSerde.serialize(
            "t",
            &AugmentedArticle {
                article: article.clone(),
                comments: 3,
            },
            &mut bytes,
        )?;
        let expected = b"\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x02\xc3\xa9\0\0\0\0\0\0\0\x03";
        assert_eq!(bytes, expected);
        let read: AugmentedArticle = RowSerde.deserialize("t", Some(&bytes))?;
        assert_eq!(read.article, article);
        let comment = Comment {
            id: 4,
            timestamp_ms: 5,
            text: String::new(),
            article_id: 1,
        };
        let augmented = AugmentedComment {
            comment,
            prefix: "ab".to_owned(),
        };
        bytes.clear();
        RowSerde.serialize("t", &augmented, &mut bytes)?;
        assert_eq!(bytes, b"\0\0\0\x04\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x01\0\0\0\x02ab");
        let read: AugmentedComment = RowSerde.deserialize("t", Some(&bytes))?;
        assert_eq!(read, augmented);
        Ok(())
    }

    #[test]
    fn bytes_that_are_too_short_or_too_long_are_no_row() {
        let comment = Comment {
            id: 4,
            timestamp_ms: 5,
            text: "x".to_owned(),
            article_id: 1,
        };
        let mut bytes = Vec::new();
        comment.write(&mut bytes);
        for end in 0..bytes.len() {
            let cut: Result<Comment, _> = RowSerde.deserialize("t", bytes.get(..end));
            assert!(cut.is_err());
        }
        bytes.push(0);
        let long: Result<Comment, _> = RowSerde.deserialize("t", Some(&bytes));
        assert!(long.is_err());
    }
}
