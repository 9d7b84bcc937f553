//! The raw loop: the yardstick for the speed of everything above the clients.
//!
//! It consumes in batches, sends each record on unchanged, and every 100 ms flushes, sends the offsets and commits, all
//! on one thread. A stream thread can't be faster than this with the same commit protocol at depth 0.
//!
//! ```text
//! rawloop copy IN OUT APP       copy IN to OUT exactly once, to the end of IN
//! rawloop read IN               only read IN to its end
//! rawloop commits OUT APP       200 transactions of 100 records, the time of each step; `PAUSE_MS` (20) between them
//! rawloop fill TOPIC COUNT SIZE write COUNT records with values of SIZE bytes, spread over the partitions
//! ```
//! The broker is `KAFKA_BOOTSTRAP` (default `127.0.0.1:9092`); more client settings: `CONSUMER` and `PRODUCER`, as
//! `name=value,name=value`; the commit interval in ms: `COMMIT_MS`.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

use std::collections::BTreeMap;
use std::env;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use streams_core::TopicPartition;
use streams_core::fetch::{Fetched, PartitionId};
use streams_core::kafka::admin::{Isolation, OffsetSpec};
use streams_core::kafka::consumer::{AssignedPartition, BatchConsumer};
use streams_core::kafka::producer::{GroupIdentity, OffsetCommit, TransactionalProducer};
use streams_core::outbox::Outbox;

const LIMIT_MS: u64 = 60_000;
const BATCH: usize = 4_096;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["copy", input, output, app] => copy(input, output, app),
        ["read", input] => read(input),
        ["commits", output, app] => commits(output, app),
        ["fill", topic, count, size] => fill(topic, count.parse()?, size.parse()?),
        _ => bail!("usage: rawloop copy IN OUT APP | read IN | commits OUT APP | fill TOPIC COUNT SIZE"),
    }
}

