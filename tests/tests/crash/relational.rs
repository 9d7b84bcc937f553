//! Kafka's own relational smoke test (`RelationalSmokeTest` of its 4.3.1 test jar) against our client, with SIGKILLs:
//! table joins, a grouped table, a foreign-key join.
//!
//! Its verdict compares the outputs with each other; here they are computed anew from the input besides, to the last
//! byte. `STREAMS_CRASH_RELATIONAL_SECONDS` (8) and `STREAMS_CRASH_RELATIONAL_KILLS` (1) make it longer.

use std::collections::BTreeMap;

use benches::relational::{Article, AugmentedArticle, AugmentedComment, Comment, RowSerde};
use streams_dsl::{DefaultSerde, Serde};
use streams_testkit::{Kafka, is_child_of_test};
use streams_tests::peers;

use crate::system::{SystemTest, setting};

const APP: &str = "relational::client";

#[test]
fn kafkas_own_relational_test_passes_with_two_instances_and_kills() {
    let seconds = setting("STREAMS_CRASH_RELATIONAL_SECONDS", 8);
    let articles = (seconds * 6).min(1_000);
    let test = SystemTest {
        name: "relational",
        client: APP,
        version: peers::CURRENT,
        seconds,
        kills: setting("STREAMS_CRASH_RELATIONAL_KILLS", 1),
        options: vec![
            ("--articles", articles),
            ("--comments", articles * 10),
            ("--progress", 20),
        ],
    };
    let Some(kafka) = test.assert_passes() else { return };
    assert_outputs_follow_from_inputs(&kafka);
}

fn assert_outputs_follow_from_inputs(kafka: &Kafka) {
    let articles = latest::<Article>(kafka, "in-article");
    let comments = latest::<Comment>(kafka, "in-comment");
    let mut counts: BTreeMap<i32, i64> = BTreeMap::new();
    for comment in comments.values() {
        *counts.entry(comment.article_id).or_default() += 1;
    }
    let counted = articles.iter().map(|(id, article)| {
        let count = counts.get(id).copied().unwrap_or(0);
        (*id, AugmentedArticle::of(article, count))
    });
    assert_eq!(
        latest::<AugmentedArticle>(kafka, "out-augmented-article"),
        counted.collect()
    );
    let joined = comments
        .iter()
        .filter_map(|(id, comment)| Some((*id, AugmentedComment::of(comment, articles.get(&comment.article_id)?))));
    assert_eq!(
        latest::<AugmentedComment>(kafka, "out-augmented-comment"),
        joined.collect()
    );
}

/// The last row of each key; deleted rows are none.
fn latest<R: DefaultSerde<Serde = RowSerde>>(kafka: &Kafka, topic: &str) -> BTreeMap<i32, R>
where
    RowSerde: Serde<R>,
{
    let mut rows = BTreeMap::new();
    for record in kafka.collect(topic).unwrap() {
        let key = i32::from_be_bytes(record.key.as_deref().unwrap().try_into().unwrap());
        match record.value {
            Some(value) => rows.insert(key, RowSerde.deserialize(topic, Some(&value)).unwrap()),
            None => rows.remove(&key),
        };
    }
    assert!(!rows.is_empty(), "{topic} is empty");
    rows
}

#[test]
#[ignore = "run by kafkas_own_relational_test_passes_with_two_instances_and_kills"]
fn client() {
    if is_child_of_test(APP) {
        benches::relational::client().unwrap();
    }
}
