//! The testkit on a real broker. Without Java or Maven these tests fail, and the message says what to install.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::OnceLock;
use std::time::Duration;

use streams_testkit::{
    ChildApp, Collector, Error, Isolation, Kafka, KafkaOptions, NewRecord, Record, Transaction, is_child_of_test,
    latest_by_key, wait_until,
};

const LIMIT: Duration = Duration::from_secs(60);

fn start(options: KafkaOptions) -> Kafka {
    Kafka::start(options).unwrap_or_else(|error| panic!("{error}"))
}

/// For the tests that leave the broker as it is.
fn shared() -> &'static Kafka {
    static SHARED: OnceLock<Kafka> = OnceLock::new();
    SHARED.get_or_init(|| start(KafkaOptions::default()))
}

fn values(records: &[Record]) -> Vec<String> {
    records.iter().map(Record::value_text).collect()
}

#[test]
fn what_was_produced_is_collected_with_all_its_parts() {
    let kafka = shared();
    let topic = format!("parts-{}", std::process::id());
    kafka.create_topic(&topic, 2, &[("cleanup.policy", "compact")]).unwrap();
    let full = NewRecord::new("k", "v")
        .at(1_356_998_400_000)
        .header("h", "1")
        .header("h", "2")
        .null_header("n");
    let positions = kafka
        .produce(
            &topic,
            [
                full.partition(1),
                NewRecord::tombstone("k").at(7).partition(1),
                NewRecord::new("k2", "").at(8).partition(0),
            ],
        )
        .unwrap();
    assert_eq!(positions, [(1, 0), (1, 1), (0, 0)]);

    let records = kafka.collect(&topic).unwrap();
    let header = |name: &str, value: Option<&str>| (name.to_owned(), value.map(Into::into));
    let expected = [
        Record {
            partition: 0,
            offset: 0,
            timestamp: 8,
            key: Some(b"k2".to_vec()),
            value: Some(Vec::new()),
            headers: Vec::new(),
        },
        Record {
            partition: 1,
            offset: 0,
            timestamp: 1_356_998_400_000,
            key: Some(b"k".to_vec()),
            value: Some(b"v".to_vec()),
            headers: vec![header("h", Some("1")), header("h", Some("2")), header("n", None)],
        },
        Record {
            partition: 1,
            offset: 1,
            timestamp: 7,
            key: Some(b"k".to_vec()),
            value: None,
            headers: Vec::new(),
        },
    ];
    assert_eq!(records, expected);
    assert_eq!(latest_by_key(&records).len(), 1);

    let topics = kafka.topics();
    assert_eq!(topics.partitions(&topic).unwrap(), 2);
    assert_eq!(topics.end_offsets(&topic).unwrap(), [(0, 1), (1, 2)].into());
    let configs = topics.configs(&topic).unwrap();
    assert_eq!(configs["cleanup.policy"], "compact");
    assert!(topics.committed_offsets("nobody", &topic).unwrap().is_empty());
    topics.delete(&topic).unwrap();
    assert!(matches!(kafka.collect(&topic), Err(Error::Client { .. })));
}

#[test]
fn keys_go_to_the_partitions_that_javas_partitioner_chooses() {
    let kafka = shared();
    let topic = format!("murmur2-{}", std::process::id());
    kafka.create_topic(&topic, 1_000, &[]).unwrap();
    // murmur2 of these keys in org.apache.kafka.common.utils.UtilsTest, made positive, modulo 1,000 partitions.
    let known = [
        ("21", -973_932_308_i32),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
    ];
    let records = known.map(|(key, _)| NewRecord::new(key, "v"));
    let positions = kafka.produce(&topic, records).unwrap();
    let expected = known.map(|(_, hash)| (hash & 0x7fff_ffff) % 1_000);
    assert_eq!(
        positions.iter().map(|(partition, _)| *partition).collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn aborted_and_undecided_records_are_not_collected() {
    let kafka = shared();
    let topic = format!("transactions-{}", std::process::id());
    kafka.create_topic(&topic, 1, &[]).unwrap();
    let begin = |name: &str| Transaction::begin(kafka.bootstrap(), &format!("{topic}-{name}")).unwrap();

    let aborted = begin("a");
    aborted.send(&topic, [NewRecord::new("k", "aborted")]).unwrap();
    aborted.abort().unwrap();
    // The end is now an abort marker after an aborted record: the collector must come to an end all the same.
    assert!(kafka.collect(&topic).unwrap().is_empty());

    let committed = begin("c");
    committed.send(&topic, [NewRecord::new("k", "committed")]).unwrap();
    committed.commit().unwrap();

    let open = begin("o");
    open.send(&topic, [NewRecord::new("k", "open")]).unwrap();
    kafka
        .produce(&topic, [NewRecord::new("k", "plain, behind the open one")])
        .unwrap();

    assert_eq!(values(&kafka.collect(&topic).unwrap()), ["committed"]);
    let all = Collector::new(kafka.bootstrap()).isolation(Isolation::ReadUncommitted);
    assert_eq!(
        values(&all.collect(&topic).unwrap()),
        ["aborted", "committed", "open", "plain, behind the open one"]
    );
    // Records and markers: aborted 0, marker 1, committed 2, marker 3, open 4, plain 5.
    let topics = kafka.topics();
    assert_eq!(topics.last_stable_offsets(&topic).unwrap(), [(0, 4)].into());
    assert_eq!(topics.end_offsets(&topic).unwrap(), [(0, 6)].into());

    open.commit().unwrap();
    let seen = kafka.wait_until(&topic, LIMIT, |records| records.len() == 3).unwrap();
    assert_eq!(values(&seen), ["committed", "open", "plain, behind the open one"]);
}

#[test]
fn a_wait_for_records_that_never_come_ends_in_an_error_that_names_the_topic() {
    let kafka = shared();
    let topic = format!("patience-{}", std::process::id());
    kafka.create_topic(&topic, 1, &[]).unwrap();
    let limit = Duration::from_millis(300);
    let error = kafka.collector().wait_for_count(&topic, 1, limit).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Timeout { .. }), "{text}");
    assert!(text.contains(&topic) && text.contains("saw no record"), "{text}");
}

