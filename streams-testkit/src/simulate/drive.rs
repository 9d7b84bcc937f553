//! One stream thread is driven: the loop, the effects and the order of looks at the group are those of the shipped
//! shell (`streams-core/src/kafka/shell/thread.rs` and `effects.rs`). Nothing is decided here.

use streams_core::Error;
use streams_core::error::ProcessResult;
use streams_core::membership::{MemberEpoch, MembershipEvent};
use streams_core::runtime::GroupIdentity;

use super::ends::STOP_MS;
use super::process::{Key, Place, Thread};
use super::world::{Event, World};

/// How driving a thread ended.
pub(super) enum Next {
    /// A request is under way.
    Blocked,
    /// It goes on after so many ms.
    Wait(i64),
    /// Its process has died.
    Crash,
    /// It has given everything back and leaves the group.
    Leave,
}

/// How one effect went.
pub(super) enum Performed {
    Told,
    /// The committer makes the call, and the thread goes on.
    InBackground,
    Blocked,
    Stall(i64),
    Crash,
}

impl World<'_> {
    pub(super) fn round(&mut self, key: Key, token: u64) {
        if let Some(until_ms) = self.stalled_until(key) {
            return self.at(until_ms, Event::Round(key, token));
        }
        let Some(thread) = self.take(key) else { return };
        if thread.round_token != token || thread.blocked || thread.leaving || thread.dying.is_some() {
            return self.put_back(thread);
        }
        self.go_on(thread);
    }

    /// Drives a thread until it waits for something.
    pub(super) fn go_on(&mut self, mut thread: Box<Thread>) {
        match self.drive(&mut thread) {
            Ok(Next::Blocked) => {
                thread.blocked = true;
                self.put_back(thread);
            }
            Ok(Next::Wait(ms)) => {
                let token = self.number();
                thread.round_token = token;
                thread.wakes_at_ms = self.now_ms + ms;
                let key = thread.key;
                self.put_back(thread);
                self.after(ms, Event::Round(key, token));
            }
            Ok(Next::Crash) => {
                let instance = thread.key.instance;
                self.put_back(thread);
                self.crash(instance);
            }
            Ok(Next::Leave) => self.leave(thread),
            Err(error) => self.thread_failed(thread, error),
        }
    }

    fn drive(&mut self, thread: &mut Thread) -> ProcessResult<Next> {
        loop {
            let clock_ms = self.clock_ms(thread.key.instance);
            thread.alive_at_ms = clock_ms;
            match thread.place {
                Place::Start => {
                    self.membership(thread)?;
                    while let Some(restored) = thread.restorer.try_result() {
                        thread.core.on_restored(restored, clock_ms)?;
                    }
                    thread.place = Place::EffectsBeforeFetch;
                }
                Place::EffectsBeforeFetch | Place::EffectsAfterFetch => {
                    // What the group says and how a commit ended come before each effect, as in the shell.
                    self.membership(thread)?;
                    self.look_at_commit(thread)?;
                    let Some(effect) = thread.core.next_effect(clock_ms)? else {
                        if thread.place == Place::EffectsBeforeFetch && !thread.closing {
                            thread.place = Place::Fetch;
                            continue;
                        }
                        if thread.place == Place::EffectsBeforeFetch && thread.core.has_claimed() {
                            // Its offsets are committed already: what is left out now is lost.
                            thread.processing_ms = 0;
                            thread.place = Place::Process;
                            continue;
                        }
                        thread.place = Place::Start;
                        return self.rest(thread);
                    };
                    match self.perform(thread, effect)? {
                        Performed::Told | Performed::InBackground => {}
                        Performed::Blocked => return Ok(Next::Blocked),
                        Performed::Stall(ms) => return Ok(Next::Wait(ms)),
                        Performed::Crash => return Ok(Next::Crash),
                    }
                }
                Place::Fetch if thread.core.waits_for_commit() => {
                    self.look_at_restores(thread);
                    thread.place = Place::Start;
                    return Ok(Next::Wait(1 + self.random_ms(20)));
                }
                Place::Fetch => {
                    self.look_at_restores(thread);
                    self.fetch(thread)?;
                    thread.processing_ms = 0;
                    thread.place = Place::Process;
                }
                Place::Process => {
                    if let Some(ms) = self.process(thread)? {
                        return Ok(Next::Wait(ms));
                    }
                    if let Some(ms) = self.weather.stalls_here(&mut self.rng, self.now_ms) {
                        self.note(|| format!("{} stalls for {ms} ms after processing", thread.key));
                        return Ok(Next::Wait(ms));
                    }
                }
            }
        }
    }

    fn look_at_restores(&self, thread: &mut Thread) {
        let core = &thread.core;
        thread.restorer.keep(|task, lease| core.waits_for_restore(task, lease));
    }

    /// Tells the core how a call of a commit ended that was made while it went on, if one has.
    fn look_at_commit(&mut self, thread: &mut Thread) -> ProcessResult<bool> {
        match thread.answered.take() {
            Some(number) => self.hear(thread, number).map(|()| true),
            None => Ok(false),
        }
    }

    /// Between two rounds: not at all while there is work, never past the next deadline.
    fn rest(&mut self, thread: &Thread) -> ProcessResult<Next> {
        let core = &thread.core;
        if thread.closing && self.clock_ms(thread.key.instance) > thread.closing_until_ms {
            return Err(Box::new(Error::Timeout {
                what: "the last commit".to_owned(),
                waited_ms: STOP_MS,
                setting: "transaction.timeout.ms",
            }));
        }
        if thread.closing && !core.has_uncommitted() && core.status_settled() && core.is_idle() {
            return Ok(Next::Leave);
        }
        if thread.closing || core.buffered() > 0 || !core.status_settled() {
            return Ok(Next::Wait(1 + self.random_ms(5)));
        }
        let clock_ms = self.clock_ms(thread.key.instance);
        let due_ms = core.next_deadline_ms(clock_ms).unwrap_or(i64::MAX);
        Ok(Next::Wait(
            (due_ms.saturating_sub(clock_ms)).clamp(1, 40 + self.random_ms(20)),
        ))
    }

    fn fetch(&mut self, thread: &mut Thread) -> ProcessResult {
        let most = self.weather.fetch_records;
        let mut fetched = thread.consumer.fetch(&self.broker, most);
        #[cfg(test)]
        self.mutate_fetched(&mut fetched, thread);
        thread.core.accept(&mut fetched)
    }

    /// One chunk of records, as large as user code is fast. Answers for how long user code runs, if it takes time.
    fn process(&mut self, thread: &mut Thread) -> ProcessResult<Option<i64>> {
        /// How long a round of processing may take before effects and the group have their turn.
        const ROUND_MS: i64 = 50;
        const FAST_MS: i64 = 5;
        const SLOW_MS: i64 = 20;
        const LARGEST: usize = 20;
        let drawn = usize::try_from(1 + self.rng.below(LARGEST as u64)).unwrap_or(1);
        let budget = drawn.min(thread.chunk);
        let clock_ms = self.clock_ms(thread.key.instance);
        let done = thread.core.process(clock_ms, budget)?;
        if done > 0 {
            self.note(|| format!("{} processed {done}", thread.key));
        }
        let took_ms = self.weather.user_code_ms(done, self.now_ms);
        let drained = done < budget;
        match took_ms {
            0..=FAST_MS if !drained => thread.chunk = (thread.chunk * 2).min(LARGEST),
            SLOW_MS.. => thread.chunk = (thread.chunk / 2).max(1),
            _ => {}
        }
        thread.processing_ms += took_ms;
        let goes_on = took_ms > 0 && !drained && thread.processing_ms < ROUND_MS;
        if !goes_on || self.look_at_commit(thread)? {
            thread.place = Place::EffectsAfterFetch;
        }
        if took_ms > 0 {
            thread.busy_until_ms = self.now_ms + took_ms;
            return Ok(Some(took_ms));
        }
        Ok(None)
    }

    /// Applies what the group says, in order, each event whole before the next.
    fn membership(&mut self, thread: &mut Thread) -> ProcessResult {
        loop {
            let event = match thread.waiting.take() {
                Some((event, at_ms)) if self.now_ms < at_ms => {
                    thread.waiting = Some((event, at_ms));
                    return Ok(());
                }
                Some((event, _)) => event,
                None => match thread.events.pop_front() {
                    Some(event) => event,
                    None => return Ok(()),
                },
            };
            self.apply(thread, event)?;
        }
    }

    fn apply(&mut self, thread: &mut Thread, event: MembershipEvent) -> ProcessResult {
        match event {
            MembershipEvent::Assigned {
                assignment,
                member,
                active,
                ready,
                status,
                standby,
            } => {
                thread.assignment = assignment;
                if ready
                    && !active.is_empty()
                    && !thread.closing
                    && self.weather.topics_unknown(&mut self.rng, self.now_ms)
                {
                    let event = MembershipEvent::Assigned {
                        assignment,
                        member,
                        active,
                        ready,
                        status,
                        standby,
                    };
                    thread.waiting = Some((event, self.now_ms + 200));
                    return Ok(());
                }
                let tasks: Vec<String> = active.iter().map(ToString::to_string).collect();
                self.note(|| {
                    format!(
                        "{} is assigned [{}] at epoch {} ready {ready}",
                        thread.key,
                        tasks.join(" "),
                        member.epoch
                    )
                });
                thread.core.set_topics(std::sync::Arc::clone(&self.scenario.topics));
                let active = thread
                    .gate
                    .assigned(active, ready, &status, self.clock_ms(thread.key.instance));
                let active = if thread.closing { Vec::new() } else { active };
                let group = GroupIdentity {
                    member_id: member.member_id,
                    member_epoch: member.epoch,
                };
                thread.core.on_assigned(group, active);
            }
            MembershipEvent::Epoch { member } => {
                self.note(|| format!("{} moves to epoch {}", thread.key, member.epoch));
                thread.core.on_epoch(GroupIdentity {
                    member_id: member.member_id,
                    member_epoch: member.epoch,
                });
            }
            MembershipEvent::Lost { assignment, reason } => {
                self.note(|| format!("{} has lost all: {reason}", thread.key));
                thread.assignment = assignment;
                thread.gate.lost();
                self.given_up += 1;
                thread.core.on_lost()?;
            }
            MembershipEvent::Status { ready, status } => {
                let clock_ms = self.clock_ms(thread.key.instance);
                if let Some(active) = thread.gate.changed(ready, &status, clock_ms) {
                    let group = thread.core.group().clone();
                    return self.apply(
                        thread,
                        MembershipEvent::Assigned {
                            assignment: thread.assignment,
                            member: MemberEpoch {
                                member_id: group.member_id,
                                epoch: group.member_epoch,
                            },
                            active,
                            standby: Vec::new(),
                            ready,
                            status: Vec::new(),
                        },
                    );
                }
            }
            MembershipEvent::Fatal { error } => {
                return Err(Box::new(streams_core::Error::Membership {
                    message: error.to_string(),
                }));
            }
            _ => {}
        }
        Ok(())
    }
}
