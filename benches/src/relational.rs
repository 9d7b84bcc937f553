//! The client of Kafka's own relational smoke test (`RelationalSmokeTest.App` of its 4.3.1 test jar): articles, comments,
//! a count and a foreign-key join. Driven by `tests/peers/SmokeDriver.java relational`; topology and verification stand in
//! `tests/peers/smoke-topology.md`.

mod rows;

use streams_dsl::{Materialized, StreamsBuilder, TableJoined, Topology, TopologyError, serdes};

pub use rows::{Article, AugmentedArticle, AugmentedComment, Comment, RowSerde};

/// How many letters of an article are put to its comments.
const PREFIX: usize = 10;

/// The topology: the comments of each article counted, and each comment with the beginning of its article.
///
/// # Errors
/// Never, unless the DSL has a bug.
pub fn topology() -> Result<Topology, TopologyError> {
    let builder = StreamsBuilder::new();
    let articles = builder.table::<i32, Article>("in-article");
    let comments = builder.table::<i32, Comment>("in-comment");
    let counts = comments
        .group_by(|_id, comment| (comment.article_id, 1_i16))
        .count(Materialized::unnamed());
    articles
        .left_join_with(
            &counts,
            |_id, article, count| AugmentedArticle::of(article, count.copied().unwrap_or(0)),
            Materialized::with(serdes::Integer, RowSerde),
        )
        .to_stream()
        .to("out-augmented-article");
    comments
        .join_foreign_key_with(
            &articles,
            |_id, comment| Some(comment.article_id),
            |_id, comment, article| AugmentedComment::of(comment, article),
            TableJoined::default(),
            Materialized::with(serdes::Integer, RowSerde),
        )
        .to_stream()
        .to("out-augmented-comment");
    builder.build()
}

impl AugmentedArticle {
    /// The article with the number of its comments.
    #[must_use]
    pub fn of(article: &Article, comments: i64) -> Self {
        AugmentedArticle {
            article: article.clone(),
            comments,
        }
    }
}

impl AugmentedComment {
    /// The comment with the beginning of its article.
    #[must_use]
    pub fn of(comment: &Comment, article: &Article) -> Self {
        let prefix = article.text.chars().take(PREFIX).collect();
        AugmentedComment {
            comment: comment.clone(),
            prefix,
        }
    }
}

/// Runs the client; orders as for [`crate::eos::client`].
///
/// # Errors
/// When the application can't start, fails, or does not close in time.
pub fn client() -> anyhow::Result<()> {
    let settings = [
        ("commit.interval.ms", "1000"),
        ("commit.adaptive", "false"),
        ("windowstore.changelog.additional.retention.ms", "432000000"),
    ];
    crate::system::client("relational", topology()?, &settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_and_stores_have_the_names_of_javas_client() -> Result<(), TopologyError> {
        let text = topology()?.describe().to_string();
        for name in [
            "in-article-STATE-STORE-0000000000",
            "in-comment-STATE-STORE-0000000003",
            "KTABLE-AGGREGATE-STATE-STORE-0000000007",
            "KTABLE-AGGREGATE-STATE-STORE-0000000007-repartition",
            "KTABLE-MERGE-STATE-STORE-0000000011",
            "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000017-topic",
            "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000021",
            "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000025-topic",
        ] {
            assert!(text.contains(name), "{name} is not in\n{text}");
        }
        Ok(())
    }
}