#[test]
fn data_outlive_a_stop_and_a_kill_and_the_address_stays() {
    let mut kafka = start(KafkaOptions::own_broker());
    let bootstrap = kafka.bootstrap().to_owned();
    kafka.create_topic("kept", 1, &[]).unwrap();
    kafka.produce("kept", [NewRecord::new("k", "before the stop")]).unwrap();

    kafka.stop().unwrap();
    assert_eq!(kafka.pid(), None);
    kafka.restart().unwrap();
    assert_eq!(kafka.bootstrap(), bootstrap);
    assert_eq!(values(&kafka.collect("kept").unwrap()), ["before the stop"]);

    kafka.produce("kept", [NewRecord::new("k", "before the kill")]).unwrap();
    kafka.kill().unwrap();
    kafka.restart().unwrap();
    assert_eq!(
        values(&kafka.collect("kept").unwrap()),
        ["before the stop", "before the kill"]
    );

    kafka.pause().unwrap();
    let limit = Duration::from_millis(500);
    assert!(kafka.wait_ready(limit).is_err(), "a paused broker answers");
    kafka.resume().unwrap();
    kafka.wait_ready(LIMIT).unwrap();
}

#[test]
fn a_named_folder_is_kept_and_can_be_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let options = || KafkaOptions::own_broker().data_dir(folder.path());
    let first = start(options());
    first.create_topic("kept", 3, &[]).unwrap();
    drop(first);
    let second = start(options());
    assert_eq!(second.topics().partitions("kept").unwrap(), 3);
    assert_eq!(second.data_dir().unwrap(), folder.path().canonicalize().unwrap());
}

#[test]
fn two_brokers_run_at_once_and_know_nothing_of_each_other() {
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| start(KafkaOptions::own_broker()));
        let two = start(KafkaOptions::own_broker());
        (one.join().unwrap(), two)
    });
    assert_ne!(one.bootstrap(), two.bootstrap());
    one.create_topic("mine", 1, &[]).unwrap();
    assert!(one.topics().list().unwrap().contains(&"mine".to_owned()));
    assert!(!two.topics().list().unwrap().contains(&"mine".to_owned()));
}

#[test]
fn settings_reach_the_broker_and_a_wrong_one_is_explained_with_the_log() {
    let kafka = start(KafkaOptions::own_broker().setting("log.retention.ms", "123456"));
    kafka.create_topic("t", 1, &[]).unwrap();
    assert_eq!(kafka.topics().configs("t").unwrap()["retention.ms"], "123456");
    // A misspelt topic is an error.
    assert!(kafka.produce("no-such-topic", [NewRecord::new("k", "v")]).is_err());
    drop(kafka);

    let error = Kafka::start(KafkaOptions::own_broker().setting("num.io.threads", "none")).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::BrokerStart { .. }), "{text}");
    assert!(text.contains("num.io.threads"), "{text}");
    let Error::BrokerStart { log, .. } = error else {
        unreachable!("checked above")
    };
    assert!(log.is_file(), "the log that the error names is there to be read");
    std::fs::remove_dir_all(log.parent().unwrap()).unwrap();
}

#[test]
fn broker_and_folder_end_with_the_process_that_started_them() {
    let mut holder = ChildApp::this_test("holds_a_broker").unwrap().start().unwrap();
    let line = holder
        .wait_for_line(Duration::from_secs(180), |line| line.contains("broker process "))
        .unwrap();
    let pid: u32 = line.rsplit(' ').next().unwrap().parse().unwrap();
    let runs = || {
        std::path::Path::new(&format!("/proc/{pid}/cmdline")).exists()
            && !std::fs::read(format!("/proc/{pid}/cmdline"))
                .unwrap_or_default()
                .is_empty()
    };
    assert!(runs());
    let folder = holder
        .wait_for_line(LIMIT, |line| line.contains("broker folder "))
        .unwrap();
    let folder = std::path::PathBuf::from(folder.split_once("broker folder ").unwrap().1);
    assert!(folder.is_dir());
    holder.kill().unwrap();
    let gone = || Ok(!runs() && !folder.exists());
    wait_until("the end of the broker and of its folder", LIMIT, gone).unwrap();
}

#[test]
#[ignore = "run by broker_and_folder_end_with_the_process_that_started_them"]
fn holds_a_broker() {
    if !is_child_of_test("holds_a_broker") {
        return;
    }
    let kafka = start(KafkaOptions::own_broker());
    println!("broker folder {}", kafka.data_dir().unwrap().display());
    println!("broker process {}", kafka.pid().unwrap());
    // Killed from outside; the bound is for the case that nobody does.
    let _ = wait_until("the kill", LIMIT, || Ok(false));
    drop(kafka);
}
