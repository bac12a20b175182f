//! The permission requests that people answered, for judging them by rules again.
//!
//! Three sources record them: the logs of Grove's sessions in every store, the audit log, and the histories of other
//! tools. A request that several of them record counts once.

mod audit_records;
mod histories;
mod session_logs;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use grove_core::Timestamp;
use grove_policy::replay::{Answer, PastRequest};
use grove_policy::{Request, RequestAction};

use crate::history;
use crate::settings::Settings;
use crate::stores;

/// The maximum number of requests that are collected.
const MAX_REQUESTS: usize = 100_000;

/// The place where a request is recorded, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestRecord {
    /// `grove`, `audit`, or the tool whose history has it.
    pub(crate) source: &'static str,
    pub(crate) session: String,
    /// The beginning of its turn, or the time of the answer if only that is known.
    pub(crate) at: Timestamp,
}

/// Answered requests, and where each is recorded.
#[derive(Debug, Default)]
pub(crate) struct PastRequests<'a> {
    pub(crate) requests: Vec<PastRequest>,
    /// One record per request, in the same order.
    pub(crate) records: Vec<RequestRecord>,
    home: Option<String>,
    /// The indexes of the collected requests, by agent and tool call.
    known: HashMap<(String, String), Vec<usize>>,
    /// True when nobody waits for them any more.
    stop: Option<&'a AtomicBool>,
}

/// A request as one source records it.
struct FoundRequest {
    agent: String,
    /// The agent's id of the tool call.
    call: String,
    action: RequestAction,
    directory: Option<String>,
    answer: Answer,
    record: RequestRecord,
}

/// The evidence by which a request is the same as an earlier one of the same agent and call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SameBy {
    /// The time of the turn: forks copy the turns of their origin.
    Time,
    /// The session: an audit record is later than its turn.
    Session,
    /// The subject alone: other tools have session ids of their own.
    Subject,
}

impl<'a> PastRequests<'a> {
    /// Collects the requests of all sources since a time.
    pub(crate) fn collect(settings: &Settings, since: Timestamp) -> Self {
        Self { home: Some(settings.home.to_string_lossy().into_owned()), ..Self::default() }.with_all(settings, since)
    }

    /// The same until `stop` is true, which is looked at before each session.
    pub(crate) fn collect_until(settings: &Settings, since: Timestamp, stop: &'a AtomicBool) -> Self {
        let home = Some(settings.home.to_string_lossy().into_owned());
        Self { home, stop: Some(stop), ..Self::default() }.with_all(settings, since)
    }

    fn with_all(self, settings: &Settings, since: Timestamp) -> Self {
        let mut past = self;
        for store in stores::folders(settings) {
            session_logs::collect(&store.folder, since, &mut past);
        }
        audit_records::collect(&settings.data_dir.value, since, &mut past);
        for root in history::roots(settings) {
            histories::collect(&root, since, &mut past);
        }
        past
    }

    /// The number of requests of each source.
    pub(crate) fn by_source(&self) -> Vec<(&'static str, usize)> {
        let mut counts: Vec<(&'static str, usize)> = Vec::new();
        for record in &self.records {
            match counts.iter_mut().find(|(source, _)| *source == record.source) {
                Some((_, count)) => *count += 1,
                None => counts.push((record.source, 1)),
            }
        }
        counts
    }

    fn is_full(&self) -> bool {
        self.requests.len() >= MAX_REQUESTS || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Adds a request, unless an earlier source has it.
    fn add(&mut self, found: FoundRequest, same_by: SameBy) {
        let FoundRequest { agent, call, action, directory, answer, record } = found;
        if self.is_full() {
            return;
        }
        let known = self.known.entry((agent.clone(), call)).or_default();
        let is_same = |index: &&usize| match (self.requests.get(**index), self.records.get(**index)) {
            (Some(earlier), Some(at)) => match same_by {
                SameBy::Time => at.at == record.at && earlier.request.action == action,
                SameBy::Session => at.session == record.session && at.at <= record.at,
                SameBy::Subject => earlier.request.action == action,
            },
            _ => false,
        };
        if let Some(index) = known.iter().rev().find(is_same) {
            // A log has no subject of an agent without structured input; the audit log has it.
            if let Some(earlier) = self.requests.get_mut(*index)
                && matches!(earlier.request.action, RequestAction::Unknown { .. })
            {
                earlier.request.action = action;
            }
            return;
        }
        known.push(self.requests.len());
        let request = Request { agent, action, directory, home: self.home.clone() };
        self.requests.push(PastRequest { request, answer: Some(answer) });
        self.records.push(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &'static str, session: &str, at: u64) -> FoundRequest {
        FoundRequest {
            agent: "claude".to_owned(),
            call: "toolu_1".to_owned(),
            action: RequestAction::Shell { command: "ls".to_owned() },
            directory: None,
            answer: Answer::Approved,
            record: RequestRecord { source, session: session.to_owned(), at: Timestamp(at) },
        }
    }

    #[test]
    fn a_request_of_several_sources_counts_once() {
        let mut past = PastRequests::default();
        past.add(found("grove", "s", 1), SameBy::Time);
        past.add(found("grove", "fork of s", 1), SameBy::Time);
        past.add(found("audit", "s", 2), SameBy::Session);
        past.add(found("claude", "other", 3), SameBy::Subject);
        assert_eq!(past.by_source(), [("grove", 1)]);
        past.add(found("grove", "s", 4), SameBy::Time);
        past.add(found("audit", "deleted", 5), SameBy::Session);
        let another = FoundRequest { call: "toolu_2".to_owned(), ..found("claude", "other", 6) };
        past.add(another, SameBy::Subject);
        assert_eq!(past.by_source(), [("grove", 2), ("audit", 1), ("claude", 1)]);
        assert_eq!(past.requests.len(), past.records.len());
    }

    #[test]
    fn collecting_ends_when_nobody_waits_for_it() {
        let stop = AtomicBool::new(false);
        let mut past = PastRequests { stop: Some(&stop), ..PastRequests::default() };
        past.add(found("grove", "s", 1), SameBy::Time);
        stop.store(true, Ordering::Relaxed);
        past.add(found("grove", "s", 2), SameBy::Time);
        assert_eq!(past.by_source(), [("grove", 1)]);
    }

    #[test]
    fn the_audit_log_says_what_a_log_does_not_know() {
        let mut past = PastRequests::default();
        let unknown = FoundRequest { action: RequestAction::Unknown { kind: None }, ..found("grove", "s", 1) };
        past.add(unknown, SameBy::Time);
        past.add(found("audit", "s", 2), SameBy::Session);
        assert_eq!(past.requests.len(), 1);
        assert_eq!(past.requests[0].request.action, RequestAction::Shell { command: "ls".to_owned() });
    }
}
