//! Each kind of change between two versions of a program, and what the lockfile says of it.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use streams_dsl::lock::{self, CheckError, LockError, LockVerdict, TopologyLock};
use streams_dsl::serdes::{Json, Long, Utf8};
use streams_dsl::{
    Consumed, DAY, Grouped, HOUR, JoinWindows, MINUTE, Materialized, Repartitioned, SECOND, Stores, StreamJoined,
    StreamsBuilder, TimeWindows, Topology,
};

fn built(build: impl Fn(&StreamsBuilder)) -> Topology {
    let builder = StreamsBuilder::new();
    build(&builder);
    builder.build().unwrap()
}

fn locked(build: impl Fn(&StreamsBuilder)) -> TopologyLock {
    TopologyLock::of(&built(build)).unwrap()
}

/// What the second version meets where the first one ran: the worst verdict, and all findings with their advice.
fn change(before: impl Fn(&StreamsBuilder), after: impl Fn(&StreamsBuilder)) -> (LockVerdict, String, bool) {
    // Through the text, as a program does it.
    let before = TopologyLock::parse(&locked(before).to_text()).unwrap();
    let report = locked(after).compare(&before);
    (report.verdict().unwrap(), report.to_string(), report.group_refuses)
}

fn hourly(b: &StreamsBuilder) {
    windowed(b, TimeWindows::of(HOUR).grace(MINUTE), Materialized::named("bills"));
}

fn windowed(b: &StreamsBuilder, windows: TimeWindows, how: Materialized<String, i64>) {
    let usage = b.stream::<String, i64>("usage").group_by_key();
    usage.windowed_by(windows).reduce(|_, new, sum| sum + new, how);
}

#[test]
fn the_text_is_stable_and_reads_back() {
    let topology = built(|b| {
        let by_tenant = b
            .stream::<String, i64>("usage")
            .group_by_with(|_, bytes| *bytes, Grouped::named("by-size"));
        by_tenant.count("sizes");
        let clicks = b.stream::<String, i64>("clicks").group_by_key();
        clicks
            .windowed_by(TimeWindows::of(HOUR))
            .count(Materialized::named("hourly").in_memory());
    });
    let lock = TopologyLock::of(&topology).unwrap();
    let expected = "\
version = 1

[sub-topology 0]
reads = usage
repartitions = by-size-repartition

[sub-topology 1]
reads = by-size-repartition
stores = sizes

[sub-topology 2]
reads = clicks
stores = hourly

[store hourly]
changelog = hourly-changelog
changelog.cleanup.policy = compact,delete
changelog.message.timestamp.type = CreateTime
changelog.retention.ms = 90000000
from = clicks
key = string
key.type = String
kind = window
place = memory
retention.ms = 3600000
value = long
value.time = in front
value.type = i64
window.size.ms = 3600000

[store sizes]
changelog = sizes-changelog
changelog.cleanup.policy = compact
changelog.message.timestamp.type = CreateTime
from = usage
key = long
key.type = i64
kind = key-value
place = disk
value = long
value.time = in front
value.type = i64

[repartition by-size-repartition]
config.cleanup.policy = delete
config.message.timestamp.type = CreateTime
config.retention.ms = -1
config.segment.bytes = 52428800
from = usage
key = long
key.type = i64
partitions = as many as the largest of usage
value = long
value.type = i64
";
    let text = lock.to_text();
    let body: String = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(body, expected);
    assert_eq!(TopologyLock::parse(&text).unwrap(), lock);
    assert_eq!(lock.compare(&lock).verdict(), None);
}

#[test]
fn a_store_of_another_name_is_a_rename_and_its_old_name_is_told() {
    let renamed = |b: &StreamsBuilder| windowed(b, TimeWindows::of(HOUR).grace(MINUTE), "invoices".into());
    let (verdict, text, group) = change(hourly, renamed);
    assert_eq!(verdict, LockVerdict::Rename);
    assert!(text.contains("the store `bills` is called `invoices` now"), "{text}");
    assert!(text.contains("name it `bills` again"), "{text}");
    assert!(group, "the changelog has another name: {text}");
}

