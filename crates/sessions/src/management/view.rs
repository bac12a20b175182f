//! The view: the active session and chat, the draft, the active provider.

use std::collections::HashSet;

use super::context::ContextKeys;
use super::events::SessionsEvent;
use crate::ids::{ProviderId, SessionId, SessionTypeId, Uri};
use crate::provider::SessionReplacement;
use crate::registry::RegisteredProvider;
use crate::session::{Chat, Interactivity, Session, SessionState};

/// The view at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActiveView {
    /// The active session. `None`: the form for a new one.
    pub active_session: Option<ActiveSession>,
    /// The draft: the new session that was not sent yet.
    pub new_session: Option<Session>,
    /// The provider for new sessions.
    pub active_provider_id: Option<ProviderId>,
    /// The context keys.
    pub context: ContextKeys,
}

/// The active session, and its active chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveSession {
    session: Session,
    active_chat: Uri,
}

impl ActiveSession {
    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Its active chat.
    pub fn active_chat(&self) -> Chat {
        let shown = shown_chat(&self.session.state(), &self.active_chat);
        self.session.chat(&shown).unwrap_or_else(|| self.session.main_chat())
    }
}

/// A person's choices. The view follows from them and from the present state of the sessions.
#[derive(Debug, Default)]
pub(super) struct Selection {
    active: Option<ActiveSelection>,
    new_session: Option<Session>,
    /// Holds until another session becomes active.
    replacement_request: Option<PendingReplacement>,
}

/// A request for a new session like an active one that was archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReplacementRequest {
    pub(super) folder: Uri,
    pub(super) provider: ProviderId,
    pub(super) session_type: SessionTypeId,
}

#[derive(Debug)]
struct PendingReplacement {
    replacement_request: ReplacementRequest,
    /// Set once somebody fulfils it.
    is_begun: bool,
}

#[derive(Debug)]
struct ActiveSelection {
    session: Session,
    /// `None`: the first one.
    chat: Option<Uri>,
    was_archived: bool,
    /// The chats from before a message was sent. A chat that is not among them came from it, and becomes active.
    before_send: Option<HashSet<Uri>>,
}

impl Selection {
    pub(super) fn active(&self) -> Option<&Session> {
        self.active.as_ref().map(|active| &active.session)
    }

    pub(super) fn new_session(&self) -> Option<&Session> {
        self.new_session.as_ref()
    }

    /// Makes a session and a chat of it active. An active session keeps its chat, unless one is named.
    pub(super) fn open(&mut self, session: Session, chat: Option<Uri>) {
        self.replacement_request = None;
        match &mut self.active {
            Some(active) if active.session == session => {
                if chat.is_some() {
                    active.chat = chat;
                    active.before_send = None;
                }
            }
            _ => {
                let was_archived = session.is_archived();
                self.active = Some(ActiveSelection { session, chat, was_archived, before_send: None });
            }
        }
    }

    /// Shows the form for a new session, with the draft.
    pub(super) fn open_new(&mut self) {
        (self.active, self.replacement_request) = (None, None);
        if let Some(session) = self.new_session.clone() {
            self.open(session, None);
        }
    }

    /// Sets the draft, and returns the earlier one.
    pub(super) fn set_new(&mut self, session: Session) -> Option<Session> {
        let before = self.new_session.replace(session.clone());
        self.open(session, None);
        before
    }

    /// Updates the draft to another session of the same id.
    pub(super) fn update_new(&mut self, session: &Session) {
        if let Some(new) = self.new_session.as_mut().filter(|new| new.id() == session.id()) {
            *new = session.clone();
            self.changed(session);
        }
    }

    /// Drops the draft.
    pub(super) fn unset_new(&mut self) -> Option<Session> {
        self.replacement_request = None;
        let before = self.new_session.take()?;
        if self.active().is_some_and(|active| active.id() == before.id()) {
            self.active = None;
        }
        Some(before)
    }

    /// The replacement request that was not begun. It counts as begun from now on.
    pub(super) fn begin_replacement(&mut self) -> Option<ReplacementRequest> {
        let pending = self.replacement_request.as_mut().filter(|pending| !pending.is_begun)?;
        pending.is_begun = true;
        Some(pending.replacement_request.clone())
    }

    /// Makes the requested replacement active, if the request still holds. Returns the session that is not needed: the
    /// earlier draft, else this one.
    pub(super) fn create_replacement(
        &mut self,
        replacement_request: &ReplacementRequest,
        draft: Session,
    ) -> Option<Session> {
        match &self.replacement_request {
            Some(pending) if pending.replacement_request == *replacement_request => self.set_new(draft),
            Some(_) | None => Some(draft),
        }
    }

    /// Notes that a message is on its way. A draft counts as sent now.
    pub(super) fn sending(&mut self, session: &SessionId) {
        if self.new_session.as_ref().is_some_and(|new| new.id() == session) {
            self.new_session = None;
        }
        if let Some(active) = self.active.as_mut().filter(|active| active.session.id() == session) {
            self.replacement_request = None;
            active.before_send = Some(active.session.state().chats().map(|chat| chat.resource.clone()).collect());
        }
    }

