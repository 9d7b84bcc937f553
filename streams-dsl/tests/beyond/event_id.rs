//! Identities that survive replays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use streams_dsl::prelude::*;
use streams_dsl::{EventId, Record};

/// A topology that fails on its third record, as long as it is told to.
fn topology(fails: &Arc<AtomicBool>) -> Topology {
    let builder = StreamsBuilder::new();
    let fails = Arc::clone(fails);
    builder
        .stream::<String, i64>("in")
        .map_values_with_id(move |_, value, id| {
            assert!(!(fails.load(Ordering::Relaxed) && *value == 3), "told to");
            id.clone()
        })
        .to("out");
    builder.build().unwrap()
}

#[test]
fn a_replay_gives_the_ids_of_the_first_try() {
    let fails = Arc::new(AtomicBool::new(true));
    let options = DriverOptions {
        commit_each: false,
        ..DriverOptions::default()
    };
    let mut driver = TopologyTestDriver::new(&topology(&fails), options).unwrap();
    let input = TestInput::<String, i64>::of("in");
    let records = [("a", 1, 0), ("b", 2, 0), ("a", 3, 0)];
    input.pipe_all(&mut driver, records).unwrap_err();
    let output = TestOutput::<String, EventId>::of("out");
    assert!(output.is_empty(&driver), "nothing was committed");
    fails.store(false, Ordering::Relaxed);
    driver.restart().unwrap();
    let ids = output.read_values_to_list(&mut driver).unwrap();
    assert_eq!(ids, [0, 1, 2].map(|offset| EventId::of("in", 0, offset)));
}

#[test]
fn a_record_of_a_punctuation_has_no_id_and_that_is_a_failure_of_the_step() {
    use streams_dsl::{BoxError, Processor, ProcessorContext, PunctuationType, PunctuatorId};
    struct Ticks;
    impl Processor<String, i64, String, i64> for Ticks {
        fn init(&mut self, cx: &mut ProcessorContext<'_, String, i64>) -> Result<(), BoxError> {
            cx.schedule_every(SECOND, PunctuationType::WallClockTime);
            Ok(())
        }

        fn process(
            &mut self,
            cx: &mut ProcessorContext<'_, String, i64>,
            record: Record<'_, String, i64>,
        ) -> Result<(), BoxError> {
            Ok(cx.forward(record)?)
        }

        fn punctuate(
            &mut self,
            cx: &mut ProcessorContext<'_, String, i64>,
            _: PunctuatorId,
            timestamp_ms: i64,
        ) -> Result<(), BoxError> {
            Ok(cx.forward(Record::new(&"tick".to_owned(), &0, timestamp_ms))?)
        }
    }
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<String, i64>("in").process(|| Ticks);
    stream.map_values_with_id(|_, _, id| id.clone()).to("out");
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    let failed = driver.advance_wall_clock_time(SECOND).unwrap_err().to_string();
    assert!(failed.contains("has no event id"), "{failed}");
}
