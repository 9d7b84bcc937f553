//! Which old store or topic is which new one.
//!
//! Given names speak for themselves. Generated names do not: an operator inserted before them moves their numbers, and a
//! name may then be that of another operator's rows. So a family of generated names whose names have changed is aligned
//! by what its members are, in the order of their numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::Facts;
use super::families::generated;

/// The members of one kind, by name.
pub(super) type Members<'a> = BTreeMap<&'a str, &'a Facts>;

/// Old members with their new ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pairs<'a> {
    /// Of one name in both.
    pub(super) same: Vec<&'a str>,
    /// The old name, the new one.
    pub(super) renamed: Vec<(&'a str, &'a str)>,
    pub(super) removed: Vec<&'a str>,
    pub(super) added: Vec<&'a str>,
    /// A generated name that is new, and an older one of its family that is alike: which of the two is the new thing
    /// can't be told.
    pub(super) unsure: Vec<(&'a str, &'a str)>,
    /// A generated name that is gone, and one of its family that is still there and alike: which of the two things is gone
    /// can't be told.
    pub(super) unsure_gone: Vec<(&'a str, &'a str)>,
}

/// What makes two members the same thing under two names.
const IDENTITY: [&str; 9] = [
    "kind",
    "key",
    "value",
    "value.time",
    "from",
    "window.size.ms",
    "global",
    "key.type",
    "value.type",
];

fn alike(old: &Facts, new: &Facts) -> bool {
    IDENTITY.iter().all(|fact| old.get(*fact) == new.get(*fact))
}

pub(super) fn pair<'a>(old: &Members<'a>, new: &Members<'a>) -> Pairs<'a> {
    let mut pairs = Pairs::default();
    let families: BTreeSet<_> = old.keys().chain(new.keys()).filter_map(|name| family(name)).collect();
    for family in families {
        pair_family(&members(old, family), &members(new, family), &mut pairs);
    }
    for name in old.keys().filter(|name| family(name).is_none()) {
        if new.contains_key(name) {
            pairs.same.push(name);
        } else {
            pairs.removed.push(name);
        }
    }
    let given = new.keys().filter(|name| family(name).is_none());
    pairs.added.extend(given.filter(|name| !old.contains_key(*name)));
    match_leftovers(old, new, &mut pairs);
    pairs.same.sort_unstable();
    pairs
}

fn family(name: &str) -> Option<(&str, &str)> {
    generated(name).map(|generated| generated.family)
}

/// The members of a family in the order of their numbers.
fn members<'a>(all: &Members<'a>, wanted: (&str, &str)) -> Vec<(&'a str, &'a Facts)> {
    let of_family = all.iter().filter(|(name, _)| family(name) == Some(wanted));
    let mut members: Vec<(&'a str, &'a Facts)> = of_family.map(|(name, facts)| (*name, *facts)).collect();
    members.sort_by_key(|(name, _)| generated(name).map(|generated| generated.number));
    members
}

fn pair_family<'a>(old: &[(&'a str, &'a Facts)], new: &[(&'a str, &'a Facts)], pairs: &mut Pairs<'a>) {
    let is_in = |members: &[(&str, &Facts)], name: &str| members.iter().any(|(other, _)| *other == name);
    let grew = old.iter().all(|(name, _)| is_in(new, name));
    let shrank = new.iter().all(|(name, _)| is_in(old, name));
    let unchanged = |(name, facts): &(&str, &Facts)| {
        let other = new.iter().find(|(other, _)| other == name);
        other.is_none_or(|(_, other)| alike(facts, other))
    };
    if (grew || shrank) && old.iter().all(unchanged) {
        for (name, facts) in old {
            let alike = || new.iter().find(|(_, new)| alike(facts, new));
            if is_in(new, name) {
                pairs.same.push(name);
            } else if let Some((like, _)) = alike() {
                pairs.unsure_gone.push((name, like));
            } else {
                pairs.removed.push(name);
            }
        }
        for (name, facts) in new.iter().filter(|(name, _)| !is_in(old, name)) {
            match old.iter().find(|(_, old)| alike(old, facts)) {
                Some((like, _)) => pairs.unsure.push((name, like)),
                None => pairs.added.push(name),
            }
        }
        return;
    }
    let aligned = align(old, new);
    let lone = |side: fn(&(usize, usize)) -> usize, len: usize| {
        let used: BTreeSet<usize> = aligned.iter().map(side).collect();
        (0..len).filter(move |at| !used.contains(at))
    };
    for (old, new) in aligned
        .iter()
        .filter_map(|(o, n)| Some((old.get(*o)?.0, new.get(*n)?.0)))
    {
        if old == new {
            pairs.same.push(old);
        } else {
            pairs.renamed.push((old, new));
        }
    }
    let mut removed: Vec<&str> = lone(|pair| pair.0, old.len())
        .filter_map(|at| old.get(at).map(|one| one.0))
        .collect();
    let mut added: Vec<&str> = lone(|pair| pair.1, new.len())
        .filter_map(|at| new.get(at).map(|one| one.0))
        .collect();
    // Of one name and unlike anything else: the member itself has changed.
    let changed: Vec<&str> = removed.iter().copied().filter(|name| added.contains(name)).collect();
    removed.retain(|name| !changed.contains(name));
    added.retain(|name| !changed.contains(name));
    pairs.same.extend(changed);
    pairs.removed.extend(removed);
    pairs.added.extend(added);
}

/// The most pairs of members that are alike, in order; where there is a choice, with the most equal names.
fn align(old: &[(&str, &Facts)], new: &[(&str, &Facts)]) -> Vec<(usize, usize)> {
    // The best score of the members from these two places on.
    let mut best: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let at = |best: &BTreeMap<(usize, usize), usize>, o: usize, n: usize| best.get(&(o, n)).copied().unwrap_or(0);
    let weight = |o: usize, n: usize| {
        let ((old_name, old), (new_name, new)) = (old.get(o)?, new.get(n)?);
        // A pair more counts for more than all equal names.
        alike(old, new).then(|| 1_000 + usize::from(old_name == new_name))
    };
    for o in (0..old.len()).rev() {
        for n in (0..new.len()).rev() {
            let skipped = at(&best, o + 1, n).max(at(&best, o, n + 1));
            let paired = weight(o, n).map_or(0, |weight| weight + at(&best, o + 1, n + 1));
            best.insert((o, n), skipped.max(paired));
        }
    }
    let (mut o, mut n, mut pairs) = (0, 0, Vec::new());
    while o < old.len() && n < new.len() {
        let here = at(&best, o, n);
        match weight(o, n) {
            Some(weight) if weight + at(&best, o + 1, n + 1) == here => {
                pairs.push((o, n));
                (o, n) = (o + 1, n + 1);
            }
            _ if at(&best, o + 1, n) == here => o += 1,
            _ => n += 1,
        }
    }
    pairs
}

/// What is gone under one name and new under another, and is the same otherwise, was renamed.
fn match_leftovers<'a>(old: &Members<'a>, new: &Members<'a>, pairs: &mut Pairs<'a>) {
    let mut removed = Vec::new();
    for name in std::mem::take(&mut pairs.removed) {
        let like = |added: &&str| {
            old.get(name)
                .zip(new.get(*added))
                .is_some_and(|(old, new)| alike(old, new))
        };
        match pairs.added.iter().position(like) {
            Some(at) => pairs.renamed.push((name, pairs.added.remove(at))),
            None => removed.push(name),
        }
    }
    pairs.removed = removed;
}
