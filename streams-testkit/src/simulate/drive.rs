//! One stream thread is driven: the loop, the effects and the order of looks at the group are those of the shipped
//! shell (`streams-core/src/kafka/shell/thread.rs` and `effects.rs`). Nothing is decided here.

use streams_core::error::ProcessResult;
use streams_core::membership::MembershipEvent;
use streams_core::runtime::GroupIdentity;

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
        if thread.round_token != token || thread.blocked || thread.leaving {
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
            Err(error) => {
                let key = thread.key;
                self.put_back(thread);
                self.thread_failed(key, &error.to_string());
            }
        }
    }

    fn drive(&mut self, thread: &mut Thread) -> ProcessResult<Next> {
        loop {
            let clock_ms = self.clock_ms(thread.key.instance);
            thread.alive_at_ms = clock_ms;
            match thread.place {
                Place::Start => {
                    self.membership(thread)?;
                    while let Some(restored) = thread.restored.pop_front() {
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
                        thread.place = Place::Start;
                        return Ok(self.rest(thread));
                    };
                    match self.perform(thread, effect)? {
                        Performed::Told | Performed::InBackground => {}
                        Performed::Blocked => return Ok(Next::Blocked),
                        Performed::Stall(ms) => return Ok(Next::Wait(ms)),
                        Performed::Crash => return Ok(Next::Crash),
                    }
                }
                Place::Fetch if thread.core.waits_for_commit() => {
                    thread.place = Place::Start;
                    return Ok(Next::Wait(1 + self.random_ms(20)));
                }
                Place::Fetch => {
                    self.fetch_and_process(thread)?;
                    thread.place = Place::EffectsAfterFetch;
                    if let Some(ms) = self.weather.stalls_here(&mut self.rng, self.now_ms) {
                        self.note(|| format!("{} stalls for {ms} ms after processing", thread.key));
                        return Ok(Next::Wait(ms));
                    }
                }
            }
        }
    }

    /// Tells the core how a call of a commit ended that was made while it went on, if one has.
    fn look_at_commit(&mut self, thread: &mut Thread) -> ProcessResult {
        match thread.answered.take() {
            Some(number) => self.hear(thread, number),
            None => Ok(()),
        }
    }

    /// Between two rounds: not at all while there is work, never past the next deadline.
    fn rest(&mut self, thread: &Thread) -> Next {
        let core = &thread.core;
        if thread.closing && !core.has_uncommitted() && core.status_settled() && core.is_idle() {
            return Next::Leave;
        }
        if thread.closing || core.buffered() > 0 || !core.status_settled() {
            return Next::Wait(1 + self.random_ms(5));
        }
        let clock_ms = self.clock_ms(thread.key.instance);
        let due_ms = core.next_deadline_ms(clock_ms).unwrap_or(i64::MAX);
        Next::Wait((due_ms.saturating_sub(clock_ms)).clamp(1, 40 + self.random_ms(20)))
    }

    fn fetch_and_process(&mut self, thread: &mut Thread) -> ProcessResult {
        let most = self.weather.fetch_records;
        let mut fetched = thread.consumer.fetch(&self.broker, most);
        #[cfg(test)]
        self.mutate_fetched(&mut fetched, thread);
        thread.core.accept(&mut fetched)?;
        let budget = usize::try_from(1 + self.rng.below(20)).unwrap_or(1);
        let clock_ms = self.clock_ms(thread.key.instance);
        let done = thread.core.process(clock_ms, budget)?;
        if done > 0 {
            self.note(|| format!("{} processed {done}", thread.key));
        }
        Ok(())
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
                let active = if thread.closing || !ready { Vec::new() } else { active };
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
                thread.core.on_lost()?;
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
