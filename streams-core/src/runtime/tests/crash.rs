//! Killed after every effect, the outputs are those of a run without a kill.

use super::World;
use super::nodes::{copy, counting};
use crate::topology::Topology;

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn world(topology: &Topology, cache_bytes: usize) -> World {
    let mut world = World::new(topology.clone(), cache_bytes);
    let records = (0..40).map(|at| (KEYS[(at * 7 % 5) as usize], 100 + i64::from(at)));
    world.feed(records);
    world
}

fn undisturbed(topology: &Topology, cache_bytes: usize) -> World {
    let mut world = world(topology, cache_bytes);
    world.start();
    world.run_to_end();
    world
}

fn killed_at(topology: &Topology, cache_bytes: usize, cut: usize) -> World {
    let mut world = world(topology, cache_bytes);
    world.start();
    assert!(
        world.run(|effects, _| effects == cut).unwrap(),
        "effect {cut} was not reached"
    );
    world.kill();
    world.start();
    world.run_to_end();
    world
}

#[test]
fn a_copy_killed_after_any_effect_neither_loses_nor_repeats() {
    let topology = copy();
    let expected = undisturbed(&topology, 0);
    assert_eq!(expected.all("out").len(), 40);
    assert!(
        expected.effects > 40,
        "the run is too short to prove anything: {} effects",
        expected.effects
    );
    for cut in 0..expected.effects {
        assert_eq!(
            killed_at(&topology, 0, cut).all("out"),
            expected.all("out"),
            "killed before effect {cut}"
        );
    }
}

#[test]
fn counts_killed_after_any_effect_are_exact_with_any_cache() {
    let topology = counting();
    for cache_bytes in [0, 1, 1 << 20] {
        let expected = undisturbed(&topology, cache_bytes);
        assert_eq!(expected.latest("out").len(), KEYS.len());
        for (key, value) in expected.latest("out") {
            assert_eq!(value.as_deref(), Some(&b"8"[..]), "{key:?}");
        }
        for cut in 0..expected.effects {
            let world = killed_at(&topology, cache_bytes, cut);
            assert_eq!(
                world.latest("out"),
                expected.latest("out"),
                "cache {cache_bytes}, killed before effect {cut}"
            );
            assert_eq!(
                world.latest("app-counts-changelog"),
                expected.latest("app-counts-changelog"),
                "cache {cache_bytes}, cut {cut}"
            );
        }
    }
}

#[test]
fn uncached_counts_repeat_no_intermediate_result_either() {
    let topology = counting();
    let expected = undisturbed(&topology, 0);
    assert_eq!(expected.all("out").len(), 40);
    for cut in 0..expected.effects {
        assert_eq!(
            killed_at(&topology, 0, cut).all("out"),
            expected.all("out"),
            "killed before effect {cut}"
        );
    }
}

#[test]
fn the_cache_forwards_less_but_ends_with_the_same() {
    let topology = counting();
    let (without, with) = (undisturbed(&topology, 0), undisturbed(&topology, 1 << 20));
    assert!(with.all("out").len() < without.all("out").len());
    assert_eq!(with.latest("out"), without.latest("out"));
}

#[test]
fn the_same_run_gives_the_same_trace() {
    let topology = counting();
    assert_eq!(undisturbed(&topology, 1).trace, undisturbed(&topology, 1).trace);
}