#[test]
fn windows_of_another_size_need_a_reset() {
    let longer = |b: &StreamsBuilder| windowed(b, TimeWindows::of(2 * HOUR).grace(MINUTE), "bills".into());
    let (verdict, text, _) = change(hourly, longer);
    assert_eq!(verdict, LockVerdict::NeedsReset);
    assert!(
        text.contains("store `bills`: window.size.ms is `7200000`, before `3600000`"),
        "{text}"
    );
    assert!(text.contains("give the store a new name"), "{text}");
}

#[test]
fn another_retention_is_compatible_and_the_topic_is_altered_by_hand() {
    let longer = |b: &StreamsBuilder| {
        let kept = Materialized::named("bills").retention(DAY);
        windowed(b, TimeWindows::of(HOUR).grace(MINUTE), kept);
    };
    let (verdict, text, group) = change(hourly, longer);
    assert_eq!(verdict, LockVerdict::Compatible);
    assert!(
        text.contains("store `bills`: retention.ms is `86400000`, before `3660000`"),
        "{text}"
    );
    assert!(text.contains("bin/kafka-configs.sh"), "{text}");
    assert!(group && text.contains("A streams group keeps the topology"), "{text}");
}

#[test]
fn another_serde_needs_a_reset() {
    let count = |b: &StreamsBuilder, how: Materialized<String, i64>| {
        b.stream::<String, i64>("usage").group_by_key().count(how);
    };
    let as_json = |b: &StreamsBuilder| count(b, Materialized::with(Utf8, Json::<i64>::new()).with_name("counts"));
    let (verdict, text, group) = change(|b| count(b, "counts".into()), as_json);
    assert_eq!(verdict, LockVerdict::NeedsReset);
    assert!(
        text.contains("store `counts`: value is `json`, before `long`"),
        "{text}"
    );
    assert!(!group, "the brokers do not know formats: {text}");
}

#[test]
fn another_type_of_the_same_format_is_compatible() {
    let stored_otherwise = |b: &StreamsBuilder| {
        let serde = Consumed::with(Utf8, Json::<i64>::new());
        let how = Materialized::with(Utf8, Long).with_name("prices");
        b.table_with::<String, i64>("prices", serde, how);
    };
    let before = |b: &StreamsBuilder| {
        let serde = Consumed::with(Utf8, Json::<i64>::new());
        let how = Materialized::with(Utf8, Json::<i64>::new()).with_name("prices");
        b.table_with::<String, i64>("prices", serde, how);
    };
    let after = |b: &StreamsBuilder| {
        let serde = Consumed::with(Utf8, Json::<i32>::new());
        let how = Materialized::with(Utf8, Json::<i32>::new()).with_name("prices");
        b.table_with::<String, i32>("prices", serde, how);
    };
    let (verdict, text, _) = change(before, after);
    assert_eq!(verdict, LockVerdict::Compatible);
    assert!(
        text.contains("store `prices`: value.type is `i32`, before `i64`"),
        "{text}"
    );
    let (verdict, text, _) = change(before, stored_otherwise);
    assert_eq!(verdict, LockVerdict::NeedsReset, "{text}");
}

#[test]
fn a_store_of_another_kind_needs_a_reset() {
    let plain = |b: &StreamsBuilder| {
        let usage = b.stream::<String, i64>("usage").group_by_key();
        usage.reduce(|_, new, sum| sum + new, "bills");
    };
    let (verdict, text, _) = change(hourly, plain);
    assert_eq!(verdict, LockVerdict::NeedsReset);
    assert!(
        text.contains("store `bills`: kind is `key-value`, before `window`"),
        "{text}"
    );
}

#[test]
fn a_store_that_is_gone_leaves_its_changelog_and_is_told() {
    let two = |b: &StreamsBuilder| {
        let usage = b.stream::<String, i64>("usage").group_by_key();
        usage.count("counts");
        usage.reduce(|_, new, sum| sum + new, "sums");
    };
    let one = |b: &StreamsBuilder| {
        b.stream::<String, i64>("usage").group_by_key().count("counts");
    };
    let (verdict, text, group) = change(two, one);
    assert_eq!(verdict, LockVerdict::Compatible);
    assert!(
        text.contains("the store `sums` is gone") && text.contains("delete its changelog (sums-changelog)"),
        "{text}"
    );
    assert!(group, "{text}");
    let (verdict, text, _) = change(one, two);
    assert_eq!(verdict, LockVerdict::Compatible);
    assert!(text.contains("the store `sums` is new: it begins empty"), "{text}");
}

