//! Names and numbers: the one table of all draws.
//!
//! A builder has one counter for nodes and stores. Numbers reach the names of changelog and repartition topics, so they
//! are a contract with Java's `StreamsBuilder`: the same calls in the same order draw the same numbers
//! (`InternalStreamsBuilder`, `NamedInternal`, `MaterializedInternal`).

/// What draws a number for a node's name. A step that is given a name draws its number all the same, where the table
/// does not say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `stream`, and the source part of `table` and `global_table`.
    Source,
    /// The table part of `table` and `global_table`.
    TableSource,
    Filter,
    SelectKey,
    Map,
    MapValues,
    FlatMap,
    FlatMapValues,
    Peek,
    ForEach,
    /// Draws none when it is named where it is called.
    Process,
    /// Draws none when it is named where it is called.
    ProcessValues,
    Merge,
    /// `split`, and again for each branch.
    Branch,
    Sink,
    /// Draws none when it is named.
    Repartition,
    ToTable,
    /// `count` and `aggregate`, windowed or not.
    Aggregate,
    Reduce,
    /// Of several streams: the store, then each input.
    CogroupAggregate,
    CogroupMerge,
    /// Stream–stream: the two windows.
    Windowed,
    JoinThis,
    /// Of an outer join.
    OuterThis,
    JoinOther,
    /// Of a left or outer join.
    OuterOther,
    /// Stream–table.
    Join,
    /// Stream–table left, and both joins with a global table.
    LeftJoin,
    TableFilter,
    TableMapValues,
    TransformValues,
    /// Draws none, nor does its store, when it is named where it is called.
    Suppress,
    ToStream,
    /// A table's `group_by`.
    TableSelect,
    /// `count` and `aggregate` of a grouped table; the prefix of the store of `reduce` too.
    TableAggregate,
    TableReduce,
    /// Of two tables: the result, then the two sides.
    TableMerge,
    TableJoinThis,
    TableJoinOther,
    /// Of a foreign-key join: the topic and the node that fills it.
    ForeignRegistration,
    ForeignStore,
    /// Three nodes: receive, join with the foreign table, the foreign table's own side.
    ForeignProcessor,
    ForeignResponse,
    ForeignResolver,
    ForeignOutput,
    TableSink,
    /// Of a foreign-key join; equal to the prefix of `TableSource`.
    ForeignSource,
    // Not in Java: prefixes that none of its steps has.
    DropDuplicates,
    Late,
    BadRecords,
    CountWindow,
}

