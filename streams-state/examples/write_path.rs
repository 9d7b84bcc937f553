//! Which write path of RocksDB an apply should use: a log without fsync, or no log and atomic flushes; levels or
//! universal compaction. The choice and the numbers stand in `ARCHITECTURE.md`.
//!
//! `cargo run -p streams-state --example write_path [-- KEYS EPOCHS]`. Each way writes the same epochs (10,000 rows of
//! 8 + 100 bytes over three families and a metadata row, keys drawn from KEYS) into a new database, is then left as a
//! crash would leave it, and is opened again. `us/row` and `get ns` are processor time of the calling thread, `cpu s` is the
//! process's with its background threads.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(clippy::unwrap_used, reason = "an example may fail loudly")]

use std::path::Path;
use std::time::Instant;

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompactionStyle, DBCompressionType, Options, WriteBatch,
    WriteOptions,
};

const ROWS: u32 = 10_000;
const FAMILIES: [&str; 4] = ["default", "a", "b", "c"];

#[derive(Debug, Clone, Copy)]
struct Way {
    name: &'static str,
    log: bool,
    universal: bool,
    compression: DBCompressionType,
}

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let keys: u32 = args.next().unwrap_or(1_000_000);
    let epochs: u32 = args.next().unwrap_or(300);
    let ways = [
        Way {
            name: "log, levels, lz4",
            log: true,
            universal: false,
            compression: DBCompressionType::Lz4,
        },
        Way {
            name: "log, levels, plain",
            log: true,
            universal: false,
            compression: DBCompressionType::None,
        },
        Way {
            name: "log, universal, lz4",
            log: true,
            universal: true,
            compression: DBCompressionType::Lz4,
        },
        Way {
            name: "atomic flush, levels, lz4",
            log: false,
            universal: false,
            compression: DBCompressionType::Lz4,
        },
    ];
    println!("{epochs} epochs of {ROWS} rows, {keys} keys");
    println!(
        "{:<27} rows/s  cpu s  written MB  disk MB  get ns  reopen ms  epochs lost",
        "way"
    );
    // In turn, twice: what the machine does beside shows as a difference between the rounds.
    for way in ways.iter().chain(&ways) {
        measure(*way, keys, epochs);
    }
}

fn options(way: Way, cache: &Cache) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_bloom_filter(10.0, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_block_based_table_factory(&table);
    options.set_write_buffer_size(32 << 20);
    options.set_max_total_wal_size(48 << 20);
    options.set_atomic_flush(!way.log);
    options.set_compression_type(way.compression);
    options.set_allow_concurrent_memtable_write(false);
    options.set_memtable_prefix_bloom_ratio(0.05);
    options.set_memtable_whole_key_filtering(true);
    if way.universal {
        options.set_compaction_style(DBCompactionStyle::Universal);
    } else {
        options.set_level_compaction_dynamic_level_bytes(true);
    }
    options
}

fn open(way: Way, path: &Path, cache: &Cache) -> DB {
    let families = FAMILIES.map(|name| ColumnFamilyDescriptor::new(name, options(way, cache)));
    DB::open_cf_descriptors(&options(way, cache), path, families).unwrap()
}

fn measure(way: Way, keys: u32, epochs: u32) {
    let path = std::env::temp_dir().join(format!("write-path-{}", std::process::id()));
    let copy = path.with_extension("crashed");
    let cache = Cache::new_lru_cache(256 << 20);
    let db = open(way, &path, &cache);
    let (begin, busy, cpu, written) = (Instant::now(), busy_ns(), cpu_seconds(), written_bytes());
    for epoch in 0..epochs {
        apply(&db, way, keys, epoch);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let rows = f64::from(epochs) * f64::from(ROWS);
    let busy_us = (busy_ns() - busy) as f64 / 1e3 / rows;
    let get_ns = measure_gets(&db, keys);
    let (cpu, written) = (cpu_seconds() - cpu, written_bytes() - written);
    let disk = size_of_folder(&path);
    // What a kill would leave: the files as they are, without closing.
    copy_folder(&path, &copy);
    drop(db);
    let begin = Instant::now();
    let db = open(way, &copy, &cache);
    let reopen = begin.elapsed().as_secs_f64();
    let known = db
        .get("epoch")
        .unwrap()
        .map_or(0, |value| u32::from_be_bytes(value.try_into().unwrap()) + 1);
    println!(
        "{:<27} {:>6.0}  {busy_us:>6.2}  {cpu:>5.1}  {:>10.0}  {:>7.0}  {get_ns:>6.0}  {:>9.1}  {:>11}",
        way.name,
        rows / seconds,
        written as f64 / 1e6,
        disk as f64 / 1e6,
        reopen * 1e3,
        epochs - known,
    );
    drop(db);
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::remove_dir_all(&copy).unwrap();
}

fn key(n: u32) -> [u8; 8] {
    u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Bytes that compress about as well as small records do.
fn value(n: u32) -> [u8; 100] {
    let mut value = [b'0'; 100];
    let digits = format!(
        "{{\"account\":{n},\"amount_cents\":{},\"seats\":{}}}",
        n.wrapping_mul(7_919),
        n % 400
    );
    value
        .iter_mut()
        .zip(digits.bytes())
        .for_each(|(slot, byte)| *slot = byte);
    value
}

fn apply(db: &DB, way: Way, keys: u32, epoch: u32) {
    let mut batch = WriteBatch::default();
    for row in 0..ROWS {
        let n = (epoch * ROWS + row).wrapping_mul(2_654_435_761) % keys;
        let family = FAMILIES
            .get(1 + (row % 3) as usize)
            .and_then(|name| db.cf_handle(name))
            .unwrap();
        batch.put_cf(family, key(n), value(n ^ epoch));
    }
    batch.put("epoch", epoch.to_be_bytes());
    let mut options = WriteOptions::default();
    options.disable_wal(!way.log);
    db.write_opt(batch, &options).unwrap();
}

fn measure_gets(db: &DB, keys: u32) -> f64 {
    let (times, mut found) = (300_000_u32, 0_usize);
    let family = db.cf_handle("a").unwrap();
    let begin = busy_ns();
    for n in 0..times {
        let n = n.wrapping_mul(40_503) % keys;
        found += db.get_pinned_cf(family, key(n)).unwrap().map_or(0, |value| value.len());
    }
    assert!(found > 0);
    (busy_ns() - begin) as f64 / f64::from(times)
}

/// Processor time of the calling thread: a busy machine disturbs it little.
fn busy_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace()
        .next()
        .and_then(|field| field.parse().ok())
        .unwrap_or(0)
}

/// User and system time of this process, from the kernel (clock ticks of 10 ms).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .filter_map(|f| f.parse().ok())
        .collect();
    // After the name and the state letter: utime and stime are the 11th and 12th numbers.
    fields.iter().skip(10).take(2).sum::<f64>() / 100.0
}

fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines()
        .find_map(|line| line.strip_prefix("wchar: ")?.trim().parse().ok())
        .unwrap_or(0)
}

fn size_of_folder(path: &Path) -> u64 {
    std::fs::read_dir(path)
        .unwrap()
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .map(|file| file.len())
        .sum()
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // Compaction may remove a file in between; one that matters would fail the opening.
        let _ = std::fs::copy(entry.path(), to.join(entry.file_name()));
    }
}
