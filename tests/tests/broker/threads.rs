//! Stream threads that are added and removed while the instance runs (KIP-663).

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use streams_dsl::{Error, KafkaStreams, State};
use streams_testkit::wait_until;
use streams_tests::local::{LIMIT, Local, stop, wait_running};

const PARTITIONS: i32 = 4;

fn counting(case: &str) -> Local {
    let app = Local::new(case, &[("in", PARTITIONS), ("out", PARTITIONS)], |builder, names| {
        let stream = builder.stream::<String, String>(names.of("in"));
        stream.group_by_key().count("c").to_stream().to(names.of("out"));
    });
    app.with("streams.heartbeat.max.ms", "500")
}

/// One record to each partition.
fn feed(app: &Local, time: i64) {
    for partition in 0..PARTITIONS {
        app.produce_to("in", partition, &[(&format!("p{partition}"), Some("x"), time)]);
    }
}

/// Running tasks of each thread, by name.
fn tasks(streams: &KafkaStreams) -> Vec<usize> {
    let running = |thread: streams_dsl::ThreadMetadata| {
        let tasks = thread.status.map(|status| status.tasks).unwrap_or_default();
        let runs = |task: &&streams_core::runtime::TaskStatus| task.phase == streams_core::runtime::TaskPhase::Running;
        tasks.iter().filter(runs).count()
    };
    streams.threads().into_iter().map(running).collect()
}

fn wait_tasks(streams: &KafkaStreams, expected: &[usize]) {
    let shared = wait_until("the tasks to be shared out", LIMIT, || Ok(tasks(streams) == expected));
    shared.unwrap_or_else(|error| panic!("{error}: {:?}, {:?}", tasks(streams), streams.error()));
    wait_running(streams);
}

#[test]
fn threads_come_and_go_and_every_record_counts_once() {
    let app = counting("threads");
    let streams = app.instance_at(app.state.path());
    assert_eq!(streams.add_stream_thread().unwrap(), None, "not started");
    assert_eq!(streams.remove_stream_thread(LIMIT).unwrap(), None, "not started");
    streams.start().unwrap();
    wait_tasks(&streams, &[4]);
    feed(&app, 1);
    let added = streams.add_stream_thread().unwrap().unwrap();
    assert!(added.ends_with("-StreamThread-2"), "{added}");
    wait_tasks(&streams, &[2, 2]);
    feed(&app, 2);
    assert_eq!(streams.remove_stream_thread(LIMIT).unwrap(), Some(added));
    wait_tasks(&streams, &[4]);
    feed(&app, 3);
    // Without any thread it waits for one.
    let last = streams.remove_stream_thread(LIMIT).unwrap().unwrap();
    assert!(last.ends_with("-StreamThread-1"), "{last}");
    assert_eq!((streams.threads().len(), streams.state()), (0, State::Running));
    assert_eq!(streams.remove_stream_thread(LIMIT).unwrap(), None);
    feed(&app, 4);
    assert_eq!(
        streams.add_stream_thread().unwrap(),
        Some(last),
        "the smallest free number"
    );
    wait_tasks(&streams, &[4]);
    for partition in 0..PARTITIONS {
        app.wait_committed_of(&streams, "in", partition, 4);
    }
    stop(&streams);
    assert_eq!(streams.add_stream_thread().unwrap(), None, "closed");
    let counts = app.counts("out");
    for partition in 0..PARTITIONS {
        let key = format!("p{partition}");
        let of_key: Vec<&str> = counts.iter().filter(|row| row.0 == key).map(|row| &*row.1).collect();
        assert_eq!(of_key, ["1", "2", "3", "4"], "{key}");
    }
}

#[test]
fn an_instance_without_threads_closes_at_once() {
    let app = counting("no-threads");
    let streams = app.start_running();
    streams.remove_stream_thread(LIMIT).unwrap().unwrap();
    stop(&streams);
}

#[test]
fn a_removal_that_takes_too_long_is_told_and_goes_on() {
    let app = counting("slow-removal");
    let streams = app.start_running();
    let error = streams.remove_stream_thread(Duration::ZERO).unwrap_err();
    assert!(
        matches!(&*error, Error::Timeout { what, .. } if what.ends_with("-StreamThread-1")),
        "{error}"
    );
    wait_until("its end", LIMIT, || Ok(streams.threads().is_empty())).unwrap();
    stop(&streams);
}

/// What a closure on a stream thread learned: the thread that it removed and its own.
type Removed = Arc<Mutex<Option<(Option<String>, String)>>>;

#[test]
fn a_stream_thread_removes_another_one_and_not_itself() {
    let (handle, removed): (Arc<OnceLock<Weak<KafkaStreams>>>, Removed) = Default::default();
    let (in_closure, told) = (Arc::clone(&handle), Arc::clone(&removed));
    let app = Local::new("remove-inside", &[("in", 2), ("out", 2)], move |builder, names| {
        let (handle, removed) = (Arc::clone(&in_closure), Arc::clone(&told));
        let stream = builder.stream::<String, String>(names.of("in"));
        let stream = stream.peek(move |_, value| {
            if value == "remove" {
                let streams = handle.get().and_then(Weak::upgrade).unwrap();
                let own = std::thread::current().name().unwrap().to_owned();
                let name = streams.remove_stream_thread(LIMIT).unwrap();
                *removed.lock().unwrap() = Some((name, own));
            }
        });
        stream.to(names.of("out"));
    })
    .with("num.stream.threads", "2")
    .with("streams.heartbeat.max.ms", "500");
    let streams = Arc::new(app.instance_at(app.state.path()));
    handle.set(Arc::downgrade(&streams)).unwrap();
    streams.start().unwrap();
    wait_tasks(&streams, &[1, 1]);
    app.produce("in", &[("k", Some("remove"), 1)]);
    app.wait_committed(&streams, "in", 1);
    let (name, own) = removed.lock().unwrap().take().unwrap();
    assert!(name.is_some() && name.as_deref() != Some(&*own), "{name:?} by {own}");
    wait_tasks(&streams, &[2]);
    stop(&streams);
}

#[test]
fn a_state_listener_is_refused_and_told_where_to_do_it() {
    let app = counting("listener");
    let streams = Arc::new(app.instance_at(app.state.path()));
    let (weak, answer) = (Arc::downgrade(&streams), Arc::new(Mutex::new(None)));
    let told = Arc::clone(&answer);
    streams.set_state_listener(move |new, _| {
        if new == State::Running {
            let refused = weak.upgrade().unwrap().add_stream_thread().unwrap_err();
            told.lock().unwrap().get_or_insert(refused.to_string());
        }
    });
    streams.start().unwrap();
    wait_running(&streams);
    wait_until("the answer", LIMIT, || Ok(answer.lock().unwrap().is_some())).unwrap();
    assert!(answer.lock().unwrap().as_deref().unwrap().contains("another thread"));
    stop(&streams);
}
