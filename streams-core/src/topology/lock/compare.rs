//! The comparison of two locks.

use std::collections::{BTreeMap, BTreeSet};

use super::families::generated;
use super::pairs::{Members, Pairs, pair};
use super::report::{LockFinding, LockReport};
use super::rules::{self, Rule};
use super::{Facts, LockVerdict, Section, TopologyLock};

pub(super) fn compare(old: &TopologyLock, new: &TopologyLock) -> LockReport {
    let mut found = Found::default();
    let (old_stores, new_stores) = (stores(old), stores(new));
    let stores = pair(&old_stores, &new_stores);
    found.stores(&stores, &old_stores, &new_stores);
    let (old_topics, new_topics) = (repartitions(old), repartitions(new));
    let topics = pair(&old_topics, &new_topics);
    found.repartitions(&topics, &old_topics, &new_topics);
    let names = stores.renamed.iter().chain(&topics.renamed).copied().collect();
    found.subtopologies(&subtopologies(old, &names), &subtopologies(new, &BTreeMap::new()));
    let mut findings = found.0;
    if findings.is_empty() && old != new {
        findings.push(LockFinding {
            verdict: LockVerdict::Compatible,
            what: "the file differs".to_owned(),
            advice: "nothing that is there depends on it".to_owned(),
        });
    }
    // The worst first; else in the order in which they were found.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    LockReport {
        findings,
        group_refuses: group_sees(old) != group_sees(new),
    }
}

fn stores(lock: &TopologyLock) -> Members<'_> {
    let stores = lock.sections.iter().filter_map(|(section, facts)| match section {
        Section::Store(name) => Some((name.as_str(), facts)),
        _ => None,
    });
    stores.collect()
}

fn repartitions(lock: &TopologyLock) -> Members<'_> {
    let topics = lock.sections.iter().filter_map(|(section, facts)| match section {
        Section::Repartition(name) => Some((name.as_str(), facts)),
        _ => None,
    });
    topics.collect()
}

/// The sub-topologies by number, with the new names of what was renamed.
fn subtopologies<'a>(lock: &'a TopologyLock, names: &BTreeMap<&str, &str>) -> BTreeMap<u32, BTreeMap<&'a str, String>> {
    let new_name = |text: &str| {
        let renamed = text.split(", ").map(|name| names.get(name).copied().unwrap_or(name));
        let sorted: BTreeSet<&str> = renamed.collect();
        sorted.into_iter().collect::<Vec<_>>().join(", ")
    };
    let facts = |facts: &'a Facts| {
        facts
            .iter()
            .map(|(key, value)| (key.as_str(), new_name(value)))
            .collect()
    };
    let subtopologies = lock.sections.iter().filter_map(|(section, of)| match section {
        Section::Subtopology(id) => Some((*id, facts(of))),
        _ => None,
    });
    subtopologies.collect()
}

/// The part of a lock that a streams group holds.
fn group_sees(lock: &TopologyLock) -> Vec<(&Section, Vec<(&String, &String)>)> {
    let seen = |section: &Section, fact: &str| match section {
        Section::Subtopology(_) => fact != "stores",
        Section::Store(_) => fact.starts_with("changelog"),
        Section::Repartition(_) => fact == "partitions" || fact.starts_with("config."),
    };
    let sections = lock.sections.iter().map(|(section, facts)| {
        let facts = facts.iter().filter(|(fact, _)| seen(section, fact));
        (section, facts.collect())
    });
    // A store without a changelog, and one that is global, is none of the group's business.
    let logged = |(section, facts): &(&Section, Vec<(&String, &String)>)| {
        !matches!(section, Section::Store(_)) || facts.iter().any(|(fact, _)| fact.starts_with("changelog."))
    };
    sections.filter(logged).collect()
}

#[derive(Default)]
struct Found(Vec<LockFinding>);

impl Found {
    fn add(&mut self, verdict: LockVerdict, what: String, advice: impl Into<String>) {
        let advice = advice.into();
        self.0.push(LockFinding { verdict, what, advice });
    }

    fn stores(&mut self, pairs: &Pairs<'_>, old: &Members<'_>, new: &Members<'_>) {
        for (was, is) in &pairs.renamed {
            let what = format!("the store `{was}` is called `{is}` now");
            self.add(LockVerdict::Rename, what, store_renamed(was, is, old));
        }
        let kept = pairs.same.iter().map(|name| (*name, *name));
        for (was, is) in kept.chain(pairs.renamed.iter().copied()) {
            let Some((old, new)) = old.get(was).zip(new.get(is)) else {
                continue;
            };
            // The changelog is named after the store. What is said of a changelog is not said of its configs again.
            let renamed = was != is;
            let other_log = !renamed && old.get("changelog") != new.get("changelog");
            self.facts(&format!("store `{is}`"), old, new, |fact, values| {
                let told = (renamed && fact == "changelog") || (other_log && fact.starts_with("changelog."));
                (!told).then(|| rules::of_store(fact, values))
            });
        }
        for name in &pairs.removed {
            let changelog = old.get(name).and_then(|facts| facts.get("changelog"));
            let topic = changelog.map_or("off", String::as_str);
            self.add(
                LockVerdict::Compatible,
                format!("the store `{name}` is gone"),
                format!(
                    "its rows are used no more, and a later store of this name would find them again: delete its changelog \
                     ({topic}) when no older version runs any more"
                ),
            );
        }
        for (name, like) in &pairs.unsure_gone {
            self.add(
                LockVerdict::Rename,
                format!("the store `{name}` is gone, and like `{like}` in everything but its generated number"),
                format!(
                    "if the one that is gone was written before, `{like}` now has its rows: give what is left the names that it \
                     had"
                ),
            );
        }
        for (name, like) in &pairs.unsure {
            self.add(
                LockVerdict::Rename,
                format!("the store `{name}` is new, and like `{like}` in everything but its generated number"),
                format!(
                    "if it was written before `{like}`, each now has the rows of another: give the new one a name, and if the \
                     others have moved, give them the names that they had"
                ),
            );
        }
        for name in &pairs.added {
            let advice = "it begins empty: it does not know what was read before".to_owned();
            self.add(LockVerdict::Compatible, format!("the store `{name}` is new"), advice);
        }
    }

