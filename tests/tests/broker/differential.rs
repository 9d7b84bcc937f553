//! Seeded topologies through Java's test driver and ours. It needs a JVM and no broker.

use streams_tests::differential::{Java, run};

/// Enough for every change; `cargo xtask differential --topologies 2000` runs more.
const TOPOLOGIES: u64 = 300;

#[test]
fn seeded_topologies_give_what_javas_driver_gives() {
    let mut java = match Java::start() {
        Ok(java) => java,
        Err(missing) => {
            println!("NOT RUN: {missing}");
            return;
        }
    };
    let report = run(&mut java, 0, TOPOLOGIES, |_| ()).unwrap();
    println!("{report}");
    assert!(report.findings.is_empty(), "{report}");
}