impl Step {
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Step::Source => "KSTREAM-SOURCE-",
            Step::TableSource => "KTABLE-SOURCE-",
            Step::Filter => "KSTREAM-FILTER-",
            Step::SelectKey => "KSTREAM-KEY-SELECT-",
            Step::Map => "KSTREAM-MAP-",
            Step::MapValues => "KSTREAM-MAPVALUES-",
            Step::FlatMap => "KSTREAM-FLATMAP-",
            Step::FlatMapValues => "KSTREAM-FLATMAPVALUES-",
            Step::Peek => "KSTREAM-PEEK-",
            Step::ForEach => "KSTREAM-FOREACH-",
            Step::Process => "KSTREAM-PROCESSOR-",
            Step::ProcessValues => "KSTREAM-PROCESSVALUES-",
            Step::Merge => "KSTREAM-MERGE-",
            Step::Branch => "KSTREAM-BRANCH-",
            Step::Sink => "KSTREAM-SINK-",
            Step::Repartition => "KSTREAM-REPARTITION-",
            Step::ToTable => "KSTREAM-TOTABLE-",
            Step::Aggregate => "KSTREAM-AGGREGATE-",
            Step::Reduce => "KSTREAM-REDUCE-",
            Step::CogroupAggregate => "COGROUPKSTREAM-AGGREGATE-",
            Step::CogroupMerge => "COGROUPKSTREAM-MERGE-",
            Step::Windowed => "KSTREAM-WINDOWED-",
            Step::JoinThis => "KSTREAM-JOINTHIS-",
            Step::OuterThis => "KSTREAM-OUTERTHIS-",
            Step::JoinOther => "KSTREAM-JOINOTHER-",
            Step::OuterOther => "KSTREAM-OUTEROTHER-",
            Step::Join => "KSTREAM-JOIN-",
            Step::LeftJoin => "KSTREAM-LEFTJOIN-",
            Step::TableFilter => "KTABLE-FILTER-",
            Step::TableMapValues => "KTABLE-MAPVALUES-",
            Step::TransformValues => "KTABLE-TRANSFORMVALUES-",
            Step::Suppress => "KTABLE-SUPPRESS-",
            Step::ToStream => "KTABLE-TOSTREAM-",
            Step::TableSelect => "KTABLE-SELECT-",
            Step::TableAggregate => "KTABLE-AGGREGATE-",
            Step::TableReduce => "KTABLE-REDUCE-",
            Step::TableMerge => "KTABLE-MERGE-",
            Step::TableJoinThis => "KTABLE-JOINTHIS-",
            Step::TableJoinOther => "KTABLE-JOINOTHER-",
            Step::ForeignRegistration => "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-",
            Step::ForeignStore => "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-",
            Step::ForeignProcessor => "KTABLE-FK-JOIN-SUBSCRIPTION-PROCESSOR-",
            Step::ForeignResponse => "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-",
            Step::ForeignResolver => "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-",
            Step::ForeignOutput => "KTABLE-FK-JOIN-OUTPUT-",
            Step::TableSink => "KTABLE-SINK-",
            Step::ForeignSource => "KTABLE-SOURCE-",
            Step::DropDuplicates => "KSTREAM-DROPDUPLICATES-",
            Step::Late => "KSTREAM-LATE-",
            Step::BadRecords => "KSTREAM-BADRECORDS-",
            Step::CountWindow => "KSTREAM-COUNTWINDOW-",
        }
    }
}

/// The four names of a repartition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RepartitionNames {
    pub(crate) topic: String,
    pub(crate) sink: String,
    pub(crate) filter: String,
    pub(crate) source: String,
}

/// The names of a foreign-key join, in the order in which they are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignNames {
    pub(crate) registration_topic: String,
    pub(crate) send: String,
    pub(crate) registration_sink: String,
    pub(crate) registration_source: String,
    pub(crate) store: String,
    pub(crate) receive: String,
    pub(crate) join_foreign: String,
    pub(crate) foreign_join: String,
    pub(crate) response_topic: String,
    pub(crate) response_sink: String,
    pub(crate) response_source: String,
    pub(crate) resolve: String,
    pub(crate) result: String,
}

/// The counter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    next: u32,
}

