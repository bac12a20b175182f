//! Drafts, and drafts whose first message is on its way to the host.

use std::sync::Arc;

use grove_wire::ahp::SessionSummary;

use super::super::details::ChatDetails;
use super::{HostRow, HostState, HostTable, new_source};
use crate::ids::SessionId;
use crate::provider::SessionsChange;
use crate::session::{Session, SessionSource, SessionState, SessionStatus};

/// A draft. The host does not know it.
#[derive(Debug)]
pub(in super::super) struct DraftSession {
    pub(in super::super) source: SessionSource,
    pub(in super::super) model: Option<String>,
}

/// A draft whose first message is on its way.
#[derive(Debug)]
pub(super) struct SendingDraft {
    pub(super) draft: DraftSession,
    /// Its state before, in case the sending fails.
    before: SessionState,
    /// The host's URI of the session that it becomes.
    host_uri: String,
}

/// The main chat of a sent session.
#[derive(Debug)]
pub(in super::super) struct MainChat {
    pub(in super::super) host_uri: String,
    pub(in super::super) details: ChatDetails,
}

impl HostState {
    /// Adds a draft. `false` if there are already `most`.
    pub(in super::super) fn add_draft(&self, draft: DraftSession, most: usize) -> bool {
        let mut table = self.table();
        let has_room = table.drafts.len() < most;
        if has_room {
            table.drafts.insert(draft.source.session().id().clone(), draft);
        }
        has_room
    }

    pub(in super::super) fn drop_draft(&self, id: &SessionId) {
        self.table().drafts.remove(id);
    }

    /// Changes a draft. `None` if it is not a draft.
    pub(in super::super) fn with_draft<T>(
        &self,
        id: &SessionId,
        act: impl FnOnce(&mut DraftSession) -> T,
    ) -> Option<T> {
        self.table().drafts.get_mut(id).map(act)
    }

    /// Begins sending a draft, which becomes the host's session `host_uri`. From now on the draft is listed, and the
    /// host's events about that session are held back. `None` if it is not a draft.
    pub(in super::super) fn begin_sending(
        &self,
        id: &SessionId,
        host_uri: &str,
        show: impl FnOnce(&SessionSource),
    ) -> Option<()> {
        let mut table = self.table();
        let draft = table.drafts.remove(id)?;
        let session = draft.source.session();
        let before = SessionState::clone(&session.state());
        show(&draft.source);
        // The session that it becomes inherits its state. Its turn has not begun there, so none has ended either.
        let mut state = SessionState::clone(&session.state());
        Arc::make_mut(&mut state.main_chat).status = SessionStatus::Untitled;
        if let Some(claimed) = new_source(&self.host, host_uri, session.created_at(), state) {
            table.rows.insert(host_uri.to_owned(), HostRow { is_claimed: true, ..HostRow::new(claimed, None) });
        }
        table.sending.insert(id.clone(), SendingDraft { draft, before, host_uri: host_uri.to_owned() });
        self.announcer.sessions(SessionsChange::added([session]));
        Some(())
    }

    /// Replaces a sent draft by the host's session. `None` if the host disconnected meanwhile. `main` is its chat's
    /// state with the turn begun: the list may be older, and is ignored until the chat is subscribed to.
    pub(in super::super) fn commit(&self, id: &SessionId, summary: SessionSummary, main: MainChat) -> Option<Session> {
        let mut table = self.table();
        let SendingDraft { draft, host_uri, .. } = table.sending.shift_remove(id)?;
        table.note_folder(&summary);
        let row = table.rows.get_mut(&host_uri)?;
        row.is_claimed = false;
        row.chosen_model = draft.model;
        row.is_awaited = row.summary.is_none();
        // The list's version is newer.
        row.summary.get_or_insert(summary);
        row.details.chats.insert(main.host_uri, main.details);
        self.refresh(&table, &host_uri);
        let to = table.rows.get(&host_uri)?.source.session();
        self.announcer.replaced(draft.source.session(), to.clone());
        drop(table);
        // It is subscribed to from now on.
        self.wake();
        Some(to)
    }

    /// Makes a session a draft again whose sending failed.
    pub(in super::super) fn roll_back(&self, id: &SessionId) {
        let mut table = self.table();
        if let Some(draft) = self.take_back(&mut table, id) {
            table.drafts.insert(id.clone(), draft);
        }
    }

    /// Removes a draft from the list. The host's session, if there is one, is shown as such.
    pub(super) fn take_back(&self, table: &mut HostTable, id: &SessionId) -> Option<DraftSession> {
        let SendingDraft { draft, before, host_uri } = table.sending.shift_remove(id)?;
        draft.source.update(|state| *state = before);
        let mut change = SessionsChange::removed([draft.source.session()]);
        match table.rows.get_mut(&host_uri) {
            Some(row) if row.summary.is_some() => {
                row.is_claimed = false;
                change.added.push(row.source.session());
            }
            Some(_) => {
                table.rows.shift_remove(&host_uri);
            }
            None => {}
        }
        self.announcer.sessions(change);
        Some(draft)
    }
}