/// Two counts of one stream by generated names, after `filters` filters.
fn unnamed_counts(filters: usize) -> impl Fn(&StreamsBuilder) {
    move |b| {
        let mut clicks = b.stream::<String, i64>("clicks");
        for _ in 0..filters {
            clicks = clicks.filter(|_, _| true);
        }
        clicks.group_by_key().count(Materialized::unnamed());
        let sizes = clicks.select_key(|_, size| *size).group_by_key();
        sizes.count(Materialized::unnamed());
    }
}

#[test]
fn an_operator_inserted_before_generated_names_is_a_rename_of_each() {
    let (verdict, text, _) = change(unnamed_counts(0), unnamed_counts(1));
    assert_eq!(verdict, LockVerdict::Rename);
    let store = "KSTREAM-AGGREGATE-STATE-STORE-";
    let renamed = |old: &str, new: &str| format!("the store `{store}{old}` is called `{store}{new}` now");
    assert!(text.contains(&renamed("0000000001", "0000000002")), "{text}");
    assert!(text.contains(&renamed("0000000004", "0000000005")), "{text}");
    assert!(text.contains(&format!("name it `{store}0000000001`")), "{text}");
    assert!(
        text.contains("the repartition topic `KSTREAM-AGGREGATE-STATE-STORE-0000000004-repartition` is called"),
        "{text}"
    );
    assert!(
        text.contains("name the operation `KSTREAM-AGGREGATE-STATE-STORE-0000000004`"),
        "{text}"
    );
}

#[test]
fn the_name_that_the_advice_gives_makes_it_compatible() {
    let named = |b: &StreamsBuilder| {
        let clicks = b.stream::<String, i64>("clicks").filter(|_, _| true);
        clicks.group_by_key().count("KSTREAM-AGGREGATE-STATE-STORE-0000000001");
        let sizes = clicks
            .select_key(|_, size| *size)
            .group_by_key_with(Grouped::named("KSTREAM-AGGREGATE-STATE-STORE-0000000004"));
        sizes.count("KSTREAM-AGGREGATE-STATE-STORE-0000000004");
    };
    let report = locked(named).compare(&locked(unnamed_counts(0)));
    assert_eq!(report.verdict(), None, "{report}");
}

#[test]
fn a_generated_name_that_went_over_to_other_rows_is_found() {
    // Three operators are inserted, and the first store's new name is the second one's old name.
    let counts = |filters: usize| {
        move |b: &StreamsBuilder| {
            let mut clicks = b.stream::<String, i64>("clicks");
            for _ in 0..filters {
                clicks = clicks.filter(|_, _| true);
            }
            clicks.group_by_key().count(Materialized::unnamed());
            b.stream::<String, i64>("views")
                .group_by_key()
                .count(Materialized::unnamed());
        }
    };
    let before = locked(counts(0)).to_text();
    let names: Vec<&str> = before.lines().filter(|line| line.starts_with("[store")).collect();
    assert_eq!(names.len(), 2, "{before}");
    let (verdict, text, _) = change(counts(0), counts(3));
    assert_eq!(verdict, LockVerdict::Rename);
    assert!(
        text.contains("are another operator's, and would be taken for its own"),
        "{text}"
    );
}

#[test]
fn a_generated_name_that_comes_or_goes_among_its_like_is_not_taken_for_sure() {
    let counts = |unnamed: usize, named: &'static [&'static str]| {
        move |b: &StreamsBuilder| {
            let clicks = b.stream::<String, i64>("clicks").group_by_key();
            for name in named {
                clicks.count(*name);
            }
            for _ in 0..unnamed {
                clicks.count(Materialized::unnamed());
            }
        }
    };
    // Whether the new one was written first or last can't be seen.
    let (verdict, text, _) = change(counts(1, &[]), counts(2, &[]));
    assert_eq!(verdict, LockVerdict::Rename, "{text}");
    assert!(
        text.contains("is new, and like `KSTREAM-AGGREGATE-STATE-STORE-0000000001`"),
        "{text}"
    );
    assert!(text.contains("give the new one a name"), "{text}");
    let (verdict, text, _) = change(counts(2, &[]), counts(1, &[]));
    assert_eq!(verdict, LockVerdict::Rename, "{text}");
    assert!(
        text.contains("STORE-0000000003` is gone, and like `KSTREAM-AGGREGATE-STATE-STORE-0000000001`"),
        "{text}"
    );
    let of_its_own = counts(0, &["KSTREAM-AGGREGATE-STATE-STORE-0000000001", "again"]);
    let (verdict, text, _) = change(counts(1, &[]), of_its_own);
    assert_eq!(verdict, LockVerdict::Compatible, "{text}");
    // Of another type it is no one's like.
    let other_type = |b: &StreamsBuilder| {
        counts(1, &[])(b);
        let views = b.stream::<String, i64>("views").group_by_key();
        views.count(Materialized::unnamed());
    };
    let (verdict, text, _) = change(counts(1, &[]), other_type);
    assert_eq!(verdict, LockVerdict::Compatible, "{text}");
}

