//! How fast a task's state is: 1 million keys of 8 bytes, values of 100 bytes.
//!
//! `cargo run -p streams-state --example point_access [-- KEYS]`; with `--no-default-features` it measures memory. Prints
//! nanoseconds per operation: of the calling thread's processor time where the kernel tells it (so that a busy machine
//! disturbs little), else of wall-clock time.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(clippy::unwrap_used, reason = "an example may fail loudly")]

use std::ops::Bound;
use std::time::Instant;

use streams_state::{
    Direction, EpochMetadata, MemoryBudget, StateDirectory, StateDirectoryConfig, StateError, StoreId, StoreSpec,
    TaskState,
};

/// Rows per epoch.
const EPOCH: u32 = 10_000;

fn main() -> Result<(), StateError> {
    let keys: u32 = std::env::args()
        .nth(1)
        .and_then(|arg| arg.parse().ok())
        .unwrap_or(1_000_000);
    let home = std::env::temp_dir().join(format!("streams-state-{}", std::process::id()));
    let config = StateDirectoryConfig {
        memory: MemoryBudget::of(1 << 30),
        ..StateDirectoryConfig::new(&home, "bench")
    };
    let directory = StateDirectory::open(config)?;
    let specs = || {
        vec![
            StoreSpec::key_value("rows"),
            StoreSpec::window("windows", 3_600_000, false),
        ]
    };
    let mut state = TaskState::open(&directory, "0_0", specs())?;
    let (rows, windows) = (state.store_id("rows").unwrap(), state.store_id("windows").unwrap());
    println!(
        "{keys} keys of 8 bytes, values of 100 bytes, on disk: {}",
        state.is_persistent(rows)
    );

    measure_fill(&mut state, rows, keys)?;
    measure_reads(&state, rows, keys, "get from the base")?;
    measure_misses(&state, rows, keys)?;
    measure_overlay(&mut state, rows)?;
    measure_ranges(&mut state, rows, keys)?;
    measure_windows(&mut state, windows)?;
    if state.is_persistent(rows) {
        state.close()?;
        let begin = Stopwatch::start();
        state = TaskState::open(&directory, "0_0", specs())?;
        println!("open again                {:>9.1} ms", begin.seconds() * 1e3);
        measure_reads(&state, rows, keys, "get after opening")?;
    }
    state.close()?;
    drop(directory);
    std::fs::remove_dir_all(&home).unwrap();
    Ok(())
}

fn report(what: &str, begin: Stopwatch, operations: u32) {
    println!(
        "{what:<25} {:>9.0} ns",
        begin.seconds() * 1e9 / f64::from(operations.max(1))
    );
}

/// Processor time of this thread, or wall-clock time.
struct Stopwatch {
    wall: Instant,
    busy_ns: Option<u64>,
}

impl Stopwatch {
    fn start() -> Self {
        Self {
            wall: Instant::now(),
            busy_ns: busy_ns(),
        }
    }

