//! Effects of the core, carried out: what needs no broker at once, the rest as a request that meets its fate.

use streams_core::error::ProcessResult;
use streams_core::membership::MembershipCommand;
use streams_core::runtime::{Effect, FailureClass, Outcome};

use super::calls::{Call, Request, failed};
use super::disruption::Disruption;
use super::drive::Performed;
use super::fates::{Fate, RequestKind};
use super::process::Thread;
use super::weather::zombie_ms;
use super::world::{Event, World};

impl World<'_> {
    pub(super) fn perform(&mut self, thread: &mut Thread, effect: Effect) -> ProcessResult<Performed> {
        let key = thread.key;
        if self.weather.crashes_here(&mut self.rng, self.now_ms) {
            self.note(|| format!("{key} dies before {}", name_of(&effect)));
            return Ok(Performed::Crash);
        }
        let name = name_of(&effect);
        let writes = matches!(effect, Effect::Apply { .. });
        let Some(request) = self.local_part(thread, effect)? else {
            self.note(|| format!("{key} {name}"));
            if self.weather.crashes_here(&mut self.rng, self.now_ms) {
                self.note(|| format!("{key} dies after {name}"));
                return Ok(Performed::Crash);
            }
            if let Some(ms) = self.weather.stalls_here(&mut self.rng, self.now_ms) {
                self.note(|| format!("{key} stalls for {ms} ms after {name}"));
                return Ok(Performed::Stall(ms));
            }
            let written_ms = if writes { self.disk_ms(key.instance) } else { 0 };
            return Ok(if written_ms > 0 {
                Performed::Stall(written_ms)
            } else {
                Performed::Told
            });
        };
        let background = self.weather.pipelined
            && matches!(
                request.kind(),
                RequestKind::Flush | RequestKind::SendOffsets | RequestKind::Commit | RequestKind::Offsets
            );
        self.send(thread, request, &name);
        Ok(if background {
            Performed::InBackground
        } else {
            Performed::Blocked
        })
    }

    /// Carries out what needs no broker and tells the core; answers the request that is left to be made.
    fn local_part(&mut self, thread: &mut Thread, effect: Effect) -> ProcessResult<Option<Request>> {
        let clock_ms = self.clock_ms(thread.key.instance);
        let outcome = match effect {
            Effect::Restore(job) => {
                self.note(|| {
                    let jobs: Vec<String> = job
                        .changelogs
                        .iter()
                        .map(|c| {
                            let zero = match (c.from_zero, c.resumed) {
                                (true, true) => " from zero, resumed",
                                (true, false) => " from zero",
                                _ => "",
                            };
                            format!("{} {}..{}{zero}", c.topic_partition, c.from, c.to)
                        })
                        .collect();
                    format!("{} restores {}: {}", thread.key, job.task, jobs.join(", "))
                });
                thread.restorer.submit(job);
                if !thread.restorer.awake {
                    thread.restorer.awake = true;
                    self.after(1, Event::Restore(thread.key));
                }
                return Ok(None);
            }
            Effect::InitTransactions => {
                let transactional_id = thread.producer.transactional_id.clone();
                return Ok(Some(Request::Init { transactional_id }));
            }
            Effect::RecreateProducer => {
                self.scatter(thread);
                thread.producer.session = None;
                thread.producer.plain = false;
                thread.producer.fenced = false;
                Outcome::Done
            }
            Effect::OpenProducer => {
                thread.producer.plain = true;
                Outcome::Done
            }
            Effect::CommitOffsets { offsets, group } => return Ok(Some(Request::Offsets { offsets, group })),
            Effect::Rejoin => {
                let member_id = format!("r{}", self.number());
                self.command(thread, MembershipCommand::Rejoin { member_id });
                self.weather.count("claim in doubt");
                Outcome::Done
            }
            Effect::FetchCommitted { partitions } => return Ok(Some(Request::Committed(partitions))),
            Effect::ResolveReset { partitions } => return Ok(Some(Request::Resolve(partitions))),
            Effect::ListChangelogs { partitions } => return Ok(Some(Request::Changelogs(partitions))),
            Effect::ListEnds { partitions } => return Ok(Some(Request::Ends(partitions))),
            #[allow(unused_mut, reason = "only tests change it")]
            Effect::Assign { mut partitions } => {
                #[cfg(test)]
                self.mutate_assignments(&mut partitions);
                thread.consumer.assign(partitions)
            }
            Effect::Unassign { partitions } => {
                thread.consumer.unassign(&partitions);
                Outcome::Done
            }
            Effect::Pause { partitions } => {
                thread.consumer.set_paused(&partitions, true);
                Outcome::Done
            }
            Effect::Resume { partitions } => {
                thread.consumer.set_paused(&partitions, false);
                Outcome::Done
            }
            Effect::BeginTransaction => match &thread.producer.session {
                Some(_) => Outcome::Done,
                None => failed(FailureClass::Fenced, "_FENCED"),
            },
            Effect::Send { epoch } => {
                let taken = thread.producer.take(&mut thread.core, &self.broker, epoch);
                taken.map_err(|what| streams_core::Error::Topics { message: what })?;
                #[cfg(test)]
                self.mutate_queue(&mut thread.producer.queue);
                self.after(1, Event::Deliver(thread.key));
                Outcome::Done
            }
            Effect::Flush { epoch } => return Ok(Some(Request::Flush { epoch })),
            Effect::SendOffsets { offsets, group, .. } => {
                #[cfg(test)]
                let Some(offsets) = self.mutate_offsets(offsets) else {
                    return thread.core.on_outcome(Outcome::Done, clock_ms).map(|()| None);
                };
                match thread.producer.session.clone() {
                    Some(session) => {
                        return Ok(Some(Request::SendOffsets {
                            session,
                            offsets,
                            group,
                        }));
                    }
                    None => failed(FailureClass::Fenced, "_FENCED"),
                }
            }
            Effect::CommitTransaction { .. } => return self.end(thread, true),
            Effect::AbortTransaction => {
                // As librdkafka: what is on the wire is waited for, what is queued is dropped.
                let most = self.rng.below(3);
                let _ = thread
                    .producer
                    .deliver_some(&mut self.rng, &mut self.broker, self.now_ms, most);
                thread.producer.purge();
                return self.end(thread, false);
            }
            Effect::Apply { .. } => {
                thread.core.apply(clock_ms)?;
                Outcome::Done
            }
            Effect::Acknowledge { tasks } => {
                let owned = MembershipCommand::Owned {
                    assignment: thread.assignment,
                    active: tasks,
                    standby: Vec::new(),
                };
                self.command(thread, owned);
                Outcome::Done
            }
            Effect::HeartbeatNow => {
                self.command(thread, MembershipCommand::HeartbeatNow);
                Outcome::Done
            }
            Effect::Purge { before } => return Ok(Some(Request::Purge(before))),
        };
        thread.core.on_outcome(outcome, clock_ms)?;
        Ok(None)
    }

    fn end(&mut self, thread: &mut Thread, committed: bool) -> ProcessResult<Option<Request>> {
        match thread.producer.session.clone() {
            Some(session) => Ok(Some(Request::End { session, committed })),
            None => {
                let clock_ms = self.clock_ms(thread.key.instance);
                let outcome = failed(FailureClass::Fenced, "_FENCED");
                thread.core.on_outcome(outcome, clock_ms).map(|()| None)
            }
        }
    }

    /// A destroyed producer drops its queue; records that were on the wire may still arrive, until its id is initialized
    /// again. Without transactions nothing would keep them out later, which no guarantee covers; they arrive now or never.
    pub(super) fn scatter(&mut self, thread: &mut Thread) {
        if thread.producer.plain {
            let most = self.rng.below(3);
            let _ = thread
                .producer
                .deliver_some(&mut self.rng, &mut self.broker, self.now_ms, most);
        }
        let queue = thread.producer.purge();
        let Some(session) = thread.producer.session.clone() else {
            return;
        };
        for queued in queue.into_iter().take(2) {
            let after_ms = self.random_ms(3_000);
            self.after(
                after_ms,
                Event::Stray(session.clone(), queued.topic_partition, queued.record),
            );
        }
    }

    fn send(&mut self, thread: &mut Thread, request: Request, name: &str) {
        let mut fate = self.weather.fate(&mut self.rng, request.kind(), self.now_ms);
        if matches!((fate, request.kind()), (Fate::Late(_), RequestKind::Offsets)) && !self.scenario.claims() {
            // At least once the same offsets are sent again. That a later commit then overtakes the first one would take a
            // broker that serves a connection after it was given up, for longer than a commit interval.
            fate = Fate::Lost;
        }
        let (key, number) = (thread.key, self.number());
        self.note(|| {
            format!(
                "{key} asks #{number} {name} {}",
                if fate == Fate::Served {
                    String::new()
                } else {
                    format!("({fate:?})")
                }
            )
        });
        let there_ms = self.weather.latency_ms(&mut self.rng, self.now_ms);
        let until_ms = self.now_ms + request.slice_ms();
        thread.call = Some(number);
        let is_commit = matches!(request.kind(), RequestKind::SendOffsets | RequestKind::Commit);
        let on_the_wire = self.rng.below(2) == 0;
        self.calls.insert(
            number,
            Call {
                from: key,
                request,
                fate,
                until_ms,
                on_the_wire,
                not_before_ms: 0,
                answer: None,
            },
        );
        match fate {
            Fate::Lost => self.at(until_ms, Event::Answer(number)),
            Fate::Refused(_) => self.after(there_ms, Event::Answer(number)),
            Fate::Late(_) => {
                let late_ms = there_ms + 1 + self.random_ms(3_000);
                self.after(there_ms, Event::Answer(number));
                self.after(late_ms, Event::Execute(number));
            }
            Fate::Served | Fate::AnswerLost | Fate::Doubled | Fate::DoneButFailed(_) => {
                self.after(there_ms, Event::Execute(number));
            }
        }
        if self.weather.crashes_here(&mut self.rng, self.now_ms) {
            // While the request is on its way.
            self.note(|| format!("{key} dies while it waits for #{number}"));
            let ms = self.random_ms(6);
            self.after(ms, Event::Disrupt(Disruption::CrashOf(key)));
        } else if is_commit && std::mem::take(&mut self.weather.zombie_next) {
            // For longer than the session: others get the tasks before this is sent.
            let ms = 12_500 + self.random_ms(15_000);
            self.pause(key.instance, ms);
        } else if let Some(ms) = self.weather.stalls_here(&mut self.rng, self.now_ms) {
            let ms = ms.max(zombie_ms(&mut self.rng));
            self.pause(key.instance, ms);
        }
    }
}

fn name_of(effect: &Effect) -> String {
    match effect {
        Effect::SendOffsets { offsets, group, epoch } => {
            let offsets: Vec<String> = offsets
                .iter()
                .map(|o| format!("{}={}", o.topic_partition, o.offset))
                .collect();
            format!(
                "SendOffsets {epoch} [{}] as {}@{}",
                offsets.join(" "),
                group.member_id,
                group.member_epoch
            )
        }
        Effect::Restore(job) => format!("Restore {}", job.task),
        Effect::Assign { partitions } => {
            let partitions: Vec<String> = partitions
                .iter()
                .map(|a| format!("{}@{}", a.topic_partition, a.start_offset))
                .collect();
            format!("Assign [{}]", partitions.join(" "))
        }
        effect => format!("{effect:?}"),
    }
}
