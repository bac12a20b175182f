//! The conversation of a session: reading it, rewinding it, and forking sessions from it.

use std::sync::Arc;
use std::time::Duration;

use grove_core::*;
use grove_host::sequencer::SubscriptionTarget;
use grove_host::session::{BranchInfo, ChatAddress, InfoEntries, NavigateOptions, TreeAnswer, TreeRequest};
use grove_host::{Host, turns};
use grove_wire::copilot::events::{CompactionStart, SnapshotRewind};
use grove_wire::copilot::methods::*;
use grove_wire::copilot::{Event, EventData, project};

use super::feed::Feed;
use super::peer::{CopilotError, CopilotPeer, SessionRef};

/// Turns that are read at once.
const TURNS: usize = 1_000;
/// Reads for one request.
///
/// Each returns at most the turns of a snapshot, so a very long session gives the events of its newest turns.
pub const READS: usize = 8;

/// The turns of a session, the entries of its log outside of turns, and the session.
pub(super) struct SessionTranscript {
    session: Session,
    turns: Vec<Arc<Turn>>,
    entries: Vec<LogEntry>,
    /// The entries with their positions in the log.
    logged: Option<InfoEntries>,
    /// The model as the client selected it.
    selected_model: String,
}

impl SessionTranscript {
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().map(Arc::as_ref)
    }

    fn events(&self) -> impl Iterator<Item = Event> + '_ {
        let events = project::history(&self.session, self.turns(), &self.entries);
        events.map(|event| with_model(event, &self.selected_model))
    }
}

/// The first event of a session, with its model as the client selected it.
pub(super) fn with_model(mut event: Event, selected_model: &str) -> Event {
    if let EventData::SessionStart(start) = &mut event.data {
        start.selected_model = Some(selected_model.to_owned());
    }
    event
}

/// The entries of a session's log outside of turns. Without them, the turns alone have events.
pub(super) async fn logged_entries(host: &Host, session: &SessionId) -> Option<InfoEntries> {
    let id = session.clone();
    let uri = host.sequencer().read(move |published| Some(published.state.sessions.get(&id)?.uri.clone()))?;
    let asked = host.ask_tree(&(uri, ChatId::from(Session::MAIN_CHAT)), TreeRequest::InfoEntries).await;
    let answer = match asked {
        Ok(asked) => asked.answer().await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match answer {
        Ok(TreeAnswer::InfoEntries(entries)) => Some(entries),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(%session, %error, "events outside of turns are missing: the log could not be read");
            None
        }
    }
}

/// The entries among the turns that a session shows.
pub(super) fn placed_entries(session: &Session, logged: Option<&InfoEntries>) -> Vec<LogEntry> {
    let chat = session.main_chat();
    let turns: Vec<&TurnId> = chat.into_iter().flat_map(|chat| &chat.turns).map(|turn| &turn.id).collect();
    place_entries(logged, &turns, chat.is_some_and(|chat| chat.has_older_turns))
}

/// The entries, each with the turn before it. Those before the first of these turns are left out if there are older ones.
fn place_entries(logged: Option<&InfoEntries>, turns: &[&TurnId], has_older: bool) -> Vec<LogEntry> {
    let Some(InfoEntries { entries, newest }) = logged else { return Vec::new() };
    let count = match newest {
        None => 0,
        Some(newest) => match turns.iter().rposition(|turn| *turn == newest) {
            Some(at) => at + 1,
            // The leaf has moved meanwhile.
            None => return Vec::new(),
        },
    };
    let placed = entries.iter().filter_map(|entry| {
        let before = count.checked_sub(entry.turns_behind)?;
        let after = match before.checked_sub(1) {
            Some(at) => Some((*turns.get(at)?).clone()),
            None if has_older => return None,
            None => None,
        };
        Some(LogEntry { line: entry.line.clone(), after })
    });
    placed.collect()
}