fn settings(variable: &str, own: &[(&str, &str)]) -> Vec<(String, String)> {
    let bootstrap = env::var("KAFKA_BOOTSTRAP").unwrap_or_else(|_| "127.0.0.1:9092".to_owned());
    let mut all = vec![("bootstrap.servers".to_owned(), bootstrap)];
    all.extend(
        own.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    let given = env::var(variable).unwrap_or_default();
    let pairs = given.split(',').filter_map(|pair| pair.split_once('='));
    all.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    all
}

/// A consumer at the committed offsets of the group (or the start), and the ends of the log.
struct Input {
    consumer: BatchConsumer,
    partitions: Vec<Position>,
}

struct Position {
    topic_partition: TopicPartition,
    next: i64,
    end: i64,
    moved: bool,
}

impl Input {
    fn open(topic: &str, group: &str) -> Result<Self> {
        let own = [("group.id", group), ("isolation.level", "read_committed")];
        let mut consumer = BatchConsumer::new(&settings("CONSUMER", &own))?;
        let (_, described) = consumer
            .metadata(&[topic], LIMIT_MS)?
            .pop()
            .context("no answer about the topic")?;
        let all: Vec<_> = (0..described?.partitions)
            .map(|number| TopicPartition::new(topic, number))
            .collect();
        let ends = consumer.list_offsets(&all, OffsetSpec::Latest, Isolation::ReadCommitted, LIMIT_MS)?;
        let starts = consumer.committed(&all, LIMIT_MS)?;
        let position = |((topic_partition, committed), (_, end)): ((TopicPartition, Option<_>), (_, _))| {
            let next = committed.map_or(0, |committed: streams_core::kafka::consumer::CommittedOffset| {
                committed.offset
            });
            let end: streams_core::kafka::admin::ListedOffset = end;
            Position {
                topic_partition,
                next,
                end: end.offset,
                moved: false,
            }
        };
        let partitions: Vec<Position> = starts.into_iter().zip(ends).map(position).collect();
        let assigned = (0..).zip(&partitions).map(|(id, position)| AssignedPartition {
            topic: topic.to_owned(),
            partition: position.topic_partition.partition,
            start_offset: position.next,
            id: PartitionId(id),
            incarnation: 1,
        });
        consumer.assign(&assigned.collect::<Vec<_>>())?;
        Ok(Input { consumer, partitions })
    }

    fn advance(&mut self, partition: PartitionId, next: i64) -> Result<()> {
        let position = self
            .partitions
            .get_mut(partition.0 as usize)
            .context("an unknown partition")?;
        position.next = position.next.max(next);
        position.moved = true;
        Ok(())
    }

    fn at_end(&self) -> bool {
        self.partitions.iter().all(|position| position.next >= position.end)
    }

    fn commits(&mut self) -> Vec<OffsetCommit> {
        let commit = |position: &mut Position| {
            std::mem::take(&mut position.moved).then(|| OffsetCommit {
                topic: position.topic_partition.topic.to_string(),
                partition: position.topic_partition.partition,
                offset: position.next,
                leader_epoch: -1,
                metadata: String::new(),
            })
        };
        self.partitions.iter_mut().filter_map(commit).collect()
    }
}

fn copy(input: &str, output: &str, app: &str) -> Result<()> {
    let commit_every = Duration::from_millis(env::var("COMMIT_MS").map_or(Ok(100), |text| text.parse())?);
    let mut producer = TransactionalProducer::new(&settings("PRODUCER", &[("transactional.id", app)]))?;
    producer.init_transactions(LIMIT_MS)?;
    let mut input = Input::open(input, app)?;
    let group = nobody(app);
    let mut outbox = Outbox::default();
    let output = outbox.topic(output);
    let (mut fetched, mut meter, mut commits_us) = (Vec::new(), Meter::start(), Vec::new());
    let (mut open, mut last_commit) = (false, Instant::now());
    loop {
        input.consumer.fetch(BATCH, 10, &mut fetched)?;
        for element in fetched.drain(..) {
            match element {
                Fetched::Records(batch) => {
                    meter.count(batch.len(), batch.heap_bytes());
                    for record in batch.iter() {
                        let partition = i32::try_from(batch.partition.0)?;
                        let (key, value) = (record.key, record.value);
                        outbox.push(output, partition, record.timestamp_ms, key, value, record.headers, 1)?;
                    }
                    input.advance(batch.partition, batch.offset(batch.len().saturating_sub(1)) + 1)?;
                }
                Fetched::Eof { partition, offset, .. } => input.advance(partition, offset)?,
                Fetched::Error(error) => return Err(error.into()),
            }
        }
        if !outbox.is_empty() {
            if !open {
                producer.begin()?;
                open = true;
            }
            producer.send_all(&outbox)?;
            outbox.clear();
        }
        let done = input.at_end();
        if open && (done || last_commit.elapsed() >= commit_every) {
            let start = Instant::now();
            producer.flush(LIMIT_MS)?;
            let reports = producer.reports(producer.epoch());
            ensure!(reports.failed_total == 0, "{:?}", reports.failed);
            producer.send_offsets(&input.commits(), &group, LIMIT_MS)?;
            producer.commit(LIMIT_MS)?;
            commits_us.push(start.elapsed().as_micros());
            (open, last_commit) = (false, Instant::now());
        }
        if done && !open {
            break;
        }
    }
    meter.report("copied")?;
    commits_us.sort_unstable();
    let at = |part: usize| {
        commits_us
            .get(commits_us.len() * part / 100)
            .copied()
            .unwrap_or_default()
    };
    println!(
        "{} commits, p50 {} us, p90 {} us, p99 {} us",
        commits_us.len(),
        at(50),
        at(90),
        at(99)
    );
    Ok(())
}

fn commits(output: &str, app: &str) -> Result<()> {
    let mut producer = TransactionalProducer::new(&settings("PRODUCER", &[("transactional.id", app)]))?;
    producer.init_transactions(LIMIT_MS)?;
    let group = nobody(app);
    let mut outbox = Outbox::default();
    let topic = outbox.topic(output);
    for number in 0..100_u32 {
        outbox.push(
            topic,
            0,
            1_700_000_000_000,
            Some(&number.to_be_bytes()),
            Some(&[b'.'; 100]),
            [],
            1,
        )?;
    }
    // A transaction that begins before the markers of the last one are written waits 20 ms in librdkafka
    // (CONCURRENT_TRANSACTIONS). A stream thread commits every 100 ms and does not meet that, so neither does this.
    let pause = Duration::from_millis(env::var("PAUSE_MS").map_or(Ok(20), |text| text.parse())?);
    let mut steps: [Vec<u128>; 4] = Default::default();
    for round in 0..200 {
        let offset = OffsetCommit {
            topic: output.to_owned(),
            partition: 0,
            offset: round,
            leader_epoch: -1,
            metadata: String::new(),
        };
        std::thread::sleep(pause);
        producer.begin()?;
        producer.send_all(&outbox)?;
        let mut times_us = Vec::with_capacity(4);
        let start = Instant::now();
        producer.flush(LIMIT_MS)?;
        times_us.push(start.elapsed().as_micros());
        producer.send_offsets(&[offset], &group, LIMIT_MS)?;
        times_us.push(start.elapsed().as_micros());
        producer.commit(LIMIT_MS)?;
        times_us.push(start.elapsed().as_micros());
        let mut before = 0;
        for (step, time_us) in steps.iter_mut().zip(&times_us) {
            step.push(time_us - before);
            before = *time_us;
        }
        if let Some(all) = steps.last_mut() {
            all.push(before);
        }
    }
    for (name, mut step) in ["flush", "offsets", "commit", "all"].into_iter().zip(steps) {
        println!("{name:8} {}", percentiles(&mut step));
    }
    Ok(())
}

/// A member without identity: commits without fencing, which is right for a benchmark only.
fn nobody(app: &str) -> GroupIdentity {
    GroupIdentity {
        group_id: app.to_owned(),
        member_id: String::new(),
        member_epoch: -1,
        instance_id: None,
    }
}

fn percentiles(times_us: &mut [u128]) -> String {
    times_us.sort_unstable();
    let at = |part: usize| times_us.get(times_us.len() * part / 100).copied().unwrap_or_default();
    format!("p50 {} us, p90 {} us, p99 {} us", at(50), at(90), at(99))
}

fn read(input: &str) -> Result<()> {
    let mut input = Input::open(input, "rawloop-read")?;
    let (mut fetched, mut meter) = (Vec::new(), Meter::start());
    while !input.at_end() {
        input.consumer.fetch(BATCH, 100, &mut fetched)?;
        for element in fetched.drain(..) {
            match element {
                Fetched::Records(batch) => {
                    meter.count(batch.len(), batch.heap_bytes());
                    input.advance(batch.partition, batch.offset(batch.len().saturating_sub(1)) + 1)?;
                }
                Fetched::Eof { partition, offset, .. } => input.advance(partition, offset)?,
                Fetched::Error(error) => return Err(error.into()),
            }
        }
    }
    meter.report("read")
}

fn fill(topic: &str, count: u64, size: usize) -> Result<()> {
    let mut producer = TransactionalProducer::new(&settings("PRODUCER", &[]))?;
    let partitions = {
        let admin = streams_core::kafka::admin::AdminClient::new(&settings("ADMIN", &[]))?;
        let (_, described) = admin
            .describe_topics(&[topic], LIMIT_MS)?
            .pop()
            .context("no answer about the topic")?;
        described?.partitions
    };
    let mut outbox = Outbox::default();
    let index = outbox.topic(topic);
    let mut value = vec![b'.'; size];
    let mut meter = Meter::start();
    let epoch = producer.begin()?;
    for number in 0..count {
        let text = number.to_string();
        for (to, from) in value.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        let partition = i32::try_from(number % u64::try_from(partitions)?)?;
        outbox.push(
            index,
            partition,
            1_700_000_000_000,
            Some(text.as_bytes()),
            Some(&value),
            [],
            0,
        )?;
        if outbox.len() == BATCH || number + 1 == count {
            producer.send_all(&outbox)?;
            meter.count(outbox.len(), outbox.bytes());
            outbox.clear();
        }
    }
    producer.flush(LIMIT_MS * 10)?;
    ensure!(
        producer.reports(epoch).acked == count,
        "not all records were acknowledged"
    );
    meter.report("written")
}

/// Counts records, wall-clock and CPU time.
struct Meter {
    start: Instant,
    cpu_s: f64,
    records: u64,
    batches: BTreeMap<u32, u64>,
    bytes: u64,
}

impl Meter {
    fn start() -> Self {
        let cpu_s = cpu_seconds().unwrap_or_default();
        Meter {
            start: Instant::now(),
            cpu_s,
            records: 0,
            batches: BTreeMap::new(),
            bytes: 0,
        }
    }

    fn count(&mut self, records: usize, bytes: usize) {
        self.records += records as u64;
        self.bytes += bytes as u64;
        *self
            .batches
            .entry(records.checked_ilog2().unwrap_or_default())
            .or_default() += 1;
    }

    fn report(&self, what: &str) -> Result<()> {
        let (wall_s, cpu_s) = (self.start.elapsed().as_secs_f64(), cpu_seconds()? - self.cpu_s);
        let records = self.records as f64;
        println!(
            "{} {what} in {wall_s:.2} s: {:.0} k/s, {:.2} CPU-s per million, {} MB",
            self.records,
            records / wall_s / 1e3,
            cpu_s / records * 1e6,
            self.bytes / 1_000_000,
        );
        let batches: Vec<_> = self
            .batches
            .iter()
            .map(|(log2, count)| format!("{}+:{count}", 1_u64 << log2))
            .collect();
        println!("batches by size: {}", batches.join(" "));
        Ok(())
    }
}

/// User and system time of this process, from Linux's accounting in hundredths of a second.
fn cpu_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .context("an odd stat file")?
        .split_whitespace()
        .collect();
    let ticks = |index: usize| -> Result<f64> { Ok(fields.get(index).context("a short stat file")?.parse::<f64>()?) };
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}
