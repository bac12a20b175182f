//! The conversation of a session: reading it, rewinding it, and forking sessions from it.

use std::sync::Arc;
use std::time::Duration;

use grove_core::*;
use grove_host::sequencer::SubscriptionTarget;
use grove_host::session::{ChatAddress, NavigateOptions, TreeAnswer, TreeRequest};
use grove_host::turns;
use grove_wire::copilot::events::{CompactionStart, SnapshotRewind};
use grove_wire::copilot::methods::*;
use grove_wire::copilot::{Event, EventData, project};

use super::peer::{CopilotError, CopilotPeer, SessionRef};

/// Turns that are read at once.
const TURNS: usize = 1_000;
/// Reads for one request.
///
/// Each returns at most the turns of a snapshot, so a very long session gives the events of its newest turns.
pub const READS: usize = 8;

/// The turns of a session, and the session.
struct SessionTranscript {
    session: Session,
    turns: Vec<Arc<Turn>>,
}

impl SessionTranscript {
    fn events(&self) -> impl Iterator<Item = Event> + '_ {
        project::history(&self.session, self.turns.iter().map(Arc::as_ref))
    }
}

impl CopilotPeer {
    pub(super) async fn messages(&self, params: SessionParams) -> Result<GetMessagesResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        Ok(GetMessagesResult { events: self.transcript(&session).await?.events().collect() })
    }

    /// The transcript of a session's main chat.
    async fn transcript(&self, session: &SessionRef) -> Result<SessionTranscript, CopilotError> {
        let wanted = || SubscriptionTarget::SessionWithMainChat(session.uri.clone());
        let mut parts: Vec<Vec<Arc<Turn>>> = Vec::new();
        for _ in 0..READS {
            let first = parts.last().and_then(|part| part.first()).map(|turn| turn.id.clone());
            let found = turns::find(self.host(), wanted(), first, TURNS).await?;
            let is_all = !found.older || found.turns.is_empty();
            parts.push(found.turns);
            if is_all {
                break;
            }
        }
        let turns = parts.into_iter().rev().flatten().collect();
        // The turns of a session are shared: cloning it costs little.
        let session = self.look(session, Session::clone).await?;
        Ok(SessionTranscript { session, turns })
    }

    /// Reads events from a cursor on, and waits for more if there are none and the client asks for that.
    pub(super) async fn read_events(&self, params: ReadEventsParams) -> Result<ReadEventsResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let feed = self.endpoint().feeds().of(&session.id);
        let mut news = feed.map(|feed| feed.updates());
        let patience = params.wait_ms.unwrap_or(0).min(MAX_WAIT_MS);
        let deadline = self.host().env().clock.sleep(Duration::from_millis(patience));
        tokio::pin!(deadline);
        loop {
            let transcript = self.transcript(&session).await?;
            let read = read(&params, transcript.events().collect());
            let Some(news) = news.as_mut().filter(|_| patience > 0 && read.events.is_empty()) else { return Ok(read) };
            tokio::select! {
                changed = news.changed() => if changed.is_err() { return Ok(read) },
                () = &mut deadline => return Ok(read),
            }
        }
    }

    pub(super) async fn tail(&self, params: SessionParams) -> Result<TailResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let last = self.transcript(&session).await?.events().last();
        Ok(TailResult { cursor: last.map(|event| event.id.to_string()).unwrap_or_default() })
    }

    pub(super) async fn compact(&self, params: CompactParams) -> Result<CompactResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        // An explicit request covers the whole conversation, however short it is.
        let instructions = params.custom_instructions.filter(|text| !text.is_empty());
        if let Some(feed) = self.endpoint().feeds().of(&session.id) {
            feed.say(CompactionStart::default());
        }
        let asked =
            self.host().ask_tree(&place(&session), TreeRequest::Compact { instructions, keep: Some(0) }).await?;
        let TreeAnswer::CompactionOutcome(compacted) = asked.answer().await? else {
            return Err(CopilotError::Failed("the session gave an unexpected answer".to_owned()));
        };
        Ok(CompactResult {
            success: true,
            tokens_removed: compacted.tokens_before,
            messages_removed: 0,
            summary_content: Some(compacted.summary),
            context_window: None,
        })
    }

    pub(super) async fn truncate(&self, params: TruncateParams) -> Result<TruncateResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let removed = self.rewind_before(&session, &params.event_id).await?;
        Ok(TruncateResult { events_removed: removed, ..TruncateResult::default() })
    }

    pub(super) async fn rewind(&self, params: RewindParams) -> Result<RewindResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let result = |outcome, events_removed, error| RewindResult {
            outcome,
            events_removed,
            restored_files: Vec::new(),
            skipped_files: Vec::new(),
            error,
        };
        if params.mode == Some(RewindMode::ConversationAndFiles) {
            let reason = "Grove keeps no file snapshots for this session".to_owned();
            return Ok(result(RewindOutcome::FileChangeTrackingDisabled, None, Some(reason)));
        }
        match self.rewind_before(&session, &params.event_id).await {
            Ok(removed) => Ok(result(RewindOutcome::Success, Some(removed), None)),
            Err(CopilotError::Failed(reason)) => Ok(result(RewindOutcome::TruncationFailed, None, Some(reason))),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn rewind_points(&self, params: SessionParams) -> Result<RewindPointsResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let transcript = self.transcript(&session).await?;
        let points = transcript.events().filter_map(rewind_point).collect();
        Ok(RewindPointsResult {
            file_change_tracking_enabled: false,
            unavailable_reason: Some("Grove keeps no file snapshots for this session".to_owned()),
            points,
        })
    }

    /// Moves the leaf before the turn of an event. Returns the number of events that are off the branch now.
    ///
    /// The log keeps them all.
    async fn rewind_before(&self, session: &SessionRef, event: &str) -> Result<u64, CopilotError> {
        let transcript = self.transcript(session).await?;
        let (entry, kept) = self.entry_of(session, &transcript, event).await?;
        let before = transcript.events().count();
        let request = TreeRequest::Navigate { target: Some(entry), navigate_options: NavigateOptions::default() };
        self.host().ask_tree(&place(session), request).await?.answer().await?;
        let events_removed = before.saturating_sub(kept) as u64;
        if let Some(feed) = self.endpoint().feeds().of(&session.id) {
            feed.say(SnapshotRewind { up_to_event_id: event.to_owned(), events_removed });
        }
        Ok(events_removed)
    }

    /// The user message that begins the turn of an event, and the number of events before it.
    ///
    /// A turn is atomic: cutting inside it removes all of it.
    async fn entry_of(
        &self,
        session: &SessionRef,
        transcript: &SessionTranscript,
        event: &str,
    ) -> Result<(String, usize), CopilotError> {
        let turns = transcript.turns.iter().map(Arc::as_ref);
        let unknown = || CopilotError::Failed(format!("Event {event} not found in session {}", session.id));
        let place_of = project::locate(&transcript.session, turns, event).ok_or_else(unknown)?;
        let turn = transcript.turns.get(place_of.turn).ok_or_else(unknown)?.id.clone();
        let kept = SessionTranscript {
            session: transcript.session.clone(),
            turns: transcript.turns[..place_of.turn].to_vec(),
        };
        let kept = kept.events().count();
        let asked = self.host().ask_tree(&place(session), TreeRequest::BeginningOf(turn)).await?;
        match asked.answer().await? {
            TreeAnswer::Beginning(entry) => Ok((entry, kept)),
            _ => Err(unknown()),
        }
    }

    pub(super) async fn fork(&self, params: ForkParams) -> Result<ForkResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let before = match &params.to_event_id {
            None => None,
            Some(event) => {
                let transcript = self.transcript(&session).await?;
                Some(self.entry_of(&session, &transcript, event).await?.0)
            }
        };
        let name = params.name.filter(|name| !name.is_empty());
        if let Some(forked) = self.fork_client_stored(&session, before.clone(), name.clone()).await? {
            return Ok(forked);
        }
        let said_nothing = |session: &Session| session.main_chat().is_none_or(|chat| chat.turns.is_empty());
        if self.look(&session, said_nothing).await? {
            let id = &session.id;
            return Err(CopilotError::Failed(format!(
                "Cannot fork session {id}: it was not found or has no persisted events"
            )));
        }
        let asked = self.host().ask_tree(&place(&session), TreeRequest::PlanFork { before }).await?;
        let uri = self.host().fork_off(name, None, asked).await?;
        let id = uri.id().map(|id| id.to_string()).unwrap_or_default();
        let forked = self.find(&id).await?;
        let title = self.look(&forked, |session| session.title.clone()).await?;
        Ok(ForkResult { session_id: id, name: Some(title) })
    }
}

