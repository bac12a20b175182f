//! The plan: who is told what, and when. It does no I/O and reads no clock: times are arguments.
//!
//! A notice waits for a moment before it is told, since a question may be answered at once, by a rule or by a person who
//! is looking. Of each session and kind there is one notice: a newer one replaces it, and its answer ends it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use grove_core::{ChatId, RequestId, SessionId};

use crate::notice::{KindSet, Notice, NoticeKind, TargetId, TargetSet};
use crate::quiet::QuietHours;

/// The time that a notice waits: a question that is answered meanwhile is not told.
pub const SETTLE_TIME: Duration = Duration::from_secs(3);
/// The time that it waits while a person has the session open.
pub const ATTENDED_TIME: Duration = Duration::from_secs(20);
/// The notices that wait or were told; with more, the oldest is forgotten.
pub const MAX_OPEN_NOTICES: usize = 1_000;
/// The open requests of a session that are counted; further ones are told like the newest of them.
pub const MAX_OPEN_REQUESTS: usize = 256;
/// The notices that a party is told within [`RATE_TIME`]; further ones wait.
pub const MAX_RATE: usize = 20;
/// The time over which a party's notices are counted.
pub const RATE_TIME: Duration = Duration::from_secs(10 * 60);

/// Something that happened to a session, as far as a person cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A request waits for a person.
    Asked { request: RequestId, notice: Notice },
    /// A request was answered, or withdrawn.
    Answered { session: SessionId, chat: ChatId, request: RequestId },
    /// A turn has ended.
    Ended(Notice),
    /// A turn began in a chat: the end of the last one is old news.
    Began { session: SessionId, chat: ChatId },
    /// A person has read the session.
    Read(SessionId),
    /// The session is archived or removed.
    Removed(SessionId),
}

/// A party that can be told.
#[derive(Clone, Debug, PartialEq)]
pub struct NoticeTarget {
    pub id: TargetId,
    pub events: KindSet,
    pub quiet: Option<QuietHours>,
}

/// A step of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Tell(TargetId, Notice),
    /// The party was told, and need not be bothered any more.
    Close(TargetId, SessionId, NoticeKind),
}

/// The state of the session when a notice is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attendance {
    /// A person has the session open.
    pub is_attended: bool,
    /// The session counts as read.
    pub is_read: bool,
}

/// The notices that wait or were told.
#[derive(Debug, Default)]
pub struct Planner {
    open: BTreeMap<(SessionId, NoticeKind), OpenNotice>,
    /// The closings that are due.
    closings: Vec<Step>,
    /// The times at which each party was told.
    told: BTreeMap<TargetId, VecDeque<u64>>,
}

#[derive(Debug)]
struct OpenNotice {
    notice: Notice,
    /// The requests that wait, if it is about requests.
    requests: BTreeSet<(ChatId, RequestId)>,
    /// The time at which it is told, unless it has been.
    due: Option<u64>,
    told: TargetSet,
    /// The parties that are told later: it is quiet for them, or they were told too much.
    held: BTreeMap<TargetId, u64>,
}

impl OpenNotice {
    /// The next time at which something is to be done.
    fn next(&self) -> Option<u64> {
        self.due.into_iter().chain(self.held.values().copied()).min()
    }
}

impl Planner {
    /// Takes note of something that happened.
    pub fn note(&mut self, happening: Happening, now: u64, is_attended: bool) {
        match happening {
            Happening::Asked { request, notice } => {
                let key = (notice.session.clone(), notice.kind);
                let asked = (notice.chat.clone(), request);
                let known = self.open.get(&key);
                // The draft of an answer says again that the request waits.
                if known.is_some_and(|known| known.requests.contains(&asked)) {
                    return;
                }
                let mut requests = known.map(|known| known.requests.clone()).unwrap_or_default();
                if requests.len() < MAX_OPEN_REQUESTS {
                    requests.insert(asked);
                }
                self.open_notice(notice, requests, now, is_attended);
            }
            Happening::Answered { session, chat, request } => {
                let key = (session, NoticeKind::Waiting);
                let Some(open) = self.open.get_mut(&key) else { return };
                open.requests.remove(&(chat, request));
                if open.requests.is_empty() {
                    self.close(&key);
                }
            }
            Happening::Ended(notice) => self.open_notice(notice, BTreeSet::new(), now, is_attended),
            Happening::Began { session, chat } => self.close_ends(&session, Some(&chat)),
            Happening::Read(session) => self.close_ends(&session, None),
            Happening::Removed(session) => {
                for kind in NoticeKind::ALL {
                    self.close(&(session.clone(), kind));
                }
            }
        }
    }