#[test]
fn an_operator_after_everything_else_changes_nothing() {
    let after = |b: &StreamsBuilder| {
        unnamed_counts(0)(b);
        b.stream::<String, i64>("other").filter(|_, _| true).to("out");
    };
    let (verdict, text, group) = change(unnamed_counts(0), after);
    assert_eq!(verdict, LockVerdict::Compatible, "{text}");
    assert!(text.contains("which reads other, is new"), "{text}");
    assert!(group);
}

#[test]
fn sub_topologies_that_move_are_restored_under_other_task_ids() {
    let counts = |topics: &'static [&'static str]| {
        move |b: &StreamsBuilder| {
            for topic in topics {
                b.stream::<String, i64>(topic)
                    .group_by_key()
                    .count(format!("{topic}-counts"));
            }
        }
    };
    let (verdict, text, _) = change(counts(&["b"]), counts(&["a", "b"]));
    assert_eq!(verdict, LockVerdict::Compatible, "{text}");
    assert!(
        text.contains("the sub-topology that reads b has the number 1, before 0"),
        "{text}"
    );
}

#[test]
fn another_partition_count_or_format_of_a_repartition_needs_a_reset() {
    let repartitioned = |how: fn() -> Repartitioned<String, i64>| {
        move |b: &StreamsBuilder| {
            b.stream::<String, i64>("in").repartition_with(how()).to("out");
        }
    };
    let of_8 = || Repartitioned::named("spread").partitions(8);
    let (verdict, text, group) = change(
        repartitioned(of_8),
        repartitioned(|| Repartitioned::named("spread").partitions(16)),
    );
    assert_eq!((verdict, group), (LockVerdict::NeedsReset, true), "{text}");
    assert!(
        text.contains("repartition topic `spread-repartition`: partitions is `16`, before `8`"),
        "{text}"
    );
    let json = || {
        Repartitioned::with(Utf8, Json::<i64>::new())
            .with_name("spread")
            .partitions(8)
    };
    let (verdict, text, _) = change(repartitioned(of_8), repartitioned(json));
    assert_eq!(verdict, LockVerdict::NeedsReset, "{text}");
    assert!(text.contains("value is `json`, before `long`"), "{text}");
    let (verdict, text, _) = change(
        repartitioned(of_8),
        repartitioned(|| Repartitioned::named("shard").partitions(8)),
    );
    assert_eq!(verdict, LockVerdict::Rename, "{text}");
    assert!(text.contains("name the operation `spread`"), "{text}");
}

#[test]
fn a_changelog_switched_on_needs_a_reset() {
    let count = |how: fn() -> Materialized<String, i64>| {
        move |b: &StreamsBuilder| {
            b.stream::<String, i64>("in").group_by_key().count(how());
        }
    };
    let (on, off) = (
        count(|| Materialized::named("counts")),
        count(|| Materialized::named("counts").without_logging()),
    );
    let (verdict, text, _) = change(off, on);
    assert_eq!(verdict, LockVerdict::NeedsReset);
    assert!(text.contains("changelog is `counts-changelog`, before `off`"), "{text}");
    let (verdict, text, _) = change(on, off);
    assert_eq!(verdict, LockVerdict::Compatible);
    assert!(
        text.contains("changelog is `off`, before `counts-changelog`: the rows stay on their disk"),
        "{text}"
    );
    assert!(!text.contains("cleanup.policy"), "{text}");
    let (verdict, text, _) = change(on, count(|| Materialized::named("counts").in_memory()));
    assert_eq!(verdict, LockVerdict::Compatible);
    assert!(text.contains("place is `memory`, before `disk`"), "{text}");
}

