//! The crash harness proves itself: a copy loop on the plain client comes out exact under SIGKILLs with transactions, and
//! the same loop without transactions does not, which the comparison must notice.

use std::ops::RangeInclusive;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use streams_testkit::{ChildApp, Kafka, KillLoop, NewRecord, Record, Topics, is_child_of_test, wait_until};
use streams_tests::{broker, topic, unique};

const APP: &str = "harness::copy_app";
/// Records of one commit: large, because the plain client's commit takes some 200 ms.
const BATCH: usize = 100;
const LIMIT: Duration = Duration::from_secs(240);
const REQUEST: Duration = Duration::from_secs(30);

#[test]
fn a_transactional_copy_is_exact_after_ten_kills() {
    let delay = Duration::ZERO..=Duration::from_millis(150);
    let (input, output) = copy_under_kills(true, 3_000, 10, delay);
    assert_eq!(output, input);
}

#[test]
fn a_copy_that_commits_its_offsets_behind_its_output_is_caught_repeating() {
    // Killed at once when output is written; the process waits there before it commits its offsets.
    let (input, mut output) = copy_under_kills(false, 500, 3, Duration::ZERO..=Duration::ZERO);
    assert!(output.len() > input.len(), "nothing was repeated");
    output.dedup();
    assert_eq!(output, input, "repeated, but nothing lost");
}

/// Returns the values of input and output, sorted.
fn copy_under_kills(
    exact: bool,
    records: usize,
    kills: u32,
    delay: RangeInclusive<Duration>,
) -> (Vec<String>, Vec<String>) {
    let kafka = broker();
    let (input, output) = (topic("copy-in", 1), topic("copy-out", 1));
    let records = (0..records).map(|i| NewRecord::new(format!("k{}", i % 7), format!("{i:06}")));
    kafka.produce(&input, records).unwrap();
    let end = kafka.topics().end_offsets(&input).unwrap();
    let group = unique("copy");
    let app = ChildApp::this_test(APP)
        .unwrap()
        .env("KAFKA_BOOTSTRAP", kafka.bootstrap())
        .env("COPY", format!("{group} {input} {output} {exact}"));
    let report = KillLoop::from_env(kills)
        .unwrap()
        .ready_line(move |line| line.contains(if_ready(exact)))
        .delay(delay)
        .run(&app, LIMIT, || {
            Ok(kafka.topics().committed_offsets(&group, &input)? == end)
        })
        .unwrap();
    assert_eq!((report.kills, report.starts), (kills, kills + 1));
    (values(kafka, &input), values(kafka, &output))
}

/// The exact copy is killed anywhere, also when all is copied; the other one only with written output.
fn if_ready(exact: bool) -> &'static str {
    if exact { "copied" } else { "written" }
}

fn values(kafka: &Kafka, topic: &str) -> Vec<String> {
    let records = kafka.collect(topic).unwrap();
    let mut values: Vec<_> = records.iter().map(Record::value_text).collect();
    values.sort();
    values
}

/// Copies one partition in small batches until it is killed. Exact: output and offsets in one transaction. Otherwise the
/// offsets are committed on their own after the output, with a moment in between.
#[test]
#[ignore = "run by a_transactional_copy_is_exact_after_ten_kills"]
fn copy_app() {
    if !is_child_of_test(APP) {
        return;
    }
    let orders = std::env::var("COPY").unwrap();
    let [group, input, output, exact] = orders.split(' ').collect::<Vec<_>>()[..] else {
        panic!("COPY={orders}")
    };
    Copy::new(group, input, output, exact == "true").run();
}

struct Copy {
    consumer: BaseConsumer,
    producer: BaseProducer,
    input: String,
    output: String,
    exact: bool,
}

impl Copy {
    fn new(group: &str, input: &str, output: &str, exact: bool) -> Self {
        let bootstrap = std::env::var("KAFKA_BOOTSTRAP").unwrap();
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &bootstrap);
        let mut producer = config.clone();
        if exact {
            producer.set("transactional.id", group);
        }
        let producer: BaseProducer = producer.create().unwrap();
        if exact {
            producer.init_transactions(REQUEST).unwrap();
        }
        let consumer: BaseConsumer = config
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_committed")
            .create()
            .unwrap();
        // Only now: init_transactions has settled what the last process left open.
        let committed = Topics::new(bootstrap).committed_offsets(group, input);
        let from = match committed.unwrap().get(&0) {
            Some(offset) => Offset::Offset(*offset),
            None => Offset::Beginning,
        };
        let mut place = TopicPartitionList::new();
        place.add_partition_offset(input, 0, from).unwrap();
        consumer.assign(&place).unwrap();
        Self {
            consumer,
            producer,
            input: input.to_owned(),
            output: output.to_owned(),
            exact,
        }
    }

    fn run(&self) {
        loop {
            let mut next = None;
            for _ in 0..BATCH {
                let Some(message) = self.consumer.poll(Duration::from_millis(200)) else {
                    break;
                };
                let message = message.unwrap();
                if next.is_none() && self.exact {
                    self.producer.begin_transaction().unwrap();
                }
                self.send(message.key().unwrap(), message.payload().unwrap());
                next = Some(message.offset() + 1);
            }
            if let Some(next) = next {
                self.commit(next);
            }
            println!("copied to {next:?}");
        }
    }

    fn send(&self, key: &[u8], value: &[u8]) {
        let record = BaseRecord::to(&self.output).key(key).payload(value);
        let sent = self.producer.send(record).map_err(|(error, _)| error);
        sent.unwrap_or_else(|error: KafkaError| panic!("{error}"));
    }

    fn commit(&self, next: i64) {
        let mut offsets = TopicPartitionList::new();
        offsets
            .add_partition_offset(&self.input, 0, Offset::Offset(next))
            .unwrap();
        if self.exact {
            let group = self.consumer.group_metadata().unwrap();
            self.producer
                .send_offsets_to_transaction(&offsets, &group, REQUEST)
                .unwrap();
            self.producer.commit_transaction(REQUEST).unwrap();
        } else {
            self.producer.flush(REQUEST).unwrap();
            println!("written to {next}");
            // The window that a kill must hit: output written, offsets not. Ends by itself after the last kill.
            let _ = wait_until("the kill", Duration::from_secs(1), || Ok(false));
            self.consumer
                .commit(&offsets, rdkafka::consumer::CommitMode::Sync)
                .unwrap();
        }
    }
}
