//! Global tables over restarts: what was deleted meanwhile is gone, and another topic of the same name is refused.

use std::time::Duration;

use streams_core::Error;
use streams_dsl::{KafkaStreams, State, StreamsBuilder, StreamsConfig};
use streams_testkit::NewRecord;
use streams_tests::{broker, topic, topic_with, unique};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);

struct Application {
    id: String,
    input: String,
    output: String,
    prices: String,
    state: TempDir,
}

impl Application {
    fn new(name: &str, configs: &[(&str, &str)]) -> Self {
        let prices = topic_with(&format!("{name}-prices"), 1, configs);
        broker()
            .produce(&prices, ["a", "b"].map(|key| NewRecord::new(key, "old")))
            .unwrap();
        Application {
            id: unique(name),
            input: topic(&format!("{name}-in"), 1),
            output: topic(&format!("{name}-out"), 1),
            prices,
            state: TempDir::new().unwrap(),
        }
    }

    fn streams(&self) -> KafkaStreams {
        let builder = StreamsBuilder::new();
        let prices = builder.global_table::<String, String>(&self.prices);
        builder
            .stream::<String, String>(&self.input)
            .join_global(&prices, |key, _| key.clone(), |_, _, price| price.clone())
            .to(&self.output);
        let config = StreamsConfig::from_properties([
            ("application.id", self.id.as_str()),
            ("bootstrap.servers", broker().bootstrap()),
            ("state.dir", self.state.path().to_str().unwrap()),
            ("processing.guarantee", "exactly_once_v2"),
        ]);
        KafkaStreams::new(builder.build().unwrap(), config.unwrap()).unwrap()
    }

    /// Starts it, asks for the price of each key, and closes it; answers what came of the keys that have one.
    fn prices_of(&self, keys: &[&str], found: usize) -> Vec<(String, String)> {
        let before = broker().collect(&self.output).unwrap().len();
        let streams = self.streams();
        streams.start().unwrap();
        assert!(streams.wait_for(LIMIT, |state| state == State::Running));
        let asked = keys.iter().map(|key| NewRecord::new(*key, "?"));
        broker().produce(&self.input, asked).unwrap();
        let all = broker()
            .collector()
            .wait_for_count(&self.output, before + found, LIMIT)
            .unwrap();
        assert!(streams.close(LIMIT));
        let text = |bytes: &Option<Vec<u8>>| String::from_utf8(bytes.clone().unwrap()).unwrap();
        all[before..].iter().map(|r| (text(&r.key), text(&r.value))).collect()
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// With a `delete.retention.ms` of a millisecond every store that is behind is too old; with a day none is.
#[test]
fn rule_2_4b_a_row_of_a_global_table_deleted_while_the_instance_was_away_is_gone() {
    for (name, retention) in [("global-old", "1"), ("global-young", "86400000")] {
        let app = Application::new(
            name,
            &[("cleanup.policy", "compact"), ("delete.retention.ms", retention)],
        );
        assert_eq!(
            app.prices_of(&["a", "b"], 2),
            pairs(&[("a", "old"), ("b", "old")]),
            "{name}"
        );
        let changes = [NewRecord::tombstone("a"), NewRecord::new("c", "new")];
        broker().produce(&app.prices, changes).unwrap();
        let found = app.prices_of(&["a", "b", "c"], 2);
        assert_eq!(found, pairs(&[("b", "old"), ("c", "new")]), "{name}");
        // Nothing changed since: it goes on with what it has.
        assert_eq!(app.prices_of(&["c"], 1), pairs(&[("c", "new")]), "{name}");
    }
}

#[test]
fn rule_2_4c_a_global_topic_made_anew_is_refused_and_named() {
    let app = Application::new("global-remade", &[("cleanup.policy", "compact")]);
    assert_eq!(app.prices_of(&["a"], 1), pairs(&[("a", "old")]));
    broker().topics().delete(&app.prices).unwrap();
    broker()
        .create_topic(&app.prices, 1, &[("cleanup.policy", "compact")])
        .unwrap();
    let fill = (0..10).map(|at| NewRecord::new(format!("key-{at}"), "another"));
    broker().produce(&app.prices, fill).unwrap();
    let streams = app.streams();
    let error = streams.start().unwrap_err();
    assert!(matches!(*error, Error::TaskCorrupted { .. }), "{error}");
    assert!(error.to_string().contains(&app.prices), "{error}");
}