    /// Notes that it did not arrive. The session is the draft again, unless another one is.
    pub(super) fn not_sent(&mut self, session: &Session) {
        if let Some(active) = self.active.as_mut().filter(|active| active.session.id() == session.id()) {
            active.before_send = None;
        }
        if self.new_session.is_none() && !session.was_sent() && session.is_held() {
            self.new_session = Some(session.clone());
        }
    }

    /// Notes that it arrived, in a chat. If the session is active, the view follows it.
    pub(super) fn sent(&mut self, sent: &SessionId, updated: &Session, chat: &Uri) {
        let Some(active) = &mut self.active else { return };
        if active.session.id() != sent && active.session.id() != updated.id() {
            return;
        }
        active.session = updated.clone();
        if active.before_send.take().is_some() {
            active.chat = Some(chat.clone());
        }
    }

    /// Applies an event of the list.
    pub(super) fn follow(&mut self, event: &SessionsEvent) {
        match event {
            SessionsEvent::SessionReplacement(replaced) => self.replaced(replaced),
            SessionsEvent::Sessions(change) => {
                for session in &change.removed {
                    self.dropped(session.id());
                }
                for session in &change.changed {
                    self.changed(session);
                }
            }
            SessionsEvent::SessionTypes
            | SessionsEvent::Availability(_)
            | SessionsEvent::Sent { .. }
            | SessionsEvent::SessionDeleted(_)
            | SessionsEvent::ChatDeleted { .. } => {}
        }
    }

    fn replaced(&mut self, replaced: &SessionReplacement) {
        let is_old = |session: &Session| session.id() == replaced.from.id();
        if self.new_session.as_ref().is_some_and(is_old) {
            self.new_session = None;
        }
        if let Some(active) = self.active.as_mut().filter(|active| is_old(&active.session)) {
            active.session = replaced.to.clone();
        }
    }

    /// Notes that a session is gone.
    pub(super) fn dropped(&mut self, id: &SessionId) {
        if self.new_session.as_ref().is_some_and(|new| new.id() == id) {
            self.new_session = None;
        }
        if self.active().is_some_and(|active| active.id() == id) {
            self.open_new();
        }
    }

    /// The same session may now come from another source.
    fn changed(&mut self, session: &Session) {
        if let Some(active) = self.active.as_mut().filter(|active| active.session.id() == session.id()) {
            active.session = session.clone();
        }
    }

    /// The present view.
    pub(super) fn view(&mut self, entries: &[RegisteredProvider], persisted: Option<&ProviderId>) -> ActiveView {
        let provider = |id: &str| entries.iter().find(|entry| entry.provider.id().as_str() == id);
        // Its provider may be gone, or have dropped it in an event that was lost.
        let is_gone = |new: &Session| !new.is_held() || provider(new.provider_id().as_str()).is_none();
        if self.new_session.as_ref().is_some_and(is_gone) {
            self.unset_new();
        }
        self.leave_archived();
        let active_session = self.active.as_mut().map(|active| {
            let state = active.session.state();
            let active_chat = active.resolve_chat(&state);
            ActiveSession { session: active.session.clone(), active_chat }
        });
        let environment = |session: &Session| Some(provider(session.provider_id().as_str())?.provider.environment());
        let active = active_session.as_ref().map(ActiveSession::session);
        let context = ContextKeys::of(active, active.and_then(environment));
        let active_provider_id = persisted
            .filter(|id| provider(id.as_str()).is_some())
            .or_else(|| entries.first().map(|entry| entry.provider.id()))
            .cloned();
        ActiveView { active_session, new_session: self.new_session.clone(), active_provider_id, context }
    }

    /// Replaces an active session that is archived by the form for a new one, and requests a new session like it. A
    /// session that was opened from the archive stays.
    fn leave_archived(&mut self) {
        let Some(active) = &mut self.active else { return };
        let is_archived = active.session.is_archived();
        let put_away = is_archived && !active.was_archived;
        active.was_archived = is_archived;
        if !put_away {
            return;
        }
        let state = active.session.state();
        let provider = active.session.provider_id().clone();
        self.open_new();
        self.replacement_request = state.workspace.as_ref().map(|workspace| {
            let (folder, session_type) = (workspace.uri.clone(), state.session_type.clone());
            PendingReplacement {
                replacement_request: ReplacementRequest { folder, provider, session_type },
                is_begun: false,
            }
        });
    }
}

impl ActiveSelection {
    /// The chat of a message that is on its way, else the chosen one, else the first.
    fn resolve_chat(&mut self, state: &SessionState) -> Uri {
        if let Some(before) = &self.before_send
            && let Some(new) = state.visible_chats().rfind(|chat| !before.contains(&chat.resource))
        {
            self.chat = Some(new.resource.clone());
        }
        let first = || state.visible_chats().next().unwrap_or(&state.main_chat).resource.clone();
        let chosen = self.chat.take().unwrap_or_else(first);
        let shown = shown_chat(state, &chosen);
        self.chat = Some(shown.clone());
        shown
    }
}

/// The chosen chat; if that is gone or hidden, the last visible one.
fn shown_chat(state: &SessionState, chosen: &Uri) -> Uri {
    match state.chat(chosen) {
        Some(chat) if chat.interactivity != Interactivity::Hidden => chosen.clone(),
        _ => state.visible_chats().next_back().unwrap_or(&state.main_chat).resource.clone(),
    }
}