#[test]
fn times_of_rows_and_of_joins_show() {
    let ttl = |ttl| {
        move |b: &StreamsBuilder| {
            b.add_state_store(Stores::ttl::<String, bool>("seen", ttl));
            let supplier = || Unused;
            b.stream::<String, i64>("in")
                .process_with(supplier, streams_dsl::Connect::stores(["seen"]));
        }
    };
    let (verdict, text, _) = change(ttl(MINUTE), ttl(HOUR));
    assert_eq!(verdict, LockVerdict::Compatible);
    assert!(text.contains("ttl.ms is `3600000`, before `60000`"), "{text}");
    let joined = |within| {
        move |b: &StreamsBuilder| {
            let (left, right) = (b.stream::<String, i64>("left"), b.stream::<String, i64>("right"));
            left.join_with(
                &right,
                |_, l, r| l + r,
                JoinWindows::of(within),
                StreamJoined::named("j").store_named("j"),
            );
        }
    };
    let (verdict, text, _) = change(joined(SECOND), joined(MINUTE));
    assert_eq!(verdict, LockVerdict::Compatible);
    assert!(
        text.contains("store `j-this-join-store`: retention.ms is `120000`, before `2000`"),
        "{text}"
    );
}

struct Unused;
impl streams_dsl::Processor<String, i64, String, i64> for Unused {
    fn process(
        &mut self,
        _: &mut streams_dsl::ProcessorContext<'_, String, i64>,
        _: streams_dsl::Record<'_, String, i64>,
    ) -> Result<(), streams_dsl::BoxError> {
        Ok(())
    }
}

#[test]
fn a_serde_of_ones_own_is_known_by_name() {
    struct Cents;
    impl streams_dsl::Serde<i64> for Cents {
        fn serialize(&self, topic: &str, value: &i64, out: &mut Vec<u8>) -> Result<bool, streams_dsl::SerdeError> {
            Long.serialize(topic, value, out)
        }
        fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<i64, streams_dsl::SerdeError> {
            Long.deserialize(topic, bytes)
        }
    }
    let text = locked(|b| {
        let how = Materialized::with(Utf8, Cents).with_name("cents");
        b.stream::<String, i64>("in")
            .group_by_key()
            .reduce(|_, new, _| *new, how);
    })
    .to_text();
    assert!(text.contains("value = Cents\n"), "{text}");
}

#[test]
fn a_file_is_missing_then_written_then_compared() {
    let path = std::env::temp_dir().join(format!("topology-{}.lock", std::process::id()));
    let error = lock::compare(&built(hourly), &path).unwrap_err();
    assert!(matches!(error, CheckError::Missing { .. }), "{error}");
    assert!(
        error.to_string().contains("write it with UPDATE_TOPOLOGY_LOCK=1"),
        "{error}"
    );
    lock::write(&built(hourly), &path).unwrap();
    lock::compare(&built(hourly), &path).unwrap();
    let longer = built(|b| windowed(b, TimeWindows::of(2 * HOUR).grace(MINUTE), "bills".into()));
    let error = lock::compare(&longer, &path).unwrap_err().to_string();
    assert!(
        error.contains("needs reset") && error.contains("UPDATE_TOPOLOGY_LOCK=reset"),
        "{error}"
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_is_no_lockfile_is_refused_with_its_line() {
    let parse = |text: &str| TopologyLock::parse(text).unwrap_err();
    assert_eq!(parse(""), LockError::Version { found: String::new() });
    assert_eq!(parse("version = 2\n"), LockError::Version { found: "2".to_owned() });
    let line = |line, text: &str| LockError::Line {
        line,
        text: text.to_owned(),
    };
    assert_eq!(parse("version = 1\n\nkey = string\n"), line(3, "key = string"));
    assert_eq!(parse("version = 1\n[shop x]\n"), line(2, "[shop x]"));
    assert_eq!(parse("version = 1\n[store x]\n[store x]\n"), line(3, "[store x]"));
    assert_eq!(
        parse("# head\nversion = 1\n[store x]\n<<<<<<< ours\n"),
        line(4, "<<<<<<< ours")
    );
}
