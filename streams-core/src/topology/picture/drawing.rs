//! What is drawn, whatever the language of the picture: shapes with ids and texts, frames, lines.

use std::collections::BTreeMap;

use streams_state::StoreKind;

use super::super::described::{DescribedGroup, DescribedNode};
use super::super::{NodeKind, SinkTopic, SourceTopic, Topology};

/// A picture.
#[derive(Default)]
pub(super) struct Drawing {
    pub(super) topics: Vec<Shape>,
    pub(super) frames: Vec<Frame>,
    pub(super) lines: Vec<Line>,
}

/// A sub-topology with its nodes and stores.
pub(super) struct Frame {
    pub(super) id: u32,
    pub(super) title: String,
    pub(super) shapes: Vec<Shape>,
}

/// Something with a text in it.
pub(super) struct Shape {
    pub(super) id: String,
    /// The lines of the text.
    pub(super) text: Vec<String>,
    pub(super) kind: ShapeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShapeKind {
    Topic,
    Repartition,
    /// A topic that is chosen for each record.
    ChosenTopic,
    Source,
    Processor,
    Sink,
    Store,
}

/// A line between two shapes.
pub(super) struct Line {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) kind: LineKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// Records go this way.
    Records,
    /// A node uses a store.
    Uses,
    /// A node looks into a global store.
    LooksInto,
}

impl Drawing {
    pub(super) fn of(topology: &Topology) -> Self {
        let groups = topology.described();
        let mut artist = Artist {
            topology,
            nodes: numbered('n', groups.iter().flat_map(|group| names(group))),
            stores: numbered('s', topology.stores.keys().map(|name| &**name)),
            topics: BTreeMap::new(),
            drawing: Drawing::default(),
        };
        for group in &groups {
            artist.frame(group);
        }
        artist.drawing
    }
}

fn names<'a>(group: &'a DescribedGroup<'a>) -> impl Iterator<Item = &'a str> {
    group.nodes.iter().map(|node| &*node.definition.name)
}

/// Ids by name, in the order of the names' first appearance.
fn numbered<'a>(letter: char, names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, String> {
    let mut ids = BTreeMap::new();
    for name in names {
        let next = ids.len();
        ids.entry(name).or_insert_with(|| format!("{letter}{next}"));
    }
    ids
}

struct Artist<'a> {
    topology: &'a Topology,
    nodes: BTreeMap<&'a str, String>,
    stores: BTreeMap<&'a str, String>,
    /// The ids of topics that have a name.
    topics: BTreeMap<SourceTopic, String>,
    drawing: Drawing,
}

impl Artist<'_> {
    fn frame(&mut self, group: &DescribedGroup<'_>) {
        let mut shapes: Vec<Shape> = group.nodes.iter().map(|node| self.node(node)).collect();
        let mut drawn: Vec<&str> = Vec::new();
        for store in group.nodes.iter().flat_map(|node| &node.stores) {
            if !drawn.contains(store) {
                drawn.push(store);
                shapes.push(self.store(store));
            }
        }
        let title = if group.global {
            format!("global store, number {}", group.id)
        } else {
            format!("sub-topology {}", group.id)
        };
        self.drawing.frames.push(Frame {
            id: group.id,
            title,
            shapes,
        });
        for node in &group.nodes {
            self.lines(node);
        }
    }

    fn node(&self, node: &DescribedNode<'_>) -> Shape {
        let kind = match node.definition.kind {
            NodeKind::Source { .. } => ShapeKind::Source,
            NodeKind::Processor { .. } => ShapeKind::Processor,
            NodeKind::Sink { .. } => ShapeKind::Sink,
        };
        Shape {
            id: id_of(&self.nodes, &node.definition.name),
            text: vec![node.definition.name.to_string()],
            kind,
        }
    }

    fn store(&self, name: &str) -> Shape {
        let kind = self.topology.store(name).map(|store| kind_of(store.spec.kind));
        let text = [Some(name), kind].into_iter().flatten().map(str::to_owned);
        Shape {
            id: id_of(&self.stores, name),
            text: text.collect(),
            kind: ShapeKind::Store,
        }
    }

    fn lines(&mut self, node: &DescribedNode<'_>) {
        let me = id_of(&self.nodes, &node.definition.name);
        if let NodeKind::Source { topics, pattern, .. } = &node.definition.kind {
            if let Some(pattern) = pattern {
                let text = vec!["topics that fit".to_owned(), pattern.as_str().to_owned()];
                let from = self.topic_shape(text, ShapeKind::ChosenTopic);
                self.line(from, me.clone(), LineKind::Records);
            }
            for topic in topics {
                let from = self.topic(topic);
                self.line(from, me.clone(), LineKind::Records);
            }
        }
        for next in &node.successors {
            let next = id_of(&self.nodes, next);
            self.line(me.clone(), next, LineKind::Records);
        }
        if let NodeKind::Sink { topic, .. } = &node.definition.kind {
            let to = match topic {
                SinkTopic::Static(topic) => self.topic(topic),
                SinkTopic::Dynamic(chooser) => {
                    let text = vec!["a topic for each record".to_owned(), chooser.clone()];
                    self.topic_shape(text, ShapeKind::ChosenTopic)
                }
            };
            self.line(me.clone(), to, LineKind::Records);
        }
        for store in &node.stores {
            let store = id_of(&self.stores, store);
            self.line(me.clone(), store, LineKind::Uses);
        }
        // What `describe()` leaves out: who looks into global stores.
        for store in node
            .definition
            .stores
            .iter()
            .filter(|store| !node.stores.contains(&&***store))
        {
            let store = id_of(&self.stores, store);
            self.line(store, me.clone(), LineKind::LooksInto);
        }
    }

    /// The shape of a topic, which is drawn once.
    fn topic(&mut self, topic: &SourceTopic) -> String {
        if let Some(known) = self.topics.get(topic) {
            return known.clone();
        }
        let kind = if topic.internal {
            ShapeKind::Repartition
        } else {
            ShapeKind::Topic
        };
        let id = self.topic_shape(vec![topic.name.to_string()], kind);
        self.topics.insert(topic.clone(), id.clone());
        id
    }

    fn topic_shape(&mut self, text: Vec<String>, kind: ShapeKind) -> String {
        let id = format!("t{}", self.drawing.topics.len());
        let shape = Shape {
            id: id.clone(),
            text,
            kind,
        };
        self.drawing.topics.push(shape);
        id
    }

    fn line(&mut self, from: String, to: String, kind: LineKind) {
        self.drawing.lines.push(Line { from, to, kind });
    }
}

/// Every name has an id; a name that a broken topology refers to and does not have gets one that can be seen.
fn id_of(ids: &BTreeMap<&str, String>, name: &str) -> String {
    ids.get(name).cloned().unwrap_or_else(|| "missing".to_owned())
}

fn kind_of(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::KeyValue => "key-value",
        StoreKind::Window {
            retain_duplicates: true,
            ..
        } => "join window",
        StoreKind::Window { .. } => "window",
        StoreKind::Session { .. } => "session",
        StoreKind::Versioned { .. } => "versioned",
        StoreKind::Expiring { .. } => "rows with a time to live",
        _ => "store",
    }
}