    fn seconds(&self) -> f64 {
        match (self.busy_ns, busy_ns()) {
            (Some(begin), Some(end)) => (end - begin) as f64 / 1e9,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

fn busy_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// A key of 8 bytes in an order that is not the insertion's.
fn key(n: u32) -> [u8; 8] {
    u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn commit(state: &mut TaskState) -> Result<(), StateError> {
    state.freeze()?;
    state.apply(&EpochMetadata::default())
}

fn measure_fill(state: &mut TaskState, rows: StoreId, keys: u32) -> Result<(), StateError> {
    let begin = Stopwatch::start();
    for n in 0..keys {
        state.put(rows, &key(n), Some(&[n as u8; 100]))?;
        if n % EPOCH == EPOCH - 1 {
            commit(state)?;
        }
    }
    commit(state)?;
    report("put and apply", begin, keys);
    Ok(())
}

fn measure_reads(state: &TaskState, rows: StoreId, keys: u32, what: &str) -> Result<(), StateError> {
    let (begin, mut bytes) = (Stopwatch::start(), 0);
    for n in 0..keys {
        let n = n.wrapping_mul(2_654_435_761) % keys;
        state.get(rows, &key(n), &mut |value| bytes += value.map_or(0, <[u8]>::len))?;
    }
    report(what, begin, keys);
    assert_eq!(bytes, keys as usize * 100, "every key was found");
    Ok(())
}

fn measure_misses(state: &TaskState, rows: StoreId, keys: u32) -> Result<(), StateError> {
    let (begin, mut found) = (Stopwatch::start(), 0);
    for n in keys..keys.saturating_mul(2) {
        state.get(rows, &key(n), &mut |value| found += u32::from(value.is_some()))?;
    }
    report("get of a missing key", begin, keys);
    assert_eq!(found, 0);
    Ok(())
}

fn measure_overlay(state: &mut TaskState, rows: StoreId) -> Result<(), StateError> {
    let times = 20;
    let begin = Stopwatch::start();
    for n in (0..EPOCH).cycle().take((EPOCH * times) as usize) {
        if n == 0 {
            state.drop_open();
        }
        state.put(rows, &key(n), Some(&[n as u8; 100]))?;
    }
    report("put, new in the overlay", begin, EPOCH * times);
    let begin = Stopwatch::start();
    for n in (0..EPOCH).cycle().take((EPOCH * times) as usize) {
        state.put(rows, &key(n), Some(&[n as u8; 100]))?;
    }
    report("put again", begin, EPOCH * times);
    let (begin, mut bytes) = (Stopwatch::start(), 0);
    for n in (0..EPOCH).cycle().take((EPOCH * times) as usize) {
        state.get(rows, &key(n), &mut |value| bytes += value.map_or(0, <[u8]>::len))?;
    }
    report("get from the overlay", begin, EPOCH * times);
    println!(
        "overlay                   {:>9} bytes a row of 108",
        state.overlay_bytes() / EPOCH as usize
    );
    state.freeze()?;
    let begin = Stopwatch::start();
    state.apply(&EpochMetadata::default())?;
    report("apply, a row", begin, EPOCH);
    Ok(())
}

fn measure_ranges(state: &mut TaskState, rows: StoreId, keys: u32) -> Result<(), StateError> {
    for n in 0..EPOCH {
        state.put(rows, &key(n), Some(&[n as u8; 100]))?;
    }
    let begin = Stopwatch::start();
    let mut all = state.range(rows, Bound::Unbounded, Bound::Unbounded, Direction::Forward)?;
    let mut seen = 0;
    while all.next_row()?.is_some() {
        seen += 1;
    }
    report("range over all, a row", begin, seen);
    assert_eq!(seen, keys);
    drop(all);
    let begin = Stopwatch::start();
    let times = 20_000;
    for n in 0..times {
        let mut one = state.range(rows, Bound::Included(&key(n)), Bound::Unbounded, Direction::Forward)?;
        assert!(one.next_row()?.is_some());
        state.put(rows, &key(n), Some(&[n as u8; 100]))?;
    }
    report("range of one, then a put", begin, times);
    state.drop_open();
    Ok(())
}

fn measure_windows(state: &mut TaskState, windows: StoreId) -> Result<(), StateError> {
    let (begin, times) = (Stopwatch::start(), 200_000);
    for n in 0..times {
        state.window_put(
            windows,
            &key(n % 1_000),
            i64::from(n / 1_000) * 60_000,
            Some(&[n as u8; 100]),
        )?;
        if n % EPOCH == EPOCH - 1 {
            commit(state)?;
        }
    }
    report("window put and apply", begin, times);
    let (begin, times) = (Stopwatch::start(), 20_000);
    for n in 0..times {
        let fetched = state.window_fetch_key(windows, &key(n % 1_000), 0, 10 * 60_000, Direction::Forward)?;
        assert_eq!(fetched.count(), 11);
    }
    report("window fetch of 11 rows", begin, times);
    let begin = Stopwatch::start();
    let buckets = state.expire_windows(windows, 100 * 60_000)?;
    commit(state)?;
    println!("expire {buckets} buckets          {:>9.1} ms", begin.seconds() * 1e3);
    Ok(())
}
