//! stub
use std::sync::Arc;
use std::collections::BTreeSet;
use super::AutoOffsetReset;
pub struct SubtopologyPlan { pub id: u32, pub nodes: Vec<usize>, pub source_topics: Vec<Arc<str>>, pub stores: Vec<Arc<str>>, pub changelog_topics: Vec<(Arc<str>, Arc<str>)> }
pub struct TopologyPlan { pub subtopologies: Vec<SubtopologyPlan>, pub rep: BTreeSet<String> }
impl TopologyPlan {
 pub fn subtopology(&self, id: u32) -> Option<&SubtopologyPlan> { self.subtopologies.iter().find(|s| s.id == id) }
 pub fn is_repartition_topic(&self, name: &str) -> bool { self.rep.contains(name) }
 pub fn reset_of(&self, _name: &str) -> AutoOffsetReset { AutoOffsetReset::Configured }
}