impl Names {
    fn draw(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// A node's name: the given one, else a generated one; a number is drawn either way.
    pub(crate) fn node(&mut self, step: Step, given: Option<&str>) -> String {
        let number = self.draw();
        given.map_or_else(|| format!("{}{number:010}", step.prefix()), str::to_owned)
    }

    /// As [`node`](Self::node), but a given name draws nothing (`process`, `process_values`, `repartition`).
    pub(crate) fn node_unless_given(&mut self, step: Step, given: Option<&str>) -> String {
        given.map_or_else(|| self.node(step, None), str::to_owned)
    }

    /// A store's name: the given one, which draws nothing, else a generated one.
    pub(crate) fn store(&mut self, prefix: &str, given: Option<&str>) -> String {
        given.map_or_else(|| format!("{prefix}STATE-STORE-{:010}", self.draw()), str::to_owned)
    }

    /// Draws a number that no name uses: a `Materialized` without a name costs `count`, and a table's `filter` and
    /// `map_values`, one.
    pub(crate) fn burn(&mut self) {
        self.draw();
    }

    /// Names a foreign-key join; thirteen numbers are drawn, also under a given name (`KTableImpl.doJoinOnForeignKey`).
    pub(crate) fn foreign_join(&mut self, given: Option<&str>) -> ForeignNames {
        let mut name = |step, suffix: &str| {
            let given = given.map(|name| format!("{name}-{suffix}"));
            self.node(step, given.as_deref())
        };
        let topic = |name: String| format!("{name}-topic");
        ForeignNames {
            registration_topic: topic(name(Step::ForeignRegistration, "subscription-registration")),
            send: name(Step::ForeignRegistration, "subscription-registration-processor"),
            registration_sink: name(Step::TableSink, "subscription-registration-sink"),
            registration_source: name(Step::ForeignSource, "subscription-registration-source"),
            store: name(Step::ForeignStore, "subscription-store"),
            receive: name(Step::ForeignProcessor, "subscription-receive"),
            join_foreign: name(Step::ForeignProcessor, "subscription-join-foreign"),
            foreign_join: name(Step::ForeignProcessor, "foreign-join-subscription"),
            response_topic: topic(name(Step::ForeignResponse, "subscription-response")),
            response_sink: name(Step::TableSink, "subscription-response-sink"),
            response_source: name(Step::ForeignSource, "subscription-response-source"),
            resolve: name(Step::ForeignResolver, "subscription-response-resolver"),
            result: name(Step::ForeignOutput, "result"),
        }
    }

    /// Names a repartition by `prefix`; three numbers are drawn. Only prefixes that look generated give generated node
    /// names (`BaseRepartitionNode`, `KStreamImpl.createRepartitionedSource`).
    pub(crate) fn repartition(&mut self, prefix: &str) -> RepartitionNames {
        let [sink, filter, source] = [Step::Sink, Step::Filter, Step::Source].map(|step| self.node(step, None));
        let topic = if prefix.ends_with("-repartition") {
            prefix.to_owned()
        } else {
            format!("{prefix}-repartition")
        };
        if is_generated(topic.trim_end_matches("-repartition")) {
            return RepartitionNames {
                topic,
                sink,
                filter,
                source,
            };
        }
        let [sink, filter, source] = ["sink", "filter", "source"].map(|part| format!("{topic}-{part}"));
        RepartitionNames {
            topic,
            sink,
            filter,
            source,
        }
    }
}

/// Java's `KSTREAM.*-[0-9]{10}`, matched against the whole topic name without `-repartition`.
fn is_generated(prefix: &str) -> bool {
    let digits = prefix.rsplit_once('-').map(|(_, digits)| digits);
    prefix.starts_with("KSTREAM")
        && digits.is_some_and(|digits| digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_node_name_draws_its_number_and_a_given_store_name_does_not() {
        let mut names = Names::default();
        assert_eq!(names.node(Step::Source, Some("src")), "src");
        assert_eq!(names.store("KSTREAM-AGGREGATE-", Some("counts")), "counts");
        assert_eq!(
            names.store("KSTREAM-AGGREGATE-", None),
            "KSTREAM-AGGREGATE-STATE-STORE-0000000001"
        );
        assert_eq!(names.node_unless_given(Step::Process, Some("mine")), "mine");
        assert_eq!(names.node(Step::Aggregate, None), "KSTREAM-AGGREGATE-0000000002");
    }

    #[test]
    fn only_a_generated_prefix_gives_generated_repartition_nodes() {
        let mut names = Names::default();
        let generated = names.repartition("KSTREAM-AGGREGATE-STATE-STORE-0000000003");
        assert_eq!(generated.topic, "KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition");
        assert_eq!(generated.filter, "KSTREAM-FILTER-0000000001");
        let named = names.repartition("counts");
        assert_eq!(named.source, "counts-repartition-source");
        assert_eq!(names.repartition("rp-repartition").topic, "rp-repartition");
        assert_eq!(names.node(Step::Sink, None), "KSTREAM-SINK-0000000009");
        assert!(!is_generated("COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000003"));
    }
}
