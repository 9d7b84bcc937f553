//! How a builder makes its topology.

use streams_core::topology::TopologyError;

/// What the optimizer may change. Java: `topology.optimization`; default: nothing. It changes names of internal topics, so
/// an application that runs keeps what it began with.
///
/// ```
/// use streams_dsl::{Optimization, StreamsBuilder, TopologyConfig};
/// let builder = StreamsBuilder::new();
/// builder.table::<String, i64>("prices").to_stream().to("out");
/// let optimization = Optimization::parse("reuse.ktable.source.topics")?;
/// let topology = builder.build_with(&TopologyConfig { optimization })?;
/// # let _ = topology;
/// # Ok::<(), streams_dsl::TopologyError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Optimization {
    /// `reuse.ktable.source.topics`: the store of a `table` uses its source topic as changelog.
    pub reuse_source_topics: bool,
    /// `merge.repartition.topics`: repartitions below one key-changing step become one.
    pub merge_repartition_topics: bool,
    /// `single.store.self.join`: a stream joined with itself keeps its records once.
    pub single_store_self_join: bool,
}

impl Optimization {
    /// Reads the value of `topology.optimization`: `none`, `all`, or a list of the three names above.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(text: &str) -> Result<Self, TopologyError> {
        let mut optimization = Optimization::default();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "none" => {}
                "all" => {
                    optimization = Optimization {
                        reuse_source_topics: true,
                        merge_repartition_topics: true,
                        single_store_self_join: true,
                    }
                }
                "reuse.ktable.source.topics" => optimization.reuse_source_topics = true,
                "merge.repartition.topics" => optimization.merge_repartition_topics = true,
                "single.store.self.join" => optimization.single_store_self_join = true,
                other => {
                    return Err(TopologyError::Invalid(format!(
                        "topology.optimization can't be `{other}`: use none, all, reuse.ktable.source.topics, merge.repartition.topics or single.store.self.join"
                    )));
                }
            }
        }
        Ok(optimization)
    }
}

/// How a builder makes its topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopologyConfig {
    /// What may be optimized.
    pub optimization: Optimization,
}
