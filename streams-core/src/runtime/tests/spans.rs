//! The spans of a stream thread's work, as a subscriber sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::World;
use super::nodes::counting;

/// Remembers every span by its name and fields, the spans that each event lay in, and what events said.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    spans: BTreeMap<u64, String>,
    entered: Vec<u64>,
    closed: BTreeSet<u64>,
    events: Vec<(String, String)>,
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Text::default();
        span.record(&mut fields);
        let mut recorded = self.0.lock().unwrap();
        let id = recorded.spans.len() as u64 + 1;
        recorded
            .spans
            .insert(id, format!("{}{{{}}}", span.metadata().name(), fields.0.trim_end()));
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let mut recorded = self.0.lock().unwrap();
        let path: Vec<String> = recorded.entered.iter().map(|id| recorded.spans[id].clone()).collect();
        recorded.events.push((path.join(" > "), text.0));
    }

    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().entered.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut recorded = self.0.lock().unwrap();
        assert_eq!(recorded.entered.pop(), Some(span.into_u64()), "spans are left in order");
    }

    fn try_close(&self, span: Id) -> bool {
        self.0.lock().unwrap().closed.insert(span.into_u64())
    }
}

fn recorded(work: impl FnOnce()) -> Recorded {
    let recorder = Recorder::default();
    tracing::subscriber::with_default(recorder.clone(), work);
    std::mem::take(&mut *recorder.0.lock().unwrap())
}

#[test]
fn tasks_and_commits_have_spans_with_their_names_and_nothing_of_records() {
    let recorded = recorded(|| {
        let mut world = World::new(counting(), 1 << 20);
        world.feed((0..30).map(|at| (["a-secret", "b-secret"][at as usize % 2], at)));
        world.start();
        world.run_to_end();
    });
    let names: BTreeSet<&str> = recorded.spans.values().map(String::as_str).collect();
    for name in [
        "task{task_id=0_0}",
        "task{task_id=0_1}",
        "commit{epoch=1}",
        "commit{epoch=2}",
    ] {
        assert!(names.contains(name), "no {name} in {names:?}");
    }
    let committed: Vec<_> = recorded
        .events
        .iter()
        .filter(|(_, text)| text.contains("committed"))
        .collect();
    assert!(!committed.is_empty());
    assert!(
        committed.iter().all(|(path, _)| path.starts_with("commit{epoch=")),
        "{committed:?}"
    );
    assert!(recorded.entered.is_empty());
    for (path, text) in &recorded.events {
        assert!(!path.contains("secret") && !text.contains("secret"), "{path}: {text}");
    }
}

#[test]
fn a_span_ends_with_what_it_is_named_after() {
    let recorded = recorded(|| {
        let mut world = World::new(counting(), 1 << 20);
        world.feed((0..30).map(|at| ("a", at)));
        world.start();
        world.run_to_end();
        world.kill();
    });
    let open: Vec<&String> = recorded
        .spans
        .iter()
        .filter(|(id, _)| !recorded.closed.contains(id))
        .map(|(_, name)| name)
        .collect();
    assert!(open.is_empty(), "{open:?}");
}
