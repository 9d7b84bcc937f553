//! Instances come, go, die, pause and change their size or place; every record counts once.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use streams_testkit::{Exit, wait_until};

use crate::application::LIMIT;
use crate::instances::{Group, Work, impatient_broker, stop, wait_running};

const KEYS: usize = 40;
/// Shorter than the session timeout (45 s): what comes back within it was not waited for.
const AT_ONCE: Duration = Duration::from_secs(30);

/// Offsets never go back.
#[derive(Default)]
struct Rising(std::cell::RefCell<BTreeMap<i32, i64>>);

impl Rising {
    fn look(&self, group: &Group) {
        let mut last = self.0.borrow_mut();
        for (partition, offset) in group.committed() {
            let before = last.insert(partition, offset);
            assert!(
                before.is_none_or(|before| before <= offset),
                "{partition}: {before:?}, then {offset}"
            );
        }
    }
}

/// `STREAMS_CRASH_SCALE_ROUNDS` more rounds of records at the end (the case has 2,000 in all).
#[test]
fn case_reb_scale_1_2_1() {
    let group = Group::on(impatient_broker(), Work::Count, 4).with("producer.transaction.timeout.ms", "5000");
    let rising = Rising::default();
    let load = || {
        group.feed(KEYS);
        rising.look(&group);
    };
    load();
    let mut first = group.start("A");
    group.wait_shared(&[4], load);
    let mut second = group.start("B");
    group.wait_shared(&[2, 2], load);
    first.kill().unwrap();
    // The others get the dead one's tasks when its session has ended.
    group.wait_shared(&[4], load);
    let mut first = group.start("A");
    group.wait_shared(&[2, 2], load);
    let rounds = std::env::var("STREAMS_CRASH_SCALE_ROUNDS").map_or(0, |rounds| rounds.parse().unwrap());
    (0..rounds).for_each(|_| load());
    group.wait_committed(LIMIT, &[&first, &second]);
    rising.look(&group);
    stop(&mut first);
    stop(&mut second);
    group.assert_exact();
}

#[test]
fn case_eos_two_instances_ids() {
    let group = Group::new(Work::Count, 4).with("num.stream.threads", "2");
    let (mut first, mut second) = (group.start("A"), group.start("B"));
    group.wait_shared(&[1, 1, 1, 1], || ());
    for _ in 0..100 {
        group.feed(8);
    }
    group.wait_committed(LIMIT, &[&first, &second]);
    // Transactional ids are made of process id and thread: four members of two processes have four of them.
    let (members, processes) = group.identities();
    assert_eq!((members.len(), processes.len()), (4, 2));
    assert_eq!(stop(&mut first) + stop(&mut second), 0, "fenced");
    group.assert_exact();
}

#[test]
fn case_lock_two_processes() {
    let group = Group::new(Work::Count, 2);
    let mut first = group.start("X");
    wait_running(&mut first, LIMIT);
    let mut second = group.start("X");
    let exit = second.wait(LIMIT).unwrap();
    assert!(!exit.is_success(), "{exit}");
    let printed = second.lines().join("\n");
    let directory = group.directory("X");
    assert!(printed.contains(directory.to_str().unwrap()), "{printed}");
    assert!(printed.contains(&format!("process {}", first.pid())), "{printed}");
    // The first one did not notice, and a killed one leaves no lock behind.
    group.feed(KEYS);
    group.wait_committed(LIMIT, &[&first]);
    first.kill().unwrap();
    let mut again = group.start("X");
    group.feed(KEYS);
    group.wait_committed(AT_ONCE, &[&again]);
    stop(&mut again);
    group.assert_exact();
}