    fn open_notice(&mut self, notice: Notice, requests: BTreeSet<(ChatId, RequestId)>, now: u64, is_attended: bool) {
        let key = (notice.session.clone(), notice.kind);
        let wait = if is_attended { ATTENDED_TIME } else { SETTLE_TIME };
        let earlier = self.open.remove(&key);
        // Many questions in a row must not put off the first one.
        let due = earlier.as_ref().and_then(|earlier| earlier.due).unwrap_or(now + millis(wait));
        let (told, held) = earlier.map(|earlier| (earlier.told, earlier.held)).unwrap_or_default();
        if self.open.len() >= MAX_OPEN_NOTICES
            && let Some(oldest) = self.open.iter().min_by_key(|(_, open)| open.notice.at).map(|(key, _)| key.clone())
        {
            self.open.remove(&oldest);
        }
        self.open.insert(key, OpenNotice { notice, requests, due: Some(due), told, held });
    }

    fn close_ends(&mut self, session: &SessionId, chat: Option<&ChatId>) {
        for kind in [NoticeKind::Finished, NoticeKind::Failed] {
            let key = (session.clone(), kind);
            if self.open.get(&key).is_some_and(|open| chat.is_none_or(|chat| open.notice.chat == *chat)) {
                self.close(&key);
            }
        }
    }

    fn close(&mut self, key: &(SessionId, NoticeKind)) {
        let Some(closed) = self.open.remove(key) else { return };
        self.closings.extend(closed.told.into_iter().map(|target| Step::Close(target, key.0.clone(), key.1)));
    }

    /// The steps that are due. A party that is not among the targets is forgotten.
    pub fn due(&mut self, now: u64, targets: &[NoticeTarget], look: impl Fn(&SessionId) -> Attendance) -> Vec<Step> {
        let mut steps = std::mem::take(&mut self.closings);
        self.told.retain(|id, _| targets.iter().any(|target| target.id == *id));
        let mut seen = Vec::new();
        for (key, open) in &mut self.open {
            let is_due = open.due.is_some_and(|due| due <= now);
            if is_due {
                open.due = None;
                let attendance = look(&key.0);
                // The end of a turn is no news for a person who has read it.
                if key.1 != NoticeKind::Waiting && attendance.is_attended && attendance.is_read {
                    seen.push(key.clone());
                    continue;
                }
            }
            for target in targets.iter().filter(|target| target.events.contains(key.1)) {
                let is_released = open.held.get(&target.id).is_some_and(|until| *until <= now);
                if !is_due && !is_released {
                    continue;
                }
                open.held.remove(&target.id);
                let times = self.told.entry(target.id.clone()).or_default();
                match held_until(target, times, now) {
                    Some(until) => drop(open.held.insert(target.id.clone(), until)),
                    None => {
                        times.push_back(now);
                        open.told.insert(target.id.clone());
                        steps.push(Step::Tell(target.id.clone(), open.notice.clone()));
                    }
                }
            }
            open.held.retain(|id, _| targets.iter().any(|target| target.id == *id && target.events.contains(key.1)));
        }
        for key in seen {
            self.close(&key);
        }
        steps.append(&mut self.closings);
        steps
    }

    /// The time at which something is due next, in milliseconds since 1970.
    pub fn next(&self) -> Option<u64> {
        let closing = (!self.closings.is_empty()).then_some(0);
        self.open.values().filter_map(OpenNotice::next).chain(closing).min()
    }
}

/// The time until which a party is not told, because of its quiet hours or because it was told too much.
fn held_until(target: &NoticeTarget, times: &mut VecDeque<u64>, now: u64) -> Option<u64> {
    if let Some(end) = target.quiet.as_ref().and_then(|quiet| quiet.end_of(now)) {
        return Some(end);
    }
    while times.front().is_some_and(|time| time + millis(RATE_TIME) <= now) {
        times.pop_front();
    }
    (times.len() >= MAX_RATE).then(|| times.front().map(|time| time + millis(RATE_TIME)))?
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
