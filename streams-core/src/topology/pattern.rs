//! Sources that read all topics of a pattern.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex_lite::Regex;

use super::{NodeKind, SourceTopic, Topology, TopologyError};

/// A regular expression for the names of topics; a topic is meant when its whole name fits.
///
/// ```
/// use streams_core::topology::TopicPattern;
/// let usage = TopicPattern::new("usage-.*")?;
/// assert!(usage.matches("usage-eu"));
/// assert!(!usage.matches("old-usage-eu"));
/// # Ok::<(), streams_core::topology::TopologyError>(())
/// ```
///
/// The syntax is that of the crate [`regex-lite`](https://docs.rs/regex-lite/latest/regex_lite/#syntax): Java's without look-around and
/// back references. Java counterpart: `java.util.regex.Pattern`.
#[derive(Clone, Debug)]
pub struct TopicPattern {
    text: Arc<str>,
    regex: Regex,
}

impl TopicPattern {
    /// The pattern of a text.
    ///
    /// # Errors
    /// When the text is no regular expression.
    pub fn new(text: &str) -> Result<Self, TopologyError> {
        // By itself first: `a)(b` is none, although it would be one in parentheses.
        let whole = Regex::new(text).and_then(|_| Regex::new(&format!("^(?:{text})$")));
        let regex = whole.map_err(|error| {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or("it can't be read").trim();
            TopologyError::Invalid(format!(
                "`{text}` can't be a pattern of topics, as it is no regular expression ({reason}): correct it, or name the topics"
            ))
        })?;
        Ok(TopicPattern {
            text: text.into(),
            regex,
        })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a topic's whole name fits.
    #[must_use]
    pub fn matches(&self, topic: &str) -> bool {
        self.regex.is_match(topic)
    }
}

impl PartialEq for TopicPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for TopicPattern {}

impl Topology {
    /// The patterns of the sources that read topics by one, in the order of the sources.
    pub fn source_patterns(&self) -> impl Iterator<Item = (&str, &TopicPattern)> {
        self.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Source {
                pattern: Some(pattern), ..
            } => Some((&*node.name, pattern)),
            _ => None,
        })
    }

    /// The same topology, whose sources by pattern read those of `topics` that fit, sorted by name. Topics that a source
    /// reads by name are left out. Java does this at each change of a group's metadata
    /// (`InternalTopologyBuilder.setSubscriptionUpdates`).
    #[must_use]
    pub fn with_topics<'a>(&self, topics: impl IntoIterator<Item = &'a str>) -> Topology {
        let topics: BTreeSet<&str> = topics.into_iter().collect();
        let mut bound = self.clone();
        let named: BTreeSet<Arc<str>> = self.named_sources().map(|topic| Arc::clone(&topic.name)).collect();
        for node in &mut bound.nodes {
            if let NodeKind::Source {
                pattern: Some(pattern),
                topics: read,
                ..
            } = &mut node.kind
            {
                let fitting = topics.iter().filter(|topic| pattern.matches(topic));
                *read = fitting
                    .filter(|topic| !named.contains(**topic))
                    .map(|topic| SourceTopic::external(topic))
                    .collect();
            }
        }
        bound
    }

    /// What a streams group can't do with this topology: its members name their topics (KIP-1071), as in Java.
    ///
    /// # Errors
    /// For each source that reads topics by a pattern and was not [given](Self::with_topics) any.
    pub fn check_for_streams_group(&self) -> Result<(), TopologyError> {
        let unbound = self.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Source {
                topics,
                pattern: Some(pattern),
                ..
            } if topics.is_empty() => Some((&node.name, pattern)),
            _ => None,
        });
        let findings = unbound.map(|(node, pattern)| {
            TopologyError::Invalid(format!(
                "source `{node}` reads topics by the pattern `{}`, and members of a streams group (KIP-1071) must name their \
                 topics: name them with `stream_of`, or make the topology with `Topology::with_topics` from those that exist; \
                 a group whose topics change has to be reset",
                pattern.as_str()
            ))
        });
        TopologyError::all(findings.collect())
    }

    /// The topics of others that sources read by name.
    pub(crate) fn named_sources(&self) -> impl Iterator<Item = &SourceTopic> {
        let topics = self.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Source {
                topics, pattern: None, ..
            } => Some(topics),
            _ => None,
        });
        topics.flatten().filter(|topic| !topic.internal)
    }

    /// Names of topics that fit a pattern too: they would be read twice.
    pub(super) fn check_patterns(&self, findings: &mut Vec<TopologyError>) {
        for (source, pattern) in self.source_patterns() {
            for topic in self.named_sources().filter(|topic| pattern.matches(&topic.name)) {
                findings.push(TopologyError::Invalid(format!(
                    "topic `{}` is read by name, and by source `{source}` too, as it fits its pattern `{}`: read it once, and \
                     give the pattern what the name does not fit",
                    topic.name,
                    pattern.as_str()
                )));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{source, topology};
    use super::super::{AutoOffsetReset, InternalTopicDefaults};
    use super::*;

    fn by_pattern(text: &str) -> Topology {
        let mut topology = topology(&["source named: other"]);
        let pattern = TopicPattern::new(text).unwrap();
        topology.add_pattern_source("all", pattern, AutoOffsetReset::Configured, source());
        topology
    }

    fn read(topology: &Topology) -> Vec<String> {
        let plan = topology.plan("app", &InternalTopicDefaults::default()).unwrap();
        let topics = plan.subtopologies.iter().flat_map(|sub| sub.source_topics.keys());
        topics.map(ToString::to_string).collect()
    }

    #[test]
    fn a_pattern_reads_the_topics_that_exist_and_fit_as_a_whole() {
        let topology = by_pattern("in-.*|x");
        assert_eq!(read(&topology), ["other"]);
        let bound = topology.with_topics(["in-b", "in-a", "x", "xx", "pin-a"]);
        assert_eq!(read(&bound), ["other", "in-a", "in-b", "x"]);
        assert_eq!(
            bound.describe(),
            topology.describe(),
            "the pattern is what is described"
        );
    }

    #[test]
    fn a_topic_read_by_name_that_fits_a_pattern_is_found() {
        let found = by_pattern("o.*").validate().unwrap_err().to_string();
        assert!(found.contains("`other`") && found.contains("`o.*`"), "{found}");
    }

    #[test]
    fn one_topic_of_two_patterns_is_found_once_it_exists() {
        let mut topology = by_pattern("in-.*");
        let more = TopicPattern::new(".*-a").unwrap();
        topology.add_pattern_source("more", more, AutoOffsetReset::Configured, source());
        assert_eq!(topology.validate(), Ok(()));
        let found = topology.with_topics(["in-a"]).validate().unwrap_err();
        assert!(matches!(found, TopologyError::TopicReadTwice { .. }), "{found}");
    }

    #[test]
    fn what_is_no_regular_expression_is_told() {
        let told = TopicPattern::new("in-[").unwrap_err().to_string();
        assert!(TopicPattern::new("a)(b").is_err());
        assert!(
            told.contains("`in-[`") && told.contains("unclosed character class"),
            "{told}"
        );
    }

    #[test]
    fn a_streams_group_refuses_patterns_and_says_what_to_do() {
        let refused = by_pattern("in-.*").check_for_streams_group().unwrap_err().to_string();
        assert!(refused.contains("`all`") && refused.contains("stream_of"), "{refused}");
        assert_eq!(topology(&["source named: other"]).check_for_streams_group(), Ok(()));
        assert_eq!(
            by_pattern("in-.*").with_topics(["in-a"]).check_for_streams_group(),
            Ok(())
        );
    }
}
