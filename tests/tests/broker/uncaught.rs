//! The end of a stream thread and the application's answer to it (KIP-671, design rule 4.3).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use streams_dsl::{KafkaStreams, State, StreamThreadExceptionResponse, StreamsBuilder, StreamsConfig};
use streams_testkit::NewRecord;
use streams_tests::{broker, topic, unique};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(90);

/// An application with one instance or more, whose closure panics at the value `boom` while it is armed.
struct Application {
    id: String,
    input: String,
    output: String,
    armed: Arc<AtomicBool>,
}

impl Application {
    fn new(name: &str, partitions: i32) -> Self {
        Application {
            id: unique(name),
            input: topic(&format!("{name}-in"), partitions),
            output: topic(&format!("{name}-out"), partitions),
            armed: Arc::new(AtomicBool::new(true)),
        }
    }

    fn instance(&self, state: &TempDir) -> KafkaStreams {
        let builder = StreamsBuilder::new();
        let armed = Arc::clone(&self.armed);
        builder
            .stream::<String, String>(&self.input)
            .peek(move |_, value| assert!(value != "boom" || !armed.load(Ordering::Relaxed), "told to fail"))
            .to(&self.output);
        let config = StreamsConfig::from_properties([
            ("application.id", self.id.as_str()),
            ("bootstrap.servers", broker().bootstrap()),
            ("state.dir", state.path().to_str().unwrap()),
            ("processing.guarantee", "exactly_once_v2"),
        ]);
        KafkaStreams::new(builder.build().unwrap(), config.unwrap()).unwrap()
    }

    fn produce(&self, values: &[&str]) {
        let records = values.iter().map(|value| NewRecord::new("k", *value));
        broker().produce(&self.input, records).unwrap();
    }
}

#[test]
fn without_a_handler_a_failing_record_stops_the_client() {
    let app = Application::new("uncaught-default", 1);
    let state = TempDir::new().unwrap();
    let streams = app.instance(&state);
    app.produce(&["boom"]);
    streams.start().unwrap();
    assert!(streams.wait_for(LIMIT, |state| state == State::Error));
    let error = streams.error().unwrap();
    assert_eq!(error.record().map(|(_, offset)| offset), Some(0), "{error}");
    assert!(
        streams
            .set_uncaught_exception_handler(|_| StreamThreadExceptionResponse::ReplaceThread)
            .is_err()
    );
}

#[test]
fn a_replaced_thread_goes_on_where_the_failed_one_was() {
    let app = Application::new("uncaught-replace", 1);
    let state = TempDir::new().unwrap();
    let streams = app.instance(&state);
    let (armed, times) = (Arc::clone(&app.armed), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&times);
    streams
        .set_uncaught_exception_handler(move |error| {
            assert!(error.to_string().contains("told to fail"), "{error}");
            // The third time it is cured.
            if counted.fetch_add(1, Ordering::Relaxed) == 1 {
                armed.store(false, Ordering::Relaxed);
            }
            StreamThreadExceptionResponse::ReplaceThread
        })
        .unwrap();
    app.produce(&["one", "boom", "two"]);
    streams.start().unwrap();
    let records = broker().collector().wait_for_count(&app.output, 3, LIMIT).unwrap();
    let values: Vec<_> = records.iter().map(|record| record.value.clone().unwrap()).collect();
    assert_eq!(values, ["one", "boom", "two"].map(|value| value.as_bytes().to_vec()));
    assert_eq!(times.load(Ordering::Relaxed), 2);
    assert!(streams.wait_for(LIMIT, |state| state == State::Running));
    assert!(streams.close(LIMIT));
    assert_eq!(streams.state(), State::NotRunning);
    assert!(streams.error().is_none());
}

#[test]
fn rule_4_3_threads_are_not_replaced_for_ever_at_one_record() {
    let app = Application::new("uncaught-loop", 1);
    let state = TempDir::new().unwrap();
    let streams = app.instance(&state);
    streams
        .set_uncaught_exception_handler(|_| StreamThreadExceptionResponse::ReplaceThread)
        .unwrap();
    app.produce(&["one", "boom"]);
    streams.start().unwrap();
    assert!(streams.wait_for(LIMIT, |state| state == State::Error));
    let error = streams.error().unwrap();
    assert_eq!(
        error.record().map(|(at, offset)| (&*at.topic, offset)),
        Some((app.input.as_str(), 1))
    );
    assert!(error.to_string().contains("5 times"), "{error}");
}

#[test]
fn a_close_does_not_wait_for_a_thread_that_is_to_be_replaced() {
    let app = Application::new("uncaught-close", 1);
    let state = TempDir::new().unwrap();
    let streams = app.instance(&state);
    let failed = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&failed);
    streams
        .set_uncaught_exception_handler(move |_| {
            told.store(true, Ordering::Relaxed);
            StreamThreadExceptionResponse::ReplaceThread
        })
        .unwrap();
    app.produce(&["boom"]);
    streams.start().unwrap();
    assert!(streams.wait_for(LIMIT, |_| failed.load(Ordering::Relaxed)));
    assert!(streams.close(LIMIT));
    assert_eq!(streams.state(), State::NotRunning);
}

#[test]
fn shutdown_application_stops_every_instance() {
    let app = Application::new("uncaught-application", 2);
    let states = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let instances: Vec<KafkaStreams> = states.iter().map(|state| app.instance(state)).collect();
    for streams in &instances {
        streams
            .set_uncaught_exception_handler(|_| StreamThreadExceptionResponse::ShutdownApplication)
            .unwrap();
        streams.start().unwrap();
    }
    let tasks = |streams: &KafkaStreams| {
        let status = streams.threads().into_iter().filter_map(|thread| thread.status);
        status.map(|status| status.tasks.len()).sum::<usize>()
    };
    for streams in &instances {
        assert!(streams.wait_for(LIMIT, |state| state == State::Running && tasks(streams) == 1));
    }
    app.produce(&["boom"]);
    for streams in &instances {
        assert!(
            streams.wait_for(LIMIT, |state| state == State::Error),
            "{}",
            streams.state()
        );
    }
    let errors: Vec<String> = instances
        .iter()
        .map(|streams| streams.error().unwrap().to_string())
        .collect();
    assert!(errors.iter().any(|error| error.contains("told to fail")), "{errors:?}");
    assert!(
        errors.iter().any(|error| error.contains("whole application")),
        "{errors:?}"
    );
}
