//! The heartbeat thread of each stream thread: one request at a time, commands between them, as the shipped one.

use streams_core::membership::member::Step;
use streams_core::membership::{MembershipCommand, MembershipEvent};

use super::fates::{Fate, RequestKind};
use super::process::{Key, Thread};
use super::world::{BeatAnswer, Event, World};

impl World<'_> {
    /// A command to the membership, which is looked at at once.
    pub(super) fn command(&mut self, thread: &mut Thread, command: MembershipCommand) {
        thread.commands.push(command);
        self.wake_beat(thread, 0);
    }

    pub(super) fn wake_beat(&mut self, thread: &mut Thread, after_ms: i64) {
        let token = self.number();
        thread.beat_token = token;
        self.after(after_ms, Event::Beat(thread.key, token));
    }

    /// The heartbeat thread looks what is to be done.
    pub(super) fn beat(&mut self, key: Key, token: u64) {
        if let Some(until_ms) = self.paused_until(key) {
            return self.at(until_ms, Event::Beat(key, token));
        }
        let Some(mut thread) = self.take(key) else { return };
        // A request under way ends first; its answer wakes the heartbeats again.
        if thread.beat_token != token || thread.beating || thread.member_ended {
            return self.put_back(thread);
        }
        let clock_ms = self.clock_ms(key.instance);
        let at_ms = thread.alive_at_ms;
        thread.member.on_command(MembershipCommand::Alive { at_ms }, clock_ms);
        for command in std::mem::take(&mut thread.commands) {
            thread.member.on_command(command, clock_ms);
        }
        let step = thread.member.next(clock_ms);
        self.hand_over(&mut thread);
        match step {
            Step::End => {
                thread.member_ended = true;
                return self.member_ended(thread);
            }
            Step::Wait { until_ms } => self.wake_beat(&mut thread, (until_ms - clock_ms).max(1)),
            step => {
                thread.beating = true;
                let fate = self.weather.fate(&mut self.rng, RequestKind::Question, self.now_ms);
                let there_ms = self.weather.latency_ms(&mut self.rng, self.now_ms);
                if fate == Fate::Lost {
                    self.after(there_ms + 1_000, Event::BeatAnswer(key, Box::new(BeatAnswer::Failed)));
                } else {
                    let answered = fate != Fate::AnswerLost;
                    self.after(there_ms, Event::BeatArrives(key, Box::new(step), answered));
                }
            }
        }
        self.put_back(thread);
    }

    pub(super) fn beat_arrives(&mut self, key: Key, step: &Step, answered: bool) {
        let mut answer = match step {
            _ if self.coordinator_away => BeatAnswer::Failed,
            Step::Heartbeat(request) => {
                let response = self.group.heartbeat(request, self.now_ms);
                if response.tasks.is_some() || response.error_code != 0 || request.tasks.is_some() {
                    self.note(|| {
                        let owned = request.tasks.as_ref().map(|tasks| format!("{:?}", tasks.active));
                        let given = response.tasks.as_ref().map(|tasks| format!("{:?}", tasks.active));
                        format!(
                            "heartbeat of {key} at {} owns {owned:?}: error {} epoch {} tasks {given:?}",
                            request.member_epoch, response.error_code, response.member_epoch
                        )
                    });
                }
                BeatAnswer::Heartbeat(response)
            }
            Step::Describe(request) => BeatAnswer::Described(self.group.describe(&request.group_id)),
            Step::Wait { .. } | Step::End => return,
        };
        let mut back_ms = self.weather.latency_ms(&mut self.rng, self.now_ms);
        if !answered {
            answer = BeatAnswer::Failed;
            back_ms += 1_000;
        }
        self.after(back_ms, Event::BeatAnswer(key, Box::new(answer)));
    }

    pub(super) fn beat_answer(&mut self, key: Key, answer: BeatAnswer) {
        if let Some(until_ms) = self.paused_until(key) {
            return self.at(until_ms, Event::BeatAnswer(key, Box::new(answer)));
        }
        let Some(mut thread) = self.take(key) else { return };
        let clock_ms = self.clock_ms(key.instance);
        thread.beating = false;
        match answer {
            BeatAnswer::Heartbeat(response) => drop(thread.member.on_answer(response, clock_ms)),
            BeatAnswer::Described(group) => drop(thread.member.on_described(&group, clock_ms)),
            BeatAnswer::Failed => thread.member.on_failure("simulated", clock_ms),
        }
        self.hand_over(&mut thread);
        self.wake_beat(&mut thread, 0);
        self.put_back(thread);
    }

    fn hand_over(&mut self, thread: &mut Thread) {
        while let Some(event) = thread.member.pop_event() {
            if let MembershipEvent::Refused { error } = &event {
                self.note(|| format!("{} {error}", thread.key));
            }
            thread.events.push_back(event);
        }
    }
}