fn place(session: &SessionRef) -> ChatAddress {
    (session.uri.clone(), ChatId::from(Session::MAIN_CHAT))
}

/// The events of one read. A cursor is the id of the last event returned.
fn read(params: &ReadEventsParams, events: Vec<Event>) -> ReadEventsResult {
    let cursor = params.cursor.as_deref().filter(|cursor| !cursor.is_empty());
    let known = cursor.map(|cursor| events.iter().position(|event| &*event.id == cursor));
    let cursor_status = if known == Some(None) { CursorStatus::Expired } else { CursorStatus::Ok };
    let known = known.flatten();
    let most = params.count();
    let (mut given, has_more, last) = match params.direction {
        Some(ReadDirection::Backward) => {
            let end = known.unwrap_or(events.len());
            let mut wanted = events[..end].iter().rev().filter(|event| params.wants(event));
            let given: Vec<Event> = wanted.by_ref().take(most).cloned().collect();
            let more = wanted.next().is_some();
            let last = given.last().map(|event| event.id.to_string());
            (given, more, last)
        }
        Some(_) | None => {
            let start = known.map_or(0, |known| known + 1);
            let mut wanted = events[start..].iter().filter(|event| params.wants(event));
            let given: Vec<Event> = wanted.by_ref().take(most).cloned().collect();
            let more = wanted.next().is_some();
            // After a complete read the cursor also passes the events that were filtered out.
            let last = if more { given.last() } else { events.last() };
            let last = last.map(|event| event.id.to_string());
            (given, more, last)
        }
    };
    if params.direction == Some(ReadDirection::Backward) {
        given.reverse();
    }
    let cursor = last.or_else(|| cursor.map(str::to_owned)).unwrap_or_default();
    ReadEventsResult { events: given, cursor, has_more, cursor_status }
}

/// A user message as a rewind point.
fn rewind_point(event: Event) -> Option<RewindPoint> {
    let EventData::UserMessage(message) = event.data else { return None };
    Some(RewindPoint {
        event_id: event.id.to_string(),
        user_message: message.content,
        timestamp: event.timestamp,
        ..RewindPoint::default()
    })
}