#[test]
fn rule_6_1_a_copied_state_directory_is_another_process() {
    let group = Group::new(Work::Count, 4);
    let mut first = group.start("A");
    group.feed(KEYS);
    group.wait_committed(LIMIT, &[&first]);
    first.kill().unwrap();
    copy(&group.directory("A"), &group.directory("B"));
    let (mut first, mut second) = (group.start("A"), group.start("B"));
    second.wait_for_line(LIMIT, |line| line.contains("copy")).unwrap();
    group.wait_shared(&[2, 2], || group.feed(KEYS));
    let (members, processes) = group.identities();
    assert_eq!((members.len(), processes.len()), (2, 2));
    group.wait_committed(LIMIT, &[&first, &second]);
    assert_eq!(stop(&mut first) + stop(&mut second), 0, "they fence each other");
    group.assert_exact();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn rule_6_1_a_given_process_id_resumes_at_once_without_its_volume() {
    let group = Group::new(Work::Count, 2).with("process.id", "pod-7");
    let mut first = group.start("A");
    group.feed(KEYS);
    group.wait_committed(LIMIT, &[&first]);
    first.kill().unwrap();
    std::fs::remove_dir_all(group.directory("A")).unwrap();
    let mut again = group.start("A");
    assert!(wait_running(&mut again, AT_ONCE) >= KEYS as u64);
    group.feed(KEYS);
    group.wait_committed(AT_ONCE, &[&again]);
    let (members, processes) = group.identities();
    assert_eq!(members, ["pod-7-1".to_owned()].into());
    assert_eq!(processes, ["pod-7".to_owned()].into());
    stop(&mut again);
    group.assert_exact();
}

#[test]
fn rule_6_2_fewer_threads_after_a_kill_get_all_the_tasks_at_once() {
    let group = Group::new(Work::Count, 3).with("num.stream.threads", "3");
    let mut first = group.start("A");
    group.wait_shared(&[1, 1, 1], || group.feed(KEYS));
    let (before, _) = group.identities();
    first.kill().unwrap();
    group.feed(KEYS);
    let group = group.with("num.stream.threads", "1");
    let mut again = group.start("A");
    group.wait_committed(AT_ONCE, &[&again]);
    let (after, _) = group.identities();
    assert_eq!(after.len(), 1);
    assert!(
        before.is_superset(&after),
        "the thread that stays keeps its identity: {before:?}, {after:?}"
    );
    stop(&mut again);
    group.assert_exact();
}

#[test]
fn a_killed_instance_comes_back_as_the_same_member_and_nothing_moves() {
    let group = Group::new(Work::Count, 4);
    let (mut first, mut second) = (group.start("A"), group.start("B"));
    group.wait_shared(&[2, 2], || group.feed(KEYS));
    let members = |group: &Group| {
        let members = group.described().members.into_iter();
        let all: BTreeMap<_, _> = members
            .map(|member| (member.member_id, (member.member_epoch, member.assignment.active)))
            .collect();
        all
    };
    let before = members(&group);
    first.kill().unwrap();
    let mut first = group.start("A");
    group.feed(KEYS);
    group.wait_committed(AT_ONCE, &[&first, &second]);
    assert_eq!(members(&group), before);
    stop(&mut first);
    stop(&mut second);
    group.assert_exact();
}

#[test]
fn rule_6_5_a_lost_directory_costs_a_session_timeout_and_a_restore() {
    let group = Group::on(impatient_broker(), Work::Count, 2);
    let mut first = group.start("A");
    group.feed(KEYS);
    group.wait_committed(LIMIT, &[&first]);
    let (before, _) = group.identities();
    first.kill().unwrap();
    std::fs::remove_dir_all(group.directory("A")).unwrap();
    group.feed(KEYS);
    let mut again = group.start("A");
    group.wait_committed(LIMIT, &[&again]);
    group.wait_shared(&[2], || ());
    let (after, _) = group.identities();
    assert!(before.is_disjoint(&after), "{before:?}, {after:?}");
    let restored: u64 = again
        .lines()
        .iter()
        .filter(|line| line.contains("store is restored task_id="))
        .map(|line| crate::application::number(line, "restored"))
        .sum();
    assert!(restored >= KEYS as u64, "{}", again.lines().join("\n"));
    stop(&mut again);
    group.assert_exact();
}

/// Design rule 1.2: a transaction of a punctuator moves no offset, and must be fenced all the same.
#[test]
fn rule_1_2_a_paused_process_whose_task_moved_commits_nothing_when_it_wakes() {
    let group = Group::on(impatient_broker(), Work::Punctuate, 1).with("producer.transaction.timeout.ms", "5000");
    let written_by = |name: &str| {
        let name = format!("{name} ");
        let records = group.kafka.collect(&group.output).unwrap();
        records
            .iter()
            .filter(|record| record.value_text().starts_with(&name))
            .count()
    };
    let mut first = group.start("A");
    wait_until("what A writes", LIMIT, || Ok(written_by("A") >= 3)).unwrap();
    let mut second = group.start("B");
    group.wait_shared(&[0, 1], || ());
    first.pause().unwrap();
    wait_until("what B writes", LIMIT, || Ok(written_by("B") >= 3)).unwrap();
    let before = written_by("A");
    first.resume().unwrap();
    first
        .wait_for_line(LIMIT, |line| line.contains("every task is lost"))
        .unwrap();
    let seen = written_by("B");
    wait_until("what B writes after that", LIMIT, || Ok(written_by("B") >= seen + 10)).unwrap();
    assert_eq!(written_by("A"), before, "the work of a lost task was committed");
    // It is a member like any other again.
    group.wait_shared(&[0, 1], || ());
    assert_eq!(first.exit().unwrap(), None);
    second.kill().unwrap();
    wait_until("what A writes again", LIMIT, || Ok(written_by("A") > before)).unwrap();
    let exit = first.terminate(LIMIT).unwrap();
    assert_eq!(exit, Exit::Code(0), "{}", first.lines().join("\n"));
}