impl CopilotPeer {
    pub(super) async fn messages(&self, params: SessionParams) -> Result<GetMessagesResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        // A client that has closed a session, and reads it all the same, is told so like by Copilot's own CLI.
        if !self.endpoint().state().open.contains_key(&session.id) {
            return Err(CopilotError::Failed(format!("Session not found: {}", session.id)));
        }
        Ok(GetMessagesResult { events: self.transcript(&session).await?.events().collect() })
    }

    /// The transcript of a session's main chat.
    pub(super) async fn transcript(&self, session: &SessionRef) -> Result<SessionTranscript, CopilotError> {
        let wanted = || SubscriptionTarget::SessionWithMainChat(session.uri.clone());
        let logged = logged_entries(self.host(), &session.id).await;
        let mut has_older = false;
        let mut parts: Vec<Vec<Arc<Turn>>> = Vec::new();
        for _ in 0..READS {
            let first = parts.last().and_then(|part| part.first()).map(|turn| turn.id.clone());
            let found = turns::find(self.host(), wanted(), first, TURNS).await?;
            let is_all = !found.older || found.turns.is_empty();
            has_older = found.older;
            parts.push(found.turns);
            if is_all {
                break;
            }
        }
        let turns: Vec<Arc<Turn>> = parts.into_iter().rev().flatten().collect();
        let ids: Vec<&TurnId> = turns.iter().map(|turn| &turn.id).collect();
        let entries = place_entries(logged.as_ref(), &ids, has_older);
        let selected_model = self.selected_model(session).await?;
        // The turns of a session are shared: cloning it costs little.
        let session = self.look(session, Session::clone).await?;
        Ok(SessionTranscript { session, turns, entries, logged, selected_model })
    }

    /// The last message of the agent in the turn of a prompt. The error is the one that ended the turn.
    pub(super) async fn answer_of(&self, session: &SessionRef, prompt: &str) -> Result<Option<Event>, CopilotError> {
        let transcript = self.transcript(session).await?;
        let is_it = |event: &Event| match &event.data {
            EventData::UserMessage(message) => message.message_id.as_deref() == Some(prompt),
            _ => false,
        };
        let mut answer = None;
        for event in transcript.events().skip_while(|event| !is_it(event)).skip(1) {
            match &event.data {
                EventData::UserMessage(_) => break,
                EventData::AssistantMessage(_) => answer = Some(event),
                EventData::SessionError(error) => return Err(CopilotError::Failed(error.message.clone())),
                _ => {}
            }
        }
        Ok(answer)
    }

    /// Reads events from a cursor on, and waits for more if there are none and the client asks for that.
    pub(super) async fn read_events(&self, params: ReadEventsParams) -> Result<ReadEventsResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let feed = self.endpoint().feeds().of(&session.id);
        let mut news = feed.as_ref().map(|feed| feed.updates());
        let patience = params.wait_ms.unwrap_or(0).min(MAX_WAIT_MS);
        let deadline = self.host().env().clock.sleep(Duration::from_millis(patience));
        tokio::pin!(deadline);
        loop {
            let transcript = self.transcript(&session).await?;
            let read = read(&params, merged(feed.as_deref(), transcript.events().collect()));
            let Some(news) = news.as_mut().filter(|_| patience > 0 && read.events.is_empty()) else { return Ok(read) };
            tokio::select! {
                changed = news.changed() => if changed.is_err() { return Ok(read) },
                () = &mut deadline => return Ok(read),
            }
        }
    }

    pub(super) async fn tail(&self, params: SessionParams) -> Result<TailResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let persisted = self.transcript(&session).await?.events().collect();
        let feed = self.endpoint().feeds().of(&session.id);
        let events = merged(feed.as_deref(), persisted);
        let last = events.last();
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
            return Err(unexpected());
        };
        Ok(CompactResult {
            success: true,
            tokens_removed: compacted.tokens_before,
            messages_removed: 0,
            summary_content: Some(compacted.summary),
            context_window: None,
        })
    }

    /// Aborts a summary that is being made.
    pub(super) async fn abort_compaction(&self, params: SessionParams) -> Result<AbortCompactionResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let asked = self.host().ask_tree(&place(&session), TreeRequest::Abort).await?;
        let TreeAnswer::Aborted(aborted) = asked.answer().await? else { return Err(unexpected()) };
        Ok(AbortCompactionResult { aborted })
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
        let target = match transcript.entry(event) {
            // The entry and everything behind it.
            Some(entry) => entry.parent.clone(),
            None => Some(self.entry_of(session, &transcript, event).await?),
        };
        let before = transcript.events().count();
        let request = TreeRequest::Navigate { target, navigate_options: NavigateOptions::default() };
        self.host().ask_tree(&place(session), request).await?.answer().await?;
        let kept = self.transcript(session).await?.events().count();
        let events_removed = before.saturating_sub(kept) as u64;
        if let Some(feed) = self.endpoint().feeds().of(&session.id) {
            feed.say(SnapshotRewind { up_to_event_id: event.to_owned(), events_removed });
        }
        Ok(events_removed)
    }

    /// The user message that begins the turn of an event, or the turn behind an event outside of turns.
    ///
    /// A turn is atomic: cutting inside it removes all of it.
    async fn entry_of(
        &self,
        session: &SessionRef,
        transcript: &SessionTranscript,
        event: &str,
    ) -> Result<String, CopilotError> {
        let unknown = || CopilotError::Failed(format!("Event {event} not found in session {}", session.id));
        let place_of = project::locate(&transcript.session, transcript.turns(), &transcript.entries, event);
        let place_of = place_of.ok_or_else(unknown)?;
        let turn = transcript.turns.get(place_of.turn).ok_or_else(unknown)?.id.clone();
        let asked = self.host().ask_tree(&place(session), TreeRequest::BeginningOf(turn)).await?;
        match asked.answer().await? {
            TreeAnswer::Beginning(entry) => Ok(entry),
            _ => Err(unknown()),
        }
    }

    pub(super) async fn fork(&self, params: ForkParams) -> Result<ForkResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let before = match &params.to_event_id {
            None => None,
            Some(event) => {
                let transcript = self.transcript(&session).await?;
                match transcript.entry(event).filter(|entry| entry.turns_behind == 0) {
                    // Nothing is behind it.
                    Some(_) => None,
                    None => Some(self.entry_of(&session, &transcript, event).await?),
                }
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

impl SessionTranscript {
    /// The entry of an event outside of turns.
    fn entry(&self, event: &str) -> Option<&BranchInfo> {
        let mut entries = self.logged.iter().flat_map(|logged| &logged.entries);
        let is_it = |entry: &&BranchInfo| {
            project::entry_event_id(&self.session.id, &entry.line).is_some_and(|id| *id == *event)
        };
        entries.find(is_it)
    }
}

/// Persisted events with the newest ephemeral ones among them, as far as the feed of the session has them.
fn merged(feed: Option<&Feed>, persisted: Vec<Event>) -> Vec<Event> {
    match feed {
        Some(feed) => feed.with_recent(persisted),
        None => persisted,
    }
}

pub(super) fn place(session: &SessionRef) -> ChatAddress {
    (session.uri.clone(), ChatId::from(Session::MAIN_CHAT))
}

pub(super) fn unexpected() -> CopilotError {
    CopilotError::Failed("the session gave an unexpected answer".to_owned())
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