    fn repartitions(&mut self, pairs: &Pairs<'_>, old: &Members<'_>, new: &Members<'_>) {
        for (was, is) in &pairs.renamed {
            let given = was.strip_suffix("-repartition").unwrap_or(was);
            self.add(
                LockVerdict::Rename,
                format!("the repartition topic `{was}` is called `{is}` now"),
                format!(
                    "what is in the old topic and not yet read would be lost: name the operation `{given}` (`Grouped::named`, \
                     `Joined::named`, `Repartitioned::named`), or let the old version read the topic to its end first"
                ),
            );
        }
        let kept = pairs.same.iter().map(|name| (*name, *name));
        for (was, is) in kept.chain(pairs.renamed.iter().copied()) {
            if let Some((old, new)) = old.get(was).zip(new.get(is)) {
                let place = format!("repartition topic `{is}`");
                self.facts(&place, old, new, |fact, values| {
                    Some(rules::of_repartition(fact, values))
                });
            }
        }
        for name in &pairs.removed {
            self.add(
                LockVerdict::Compatible,
                format!("the repartition topic `{name}` is gone"),
                "let the old version read it to its end first, and delete it then",
            );
        }
        for (name, like) in &pairs.unsure_gone {
            self.add(
                LockVerdict::Rename,
                format!("the repartition topic `{name}` is gone, and like `{like}` in everything but its generated number"),
                "what is in the topics and not yet read may be read by another operation: give what is left the names that it \
                 had, or let the old version read the topics to their end first",
            );
        }
        for (name, like) in &pairs.unsure {
            self.add(
                LockVerdict::Rename,
                format!("the repartition topic `{name}` is new, and like `{like}` in everything but its generated number"),
                "what is in the topics and not yet read may be read by another operation: name the new one, and if the others \
                 have moved, give them the names that they had",
            );
        }
        for name in &pairs.added {
            let what = format!("the repartition topic `{name}` is new");
            self.add(LockVerdict::Compatible, what, "it is made at the start");
        }
    }

    /// The facts that differ.
    fn facts(
        &mut self,
        place: &str,
        old: &Facts,
        new: &Facts,
        rule: impl Fn(&str, (Option<&str>, Option<&str>)) -> Option<Rule>,
    ) {
        let facts: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for fact in facts {
            let values = (old.get(fact).map(String::as_str), new.get(fact).map(String::as_str));
            if values.0 == values.1 {
                continue;
            }
            let Some((verdict, advice)) = rule(fact, values) else {
                continue;
            };
            let (was, is) = (values.0.unwrap_or("not set"), values.1.unwrap_or("not set"));
            self.add(verdict, format!("{place}: {fact} is `{is}`, before `{was}`"), advice);
        }
    }

    fn subtopologies(
        &mut self,
        old: &BTreeMap<u32, BTreeMap<&str, String>>,
        new: &BTreeMap<u32, BTreeMap<&str, String>>,
    ) {
        let reads = |facts: &BTreeMap<&str, String>| facts.get("reads").cloned().unwrap_or_default();
        let find = |all: &BTreeMap<u32, BTreeMap<&str, String>>, wanted: &str| {
            all.iter().find(|(_, facts)| reads(facts) == wanted).map(|(id, _)| *id)
        };
        for (id, facts) in old {
            let topics = reads(facts);
            match find(new, &topics) {
                Some(now) if now == *id => {}
                Some(now) => self.add(
                    LockVerdict::Compatible,
                    format!("the sub-topology that reads {topics} has the number {now}, before {id}"),
                    "its tasks have other ids: their state is restored from the changelogs, once",
                ),
                None => match new.get(id).map(reads).filter(|now| find(old, now).is_none()) {
                    Some(now) => self.add(
                        LockVerdict::Compatible,
                        format!("sub-topology {id} reads {now}, before {topics}"),
                        "a topic that is new here is read from where auto.offset.reset says; it must have the partitions \
                         that the others have where they are joined",
                    ),
                    None => self.add(
                        LockVerdict::Compatible,
                        format!("sub-topology {id}, which read {topics}, is gone or a part of another"),
                        "the committed offsets of topics that are still read are used",
                    ),
                },
            }
        }
        for (id, facts) in new {
            let topics = reads(facts);
            if find(old, &topics).is_none() && !old.contains_key(id) {
                self.add(
                    LockVerdict::Compatible,
                    format!("sub-topology {id}, which reads {topics}, is new"),
                    "a topic that was not read before is read from where auto.offset.reset says",
                );
            }
        }
    }
}

/// What to do about a store with another name.
fn store_renamed(was: &str, is: &str, old: &Members<'_>) -> String {
    let mut advice = String::new();
    if old.contains_key(is) {
        advice.push_str(&format!(
            "the rows that are there under `{is}` are another operator's, and would be taken for its own; "
        ));
    } else {
        advice.push_str("its rows stay under the old name, and it begins empty; ");
    }
    if generated(is).is_some() {
        advice.push_str(&format!(
            "its name is generated and its number moved with the operators before it: name it `{was}` \
             (`Materialized::named`, `StreamJoined::store_named`, `Suppressed::with_name`), and the rows are found, also \
             after the next edit"
        ));
    } else {
        advice.push_str(&format!("name it `{was}` again to keep them"));
    }
    advice
}
