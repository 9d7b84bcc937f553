//! `split` and its branches.

use std::sync::{Arc, Mutex, PoisonError};

use streams_core::ProcessResult;
use streams_core::Record;
use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, TaskContext};

use super::{KStream, Keys};
use crate::graph::Processor;
use crate::names::Step;
use crate::node::{PassThrough, factory};

/// A branch's name: `"late".into()`, or none.
#[derive(Clone, Debug, Default)]
pub struct Branched(Option<String>);

impl Branched {
    /// No name: the branch is numbered by its position, from 1; the default branch is 0.
    #[must_use]
    pub fn unnamed() -> Self {
        Branched(None)
    }
}

impl From<&str> for Branched {
    fn from(name: &str) -> Self {
        Branched(Some(name.to_owned()))
    }
}

type Predicate<K, V> = Arc<dyn Fn(&K, &V) -> bool + Send + Sync>;
/// Which records each branch takes, in the order of the branches, which is that of the node's children; `None`: all.
type Branches<K, V> = Arc<Mutex<Vec<Option<Predicate<K, V>>>>>;

/// A stream that is being split: each record goes to the first branch that takes it, else to the default branch, else
/// nowhere. Java counterpart: `BranchedKStream`.
pub struct BranchedKStream<K, V> {
    stream: KStream<K, V>,
    branches: Branches<K, V>,
}

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Splits the stream: add branches to the result.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let sizes = b.stream::<String, i64>("uploads").split().named("size-");
    ///     sizes.branch("large", |_user, bytes| *bytes > 1_000_000).to("large-uploads");
    ///     sizes.default_branch("rest").to("uploads-as-usual");
    /// })
    /// .pipe("uploads", [("a", 5, at(0)), ("b", 2_000_000, at(1))])
    /// .gives("large-uploads", [("b", 2_000_000, at(1))])
    /// .gives("uploads-as-usual", [("a", 5, at(0))]);
    /// ```
    ///
    /// Java counterpart: `KStream.split`.
    #[must_use]
    pub fn split(&self) -> BranchedKStream<K, V> {
        let branches: Branches<K, V> = Arc::default();
        let shared = Arc::clone(&branches);
        let factory = Arc::new(move |builder: &mut NodeBuilder<'_>| {
            let branches = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let split = Split {
                name: builder.name(),
                children: builder.children::<K, V>()?,
                branches,
            };
            Ok(AnyNode::new::<K, V>(std::rc::Rc::new(split)))
        });
        let stream = self.step(Step::Branch, factory, Keys::Kept(self.key.clone()), self.value.clone());
        BranchedKStream { stream, branches }
    }
}

impl<K: 'static, V: 'static> BranchedKStream<K, V> {
    /// Names the splitting node, and so the branches: their names are this prefix and their own. Call it first.
    #[must_use]
    pub fn named(self, prefix: &str) -> Self {
        BranchedKStream {
            stream: self.stream.named(prefix),
            branches: self.branches,
        }
    }

    /// The records that no earlier branch takes and for which `takes` is true.
    pub fn branch(
        &self,
        name: impl Into<Branched>,
        takes: impl Fn(&K, &V) -> bool + Send + Sync + 'static,
    ) -> KStream<K, V> {
        let position = self.branches.lock().unwrap_or_else(PoisonError::into_inner).len() + 1;
        self.add(name.into(), position, Some(Arc::new(takes)))
    }

    /// The records that no branch takes; branches added later get none of them.
    pub fn default_branch(&self, name: impl Into<Branched>) -> KStream<K, V> {
        self.add(name.into(), 0, None)
    }

    fn add(&self, name: Branched, position: usize, takes: Option<Predicate<K, V>>) -> KStream<K, V> {
        let builder = &self.stream.builder;
        let node = builder.with(|graph| {
            let own = name.0.unwrap_or_else(|| position.to_string());
            let full_name = graph
                .names
                .node(Step::Branch, Some(&format!("{}{own}", graph.name(self.stream.node))));
            let factory = factory::<K, V, K, V, _>(PassThrough);
            graph.add(full_name, &[self.stream.node], Processor::stateless(factory))
        });
        self.branches.lock().unwrap_or_else(PoisonError::into_inner).push(takes);
        self.stream
            .at(node, Keys::Kept(self.stream.key.clone()), self.stream.value.clone())
    }
}

struct Split<K, V> {
    name: Arc<str>,
    children: Children<K, V>,
    branches: Vec<Option<Predicate<K, V>>>,
}

impl<K, V> Downstream<K, V> for Split<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        for (child, takes) in self.branches.iter().enumerate() {
            let taken = match takes {
                None => true,
                Some(takes) => match cx.call_user(&self.name, || takes(record.key, record.value))? {
                    Some(taken) => taken,
                    None => return Ok(()),
                },
            };
            if taken {
                return self.children.forward_to(child, cx, record);
            }
        }
        Ok(())
    }
}
