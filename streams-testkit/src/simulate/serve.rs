//! The brokers serve requests, and threads get their answers.

use streams_core::TopicPartition;
use streams_core::error::ProcessResult;
use streams_core::runtime::{FailureClass, Outcome};
use streams_core::test_driver::{Log, TransactionError, facts, start_of};
use streams_state::{ChangelogFacts, Cleanup};

use super::calls::{Call, Request, Served, ended, failed, flushed, timed_out, unanswered};
use super::fates::{Fate, RequestKind};
use super::process::{Key, Thread};
use super::retention::DELETE_RETENTION_MS;
use super::world::{Event, World};

/// How often a client asks again inside a call, ms.
const AGAIN_MS: i64 = 20;

impl World<'_> {
    pub(super) fn execute(&mut self, number: u64) {
        let Some(mut call) = self.calls.remove(&number) else {
            return;
        };
        if call.not_before_ms > self.now_ms {
            let at_ms = call.not_before_ms;
            self.calls.insert(number, call);
            return self.at(at_ms, Event::Execute(number));
        }
        let lives = self.lives(call.from);
        if lives
            && !call.on_the_wire
            && let Some(until_ms) = self.stalled_until(call.from)
        {
            self.calls.insert(number, call);
            return self.at(until_ms, Event::Execute(number));
        }
        // What a dead process had sent is carried out all the same.
        let sent = call.on_the_wire
            && !matches!(
                call.request.kind(),
                RequestKind::Init | RequestKind::Question | RequestKind::Flush
            );
        if !lives && !sent {
            return;
        }
        let away = self.coordinator_away && call.request.needs_coordinator();
        if away {
            call.fate = Fate::Lost;
            if lives {
                let until_ms = call.until_ms;
                self.calls.insert(number, call);
                self.at(until_ms, Event::Answer(number));
            }
            return;
        }
        let mut served = self.serve(&call);
        if let Served::NotNow = served
            && lives
            && !matches!(call.fate, Fate::Late(_))
            && self.now_ms + AGAIN_MS < call.until_ms
        {
            self.calls.insert(number, call);
            return self.after(AGAIN_MS, Event::Execute(number));
        }
        if call.fate == Fate::Doubled {
            served = self.serve(&call);
        }
        self.check_offsets();
        if !lives || matches!(call.fate, Fate::Late(_)) {
            self.note(|| format!("#{number} is carried out late: {served:?}"));
            if lives {
                // Its failure may not have been heard yet.
                self.calls.insert(number, call);
            }
            return;
        }
        let answer_ms = match call.fate {
            Fate::AnswerLost => call.until_ms,
            _ => {
                (self.now_ms + self.weather.latency_ms(&mut self.rng, self.now_ms)).min(call.until_ms.max(self.now_ms))
            }
        };
        call.answer = Some(served);
        self.calls.insert(number, call);
        self.at(answer_ms, Event::Answer(number));
    }

    fn lives(&self, key: Key) -> bool {
        let instance = self.instances.get(key.instance);
        instance.is_some_and(|instance| {
            let slot = instance.threads.get(key.thread).and_then(Option::as_ref);
            instance.up && slot.is_some_and(|thread| thread.key == key)
        })
    }

    fn serve(&mut self, call: &Call) -> Served {
        match &call.request {
            Request::Init { transactional_id } => {
                let session = self.broker.init_producer(transactional_id);
                Served::Session(session)
            }
            Request::Committed(partitions) => {
                if !partitions.iter().all(|tp| self.broker.is_stable(tp)) && self.requires_stable() {
                    return Served::NotNow;
                }
                let committed = partitions
                    .iter()
                    .map(|tp| (tp.clone(), self.broker.committed(tp).cloned()));
                Served::Outcome(Outcome::Committed(committed.collect()))
            }
            Request::Resolve(partitions) => {
                let starts = partitions
                    .iter()
                    .map(|(tp, reset)| start_of(&self.broker, tp.clone(), *reset));
                Served::Outcome(Outcome::Started(starts.collect()))
            }
            Request::Changelogs(partitions) => {
                let facts = partitions.iter().map(|tp| (tp.clone(), self.facts_of(tp)));
                Served::Outcome(Outcome::Changelogs(facts.collect()))
            }
            Request::Ends(partitions) => {
                let end = |tp: &TopicPartition| self.broker.log(tp).map_or(0, Log::high_watermark);
                let ends = partitions.iter().map(|tp| (tp.clone(), end(tp)));
                Served::Outcome(Outcome::Ends(ends.collect()))
            }
            Request::Flush { epoch } => self.flush(call.from, *epoch),
            Request::SendOffsets {
                session,
                offsets,
                group,
            } => {
                #[cfg(test)]
                let group = &self.mutate_group(group);
                if let Err(refusal) = self.group.check_commit(group, offsets) {
                    return Served::Outcome(failed(FailureClass::StaleMember, refusal.0));
                }
                let offsets = offsets
                    .iter()
                    .map(|o| (o.topic_partition.clone(), o.offset, o.metadata.clone()));
                ended(self.broker.send_offsets(session, offsets.collect(), self.now_ms))
            }
            Request::Offsets { offsets, group } => {
                if let Err(refusal) = self.group.check_commit(group, offsets) {
                    return Served::Outcome(failed(FailureClass::StaleMember, refusal.0));
                }
                let offsets = offsets
                    .iter()
                    .map(|o| (o.topic_partition.clone(), o.offset, o.metadata.clone()));
                self.broker.commit_offsets(offsets.collect());
                Served::Outcome(Outcome::Done)
            }
            Request::End { session, committed } => {
                let result = self.broker.end_transaction(session, *committed);
                #[cfg(test)]
                let result = self.mutate_ended(result);
                ended(result)
            }
            Request::Purge(before) => {
                for (topic_partition, offset) in before {
                    if let Some(log) = self.broker.log_mut(topic_partition) {
                        log.delete_before(*offset);
                    }
                }
                Served::Outcome(Outcome::Done)
            }
        }
    }

    fn requires_stable(&self) -> bool {
        #[cfg(test)]
        return self.mutation != Some(super::tests::Mutation::UnstableOffsets);
        #[cfg(not(test))]
        true
    }

    /// What the broker says about a changelog; its clean-up policy is that of the plan.
    fn facts_of(&self, topic_partition: &TopicPartition) -> ChangelogFacts {
        let changelogs = &self.scenario.changelogs;
        let found = changelogs
            .iter()
            .find(|changelog| *changelog.topic == *topic_partition.topic);
        let cleanup = found.map_or(Cleanup::Compact, |changelog| changelog.cleanup);
        let topic_id = if self.is_remade(topic_partition) {
            [8; 16]
        } else {
            [7; 16]
        };
        #[allow(unused_mut, reason = "only tests change it")]
        let mut facts = ChangelogFacts {
            cleanup,
            delete_retention_ms: DELETE_RETENTION_MS,
            topic_id: Some(topic_id),
            ..facts(&self.broker, topic_partition)
        };
        #[cfg(test)]
        self.mutate_facts(&mut facts, topic_partition);
        facts
    }

    /// Delivers what is left and answers the reports.
    fn flush(&mut self, key: Key, epoch: u32) -> Served {
        let Some(mut thread) = self.take(key) else {
            return Served::Outcome(timed_out());
        };
        let mut served = None;
        while !thread.producer.queue.is_empty() {
            match thread.producer.deliver(0, &mut self.broker, self.now_ms) {
                Ok(()) => {}
                Err(TransactionError::Busy) => {
                    served = Some(Served::NotNow);
                    break;
                }
                Err(_) => {
                    served = Some(Served::Outcome(failed(FailureClass::Fenced, "_FENCED")));
                    break;
                }
            }
        }
        #[allow(unused_mut, reason = "only tests change it")]
        let mut reports = thread.producer.reports(epoch);
        #[cfg(test)]
        self.mutate_reports(&mut reports);
        if thread.producer.fenced {
            served = Some(Served::Outcome(failed(FailureClass::Fenced, "_FENCED")));
        }
        self.put_back(thread);
        served.unwrap_or_else(|| flushed(reports))
    }

    /// Without transactions a flush ends when each record is delivered or refused for good.
    fn partly_flushed(&mut self, thread: &mut Thread, request: &Request) -> Outcome {
        let Request::Flush { epoch } = request else {
            return timed_out();
        };
        let producer = &mut thread.producer;
        let undelivered = producer.refuse_first();
        while !producer.queue.is_empty() {
            if producer.deliver(0, &mut self.broker, self.now_ms).is_err() {
                return timed_out();
            }
        }
        let reports = producer.reports(*epoch);
        if undelivered.is_empty() {
            return Outcome::Flushed(reports);
        }
        self.weather.count("records not delivered");
        self.given_up += 1;
        Outcome::PartlyFlushed {
            reports,
            total: undelivered.len() as u64,
            undelivered,
        }
    }

    /// The producer sends in the background.
    pub(super) fn deliver(&mut self, key: Key) {
        if let Some(until_ms) = self.paused_until(key) {
            return self.at(until_ms, Event::Deliver(key));
        }
        let Some(mut thread) = self.take(key) else { return };
        let most = 1 + self.rng.below(8);
        match thread
            .producer
            .deliver_some(&mut self.rng, &mut self.broker, self.now_ms, most)
        {
            Ok(()) | Err(TransactionError::Busy) => {}
            Err(_) => thread.producer.fenced = true,
        }
        if !thread.producer.queue.is_empty() && !thread.producer.fenced {
            let ms = 1 + self.random_ms(20);
            self.after(ms, Event::Deliver(key));
        }
        self.put_back(thread);
    }

    pub(super) fn answer(&mut self, number: u64) {
        let Some(call) = self.calls.get(&number) else { return };
        let key = call.from;
        if self.lives(key)
            && let Some(until_ms) = self.stalled_until(key)
        {
            return self.at(until_ms, Event::Answer(number));
        }
        let Some(mut thread) = self.take(key) else { return };
        if thread.call != Some(number) {
            return self.put_back(thread);
        }
        if thread.dying.is_some() {
            // The producer is back from its call.
            thread.call = None;
            self.put_back(thread);
            return self.die(key);
        }
        if !thread.blocked {
            // The thread goes on meanwhile; it looks before its next effect.
            thread.answered = Some(number);
            if thread.wakes_at_ms <= self.now_ms + 60 && thread.busy_until_ms <= self.now_ms {
                let token = self.number();
                thread.round_token = token;
                self.after(0, Event::Round(key, token));
            }
            return self.put_back(thread);
        }
        thread.blocked = false;
        match self.hear(&mut thread, number) {
            Ok(()) => self.go_on(thread),
            Err(error) => self.thread_failed(thread, error),
        }
    }

    /// A thread hears how its call ended.
    pub(super) fn hear(&mut self, thread: &mut Thread, number: u64) -> ProcessResult {
        let Some(call) = self.calls.get(&number) else {
            return Ok(());
        };
        let (fate, request) = (call.fate, call.request.clone());
        let answer = match fate {
            // What is carried out later has no answer, and is not forgotten.
            Fate::Late(_) => None,
            _ => self.calls.remove(&number).and_then(|call| call.answer),
        };
        thread.call = None;
        self.tell(thread, &request, fate, answer, number)
    }

    fn tell(
        &mut self,
        thread: &mut Thread,
        request: &Request,
        fate: Fate,
        answer: Option<Served>,
        number: u64,
    ) -> ProcessResult {
        let clock_ms = self.clock_ms(thread.key.instance);
        let outcome = match (fate, answer) {
            (Fate::Refused(FailureClass::Abortable), _)
                if matches!(request, Request::Flush { .. }) && thread.producer.plain =>
            {
                self.partly_flushed(thread, request)
            }
            (Fate::Refused(FailureClass::Abortable), _) if matches!(request, Request::Flush { .. }) => {
                // A delivery report failed: the production handler decides, as in the shell.
                let on = thread
                    .producer
                    .queue
                    .front()
                    .map(|queued| queued.topic_partition.clone());
                let on = on.unwrap_or_else(|| TopicPartition::new("out", 0));
                self.note(|| format!("{} #{number} a record for {on} was not delivered", thread.key));
                return thread.core.on_undelivered(&on, "_MSG_TIMED_OUT", "simulated", true);
            }
            (Fate::Refused(class) | Fate::DoneButFailed(class) | Fate::Late(class), _) => failed(class, "SIMULATED"),
            (Fate::Lost | Fate::AnswerLost, _) | (_, None | Some(Served::NotNow)) => unanswered(request),
            (Fate::Served | Fate::Doubled, Some(Served::Session(session))) => {
                thread.producer.session = Some(session);
                Outcome::Done
            }
            (Fate::Served | Fate::Doubled, Some(Served::Outcome(outcome))) => outcome,
        };
        if let Outcome::Failed(failure) = &outcome
            && failure.class != FailureClass::Retriable
        {
            self.given_up += 1;
        }
        self.note(|| format!("{} hears #{number}: {outcome:?}", thread.key));
        thread.core.on_outcome(outcome, clock_ms)
    }
}
