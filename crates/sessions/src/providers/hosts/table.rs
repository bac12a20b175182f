//! The table of a host's sessions: rows of its list, drafts, and drafts that are being sent.
//!
//! Everything is behind one lock and announced while it is held, so that changes are announced in order. No method of
//! the client is called under it.

mod drafts;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_client::{Ahp, Client, SessionList};
use grove_core::Timestamp;
use grove_wire::ahp::{AgentInfo, SessionSummary};
use indexmap::IndexMap;

use super::cache::{CachedSessionList, SessionListCache};
use super::details::SessionDetails;
use super::drafts::now;
use super::identity::HostIdentity;
use super::state::{FolderFacts, SessionFacts, at, bits, folder, is_history, is_running, state, tells_repository};
use crate::ids::{SessionId, SessionTypeId};
use crate::provider::{Announcer, Availability, ProviderError, SessionType, SessionsChange};
use crate::session::{Session, SessionIdentity, SessionSource, SessionState, SessionStatus};
use drafts::SendingDraft;
pub(super) use drafts::{DraftSession, MainChat};

/// The most sessions of a host that are shown. Further ones are left out.
pub const MAX_ROWS: usize = 50_000;
/// The most folders whose repository is known.
const MAX_FOLDERS: usize = 1_000;

/// The state that the provider, its driver and senders share.
#[derive(Debug)]
pub(super) struct HostState {
    pub(super) host: HostIdentity,
    pub(super) announcer: Announcer,
    pub(super) list_cache: Arc<dyn SessionListCache>,
    table: Mutex<HostTable>,
    /// Wakes the driver when other sessions are to be subscribed to.
    pub(super) opened: tokio::sync::watch::Sender<HashMap<String, usize>>,
    /// Wakes the driver when somebody requests another attempt.
    pub(super) retry_requested: tokio::sync::Notify,
    /// Set once the host has sent a complete list.
    pub(super) listed: tokio::sync::watch::Sender<bool>,
}

#[derive(Debug)]
struct HostTable {
    availability: Availability,
    client: Option<Client<Ahp>>,
    agents: Vec<AgentInfo>,
    /// By the host's URI.
    rows: IndexMap<String, HostRow>,
    drafts: HashMap<SessionId, DraftSession>,
    /// Drafts whose first message is on its way. They are listed.
    sending: IndexMap<SessionId, SendingDraft>,
    folders: HashMap<String, FolderFacts>,
    /// Folders whose repository has to be requested, each with a session that works there.
    unasked: IndexMap<String, String>,
    /// The time when the rows were last up to date.
    seen_at: Option<Timestamp>,
    /// Set while they are up to date: the host is connected, and has listed them.
    is_current: bool,
    /// The number of passes over the list.
    round: u64,
}

#[derive(Debug)]
struct HostRow {
    source: SessionSource,
    /// `None` for a cached row.
    summary: Option<SessionSummary>,
    details: SessionDetails,
    chosen_model: Option<String>,
    /// A draft is becoming this session: it is not shown beside it.
    is_claimed: bool,
    /// It was sent from here, and no list of this connection has had it yet. Some hosts list late, so its absence means
    /// nothing.
    is_awaited: bool,
    /// The last pass in which the list had it.
    round: u64,
}

/// A row for an action.
#[derive(Clone, Debug)]
pub(super) struct RowView {
    pub(super) session: Session,
    pub(super) summary: Option<SessionSummary>,
    pub(super) chosen_model: Option<String>,
    pub(super) model_is_setting: bool,
}

impl HostState {
    /// The state with the host's cached list.
    pub(super) fn new(host: HostIdentity, list_cache: Arc<dyn SessionListCache>) -> Self {
        let table = HostTable {
            availability: Availability::Connecting,
            client: None,
            agents: Vec::new(),
            rows: IndexMap::new(),
            drafts: HashMap::new(),
            sending: IndexMap::new(),
            folders: HashMap::new(),
            unasked: IndexMap::new(),
            seen_at: None,
            is_current: false,
            round: 0,
        };
        let shared = Self {
            host,
            announcer: Announcer::default(),
            list_cache,
            table: Mutex::new(table),
            opened: tokio::sync::watch::Sender::default(),
            retry_requested: tokio::sync::Notify::new(),
            listed: tokio::sync::watch::Sender::default(),
        };
        if let Some(list) = shared.list_cache.newer(None) {
            shared.take_cached_list(list);
        }
        shared
    }

    fn table(&self) -> MutexGuard<'_, HostTable> {
        // Nothing under the lock leaves it half changed.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn availability(&self) -> Availability {
        self.table().availability.clone()
    }

    /// The connection, if there is one.
    pub(super) fn client(&self) -> Result<Client<Ahp>, ProviderError> {
        let table = self.table();
        match (&table.availability, &table.client) {
            (Availability::Ready, Some(client)) => Ok(client.clone()),
            (availability, _) => Err(self.away_error(availability)),
        }
    }

    /// The error that the host cannot be reached, with the reason.
    pub(super) fn not_reached(&self) -> ProviderError {
        self.away_error(&self.availability())
    }

    fn away_error(&self, availability: &Availability) -> ProviderError {
        let reason = match availability {
            Availability::Ready => "the connection was just lost: try again".to_owned(),
            Availability::Connecting => "it is being connected: try again in a moment".to_owned(),
            Availability::Away { reason } => reason.to_string(),
            Availability::Incompatible { message } => message.to_string(),
        };
        ProviderError::Away { provider: self.host.label.to_string(), reason }
    }

    pub(super) fn agents(&self) -> Vec<AgentInfo> {
        self.table().agents.clone()
    }

    pub(super) fn session_types(&self) -> Vec<SessionType> {
        let table = self.table();
        let shown = |agent: &AgentInfo| SessionType {
            id: SessionTypeId::from(agent.provider.as_str()),
            label: self.host.agent_label(&agent.display_name),
            icon: super::state::agent_icon(),
        };
        table.agents.iter().map(shown).collect()
    }

    pub(super) fn sessions(&self) -> Vec<Session> {
        let table = self.table();
        let rows = table.rows.values().filter(|row| !row.is_claimed).map(|row| &row.source);
        let sending = table.sending.values().map(|sending| &sending.draft.source);
        sending.chain(rows).map(SessionSource::session).collect()
    }

    /// A listed session, unless it is being sent.
    pub(super) fn row(&self, host_uri: &str) -> Option<RowView> {
        let table = self.table();
        let row = table.rows.get(host_uri).filter(|row| !row.is_claimed)?;
        Some(RowView {
            session: row.source.session(),
            summary: row.summary.clone(),
            chosen_model: row.chosen_model.clone(),
            model_is_setting: row.details.model_is_setting,
        })
    }

    /// Notes that the connection is established.
    pub(super) fn connected(&self, client: &Client<Ahp>, agents: &[AgentInfo]) {
        self.table().client = Some(client.clone());
        // A listener of this event finds the host's agents.
        self.set_agents(agents);
        self.set_availability(&mut self.table(), Availability::Ready);
    }

    pub(super) fn connecting(&self) {
        let mut table = self.table();
        // The reason of the failure is more useful than the fact of a retry.
        if table.availability == Availability::Ready {
            self.set_availability(&mut table, Availability::Connecting);
        }
    }

    /// Notes that the host is unreachable: its sessions stay, everything that needs it is dropped.
    pub(super) fn away(&self, why: Availability) {
        self.store_cached_list();
        let mut table = self.table();
        table.is_current = false;
        table.client = None;
        // The first list of the next connection decides.
        table.rows.values_mut().for_each(|row| row.is_awaited = false);
        let sending: Vec<SessionId> = table.sending.keys().cloned().collect();
        for id in &sending {
            self.take_back(&mut table, id);
        }
        let drafts: Vec<Session> = table.drafts.drain().map(|(_, draft)| draft.source.session()).collect();
        self.announcer.sessions(SessionsChange::removed(drafts));
        if !std::mem::take(&mut table.agents).is_empty() {
            self.announcer.session_types();
        }
        self.set_availability(&mut table, why);
    }

    fn set_availability(&self, table: &mut HostTable, availability: Availability) {
        if table.availability != availability {
            table.availability = availability;
            self.announcer.availability();
        }
    }

    /// Sets the host's agents.
    pub(super) fn set_agents(&self, agents: &[AgentInfo]) {
        let mut table = self.table();
        if table.agents == agents || table.client.is_none() {
            return;
        }
        table.agents = agents.to_vec();
        self.announcer.session_types();
        let all: Vec<String> = table.rows.keys().cloned().collect();
        self.show(&mut table, &all);
    }

    /// Applies the host's list. Only a complete list shows removals.
    pub(super) fn take_list(&self, list: &SessionList<Ahp>, is_whole: bool) {
        let mut table = self.table();
        table.round += 1;
        let round = table.round;
        let mut change = SessionsChange::default();
        for summary in list.iter().filter(|summary| !is_history(summary)) {
            if let Some(row) = table.rows.get_mut(&summary.resource) {
                (row.round, row.is_awaited) = (round, false);
                if row.summary.as_ref() == Some(summary) {
                    continue;
                }
            }
            self.upsert(&mut table, summary, &mut change);
        }
        if is_whole {
            let is_missing = |row: &HostRow| row.round != round && !row.is_awaited;
            let gone = table.rows.extract_if(.., |_, row| is_missing(row) && !row.is_claimed);
            change.removed = gone.map(|(_, row)| row.source.session()).collect();
            // A session that the host removed while it was being sent is not shown if sending fails.
            table.rows.values_mut().filter(|row| is_missing(row)).for_each(|row| row.summary = None);
        }
        self.announcer.sessions(change);
    }

    /// Adds a new row, or updates a known one.
    fn upsert(&self, table: &mut HostTable, summary: &SessionSummary, change: &mut SessionsChange) {
        let host_uri = &summary.resource;
        table.note_folder(summary);
        if let Some(row) = table.rows.get_mut(host_uri) {
            row.summary = Some(summary.clone());
            if self.refresh(table, host_uri) && !table.rows[host_uri].is_claimed {
                change.changed.push(table.rows[host_uri].source.session());
            }
            return;
        }
        if table.rows.len() >= MAX_ROWS {
            return;
        }
        let state = self.state_of(table, summary, &SessionDetails::default(), None, None);
        let Some(source) = new_source(&self.host, host_uri, at(&summary.created_at), state) else { return };
        change.added.push(source.session());
        let round = table.round;
        table.rows.insert(host_uri.clone(), HostRow { round, ..HostRow::new(source, Some(summary.clone())) });
    }

    fn state_of(
        &self,
        table: &HostTable,
        row: &SessionSummary,
        details: &SessionDetails,
        chosen_model: Option<&str>,
        before: Option<&SessionState>,
    ) -> SessionState {
        let agent = table.agents.iter().find(|agent| agent.provider == row.provider);
        let folder = folder(row).and_then(|folder| table.folders.get(&folder));
        state(&SessionFacts { host: &self.host, row, agent, details, folder, chosen_model, before })
    }

    /// Updates the state of a row from its facts. `true` if it changed.
    fn refresh(&self, table: &HostTable, host_uri: &str) -> bool {
        let Some(row) = table.rows.get(host_uri) else { return false };
        let Some(summary) = &row.summary else { return false };
        let before = row.source.session().state();
        let now = self.state_of(table, summary, &row.details, row.chosen_model.as_deref(), Some(&before));
        row.source.update(|state| *state = now)
    }

    /// Updates some rows, and announces those that changed.
    fn show(&self, table: &mut HostTable, which: &[String]) {
        let differ = which.iter().filter(|host_uri| self.refresh(table, host_uri));
        let rows = differ.filter_map(|host_uri| table.rows.get(host_uri)).filter(|row| !row.is_claimed);
        let changed: Vec<Session> = rows.map(|row| row.source.session()).collect();
        self.announcer.sessions(SessionsChange::changed(changed));
    }

    /// Changes the details of a session.
    pub(super) fn set_details(&self, host_uri: &str, change: impl FnOnce(&mut SessionDetails)) {
        let runs_otherwise = {
            let mut table = self.table();
            let Some(row) = table.rows.get_mut(host_uri) else { return };
            change(&mut row.details);
            let before = is_shown_running(row);
            self.show(&mut table, &[host_uri.to_owned()]);
            table.rows.get(host_uri).is_some_and(|row| is_shown_running(row) != before)
        };
        if runs_otherwise {
            self.wake();
        }
    }

    /// Makes the driver check which sessions to subscribe to. Must not be called under the table's lock, which the
    /// driver takes.
    fn wake(&self) {
        self.opened.send_modify(|_| ());
    }

    /// Notes that only these sessions are subscribed to.
    pub(super) fn settle_others(&self, listened: &[String]) {
        let mut table = self.table();
        let live = table.rows.iter().filter(|(host_uri, row)| row.details.is_live() && !listened.contains(host_uri));
        let rows: Vec<String> = live.map(|(key, _)| key.clone()).collect();
        for host_uri in &rows {
            if let Some(row) = table.rows.get_mut(host_uri) {
                row.details.settle();
            }
        }
        self.show(&mut table, &rows);
    }

    /// Chooses the model for the next message.
    pub(super) fn choose_model(&self, host_uri: &str, model: &str) {
        let mut table = self.table();
        if let Some(row) = table.rows.get_mut(host_uri) {
            row.chosen_model = Some(model.to_owned());
            self.show(&mut table, &[host_uri.to_owned()]);
        }
    }

    /// Notes that the session is no longer on the host.
    pub(super) fn remove(&self, host_uri: &str) {
        let mut table = self.table();
        match table.rows.get_mut(host_uri) {
            // It was never announced. It disappears with the draft that was to become it.
            Some(row) if row.is_claimed => row.summary = None,
            Some(_) => {
                let gone = table.rows.shift_remove(host_uri).map(|row| row.source.session());
                self.announcer.sessions(SessionsChange::removed(gone));
            }
            None => {}
        }
    }

    /// A folder whose repository is unknown, and a session that works there. It is returned once.
    pub(super) fn next_unknown_folder(&self) -> Option<(String, String)> {
        let mut table = self.table();
        while let Some((folder, host_uri)) = table.unasked.pop() {
            if !table.folders.contains_key(&folder) && table.rows.contains_key(&host_uri) {
                return Some((folder, host_uri));
            }
        }
        None
    }

    /// The request failed.
    pub(super) fn still_unknown(&self, folder: String, host_uri: String) {
        self.table().unasked.insert(folder, host_uri);
    }

    /// Sets the repository of a folder, for all sessions in it.
    pub(super) fn learn_folder(&self, path: String, facts: FolderFacts) {
        let mut table = self.table();
        let in_it = |row: &HostRow| row.summary.as_ref().and_then(folder).as_deref() == Some(&*path);
        let rows: Vec<String> = table.rows.iter().filter(|(_, row)| in_it(row)).map(|(key, _)| key.clone()).collect();
        table.folders.insert(path, facts);
        self.show(&mut table, &rows);
    }

    /// The running sessions, by the list or by better knowledge, the one that changed last first, at most so many.
    pub(super) fn running(&self, most: usize) -> Vec<String> {
        let table = self.table();
        let mut running: Vec<(Timestamp, &String)> = table
            .rows
            .iter()
            .filter(|(_, row)| row.summary.as_ref().is_some_and(says_running) || is_shown_running(row))
            .map(|(host_uri, row)| (row.source.session().updated_at(), host_uri))
            .collect();
        running.sort_unstable_by(|a, b| b.cmp(a));
        running.into_iter().take(most).map(|(_, host_uri)| host_uri.clone()).collect()
    }

    /// The sessions that wait for a person, by the list, the one that changed last first, at most so many.
    pub(super) fn waiting(&self, most: usize) -> Vec<String> {
        let table = self.table();
        let says_waiting = |summary: &SessionSummary| bits(summary).status == SessionStatus::NeedsInput;
        let rows = table.rows.iter().filter(|(_, row)| row.summary.as_ref().is_some_and(says_waiting));
        let mut waiting: Vec<(Timestamp, &String)> =
            rows.map(|(host_uri, row)| (row.source.session().updated_at(), host_uri)).collect();
        waiting.sort_unstable_by(|a, b| b.cmp(a));
        waiting.into_iter().take(most).map(|(_, host_uri)| host_uri.clone()).collect()
    }

    /// Notes that the rows are up to date.
    pub(super) fn is_seen(&self) {
        let mut table = self.table();
        (table.is_current, table.seen_at) = (true, Some(now()));
    }

    /// The rows as the host listed them, if they are up to date.
    pub(super) fn summaries(&self) -> Option<Vec<SessionSummary>> {
        let table = self.table();
        table.is_current.then(|| table.rows.values().filter_map(|row| row.summary.clone()).collect())
    }

    /// The time when they last were up to date.
    pub(super) fn seen_at(&self) -> Option<Timestamp> {
        self.table().seen_at
    }

    /// The same, if they are not up to date now.
    pub(super) fn shown_since(&self) -> Option<Timestamp> {
        let table = self.table();
        table.seen_at.filter(|_| !table.is_current)
    }

    /// Caches the list for when the host is unreachable.
    pub(super) fn store_cached_list(&self) {
        let list = {
            let mut table = self.table();
            if !table.is_current {
                return;
            }
            let at = now();
            table.seen_at = Some(at);
            CachedSessionList::new(at, table.rows.values().filter_map(|row| row.summary.as_ref()))
        };
        self.list_cache.keep(list);
    }

    /// Shows the cached list of an unreachable host.
    pub(super) fn take_cached_list(&self, list: CachedSessionList) {
        let mut table = self.table();
        if table.is_current || table.seen_at >= Some(list.at) {
            return;
        }
        table.seen_at = Some(list.at);
        table.round += 1;
        let round = table.round;
        let mut change = SessionsChange::default();
        for summary in list.sessions.iter().filter(|summary| !is_history(summary)) {
            let host_uri = &summary.resource;
            let state = remembered(self.state_of(&table, summary, &SessionDetails::default(), None, None));
            if let Some(row) = table.rows.get_mut(host_uri) {
                (row.round, row.summary) = (round, None);
                if row.source.update(|shown| *shown = state) && !row.is_claimed {
                    change.changed.push(row.source.session());
                }
            } else if table.rows.len() < MAX_ROWS
                && let Some(source) = new_source(&self.host, host_uri, at(&summary.created_at), state)
            {
                change.added.push(source.session());
                table.rows.insert(host_uri.clone(), HostRow { round, ..HostRow::new(source, None) });
            }
        }
        if list.is_whole {
            let gone = table.rows.extract_if(.., |_, row| row.round != round && !row.is_claimed);
            change.removed = gone.map(|(_, row)| row.source.session()).collect();
        }
        self.announcer.sessions(change);
    }
}

impl HostTable {
    /// Requests the repository of a row's folder, unless it is known or the row names it.
    fn note_folder(&mut self, row: &SessionSummary) {
        let has_room = self.folders.len() + self.unasked.len() < MAX_FOLDERS;
        if has_room
            && !tells_repository(row)
            && let Some(folder) = folder(row)
            && !self.folders.contains_key(&folder)
        {
            self.unasked.insert(folder, row.resource.clone());
        }
    }
}

impl HostRow {
    fn new(source: SessionSource, summary: Option<SessionSummary>) -> Self {
        let details = SessionDetails::default();
        Self { source, summary, details, chosen_model: None, is_claimed: false, is_awaited: false, round: 0 }
    }
}

/// Returns whether the host has it and it is shown as running.
fn is_shown_running(row: &HostRow) -> bool {
    row.summary.is_some() && is_running(row.source.session().status())
}

fn says_running(summary: &SessionSummary) -> bool {
    is_running(bits(summary).status)
}

/// The state of a cached row: whether it still runs is unknown.
fn remembered(mut state: SessionState) -> SessionState {
    let settle = |chat: &mut Arc<crate::session::ChatState>| {
        let chat = Arc::make_mut(chat);
        (chat.description, chat.loading) = (None, false);
        if is_running(chat.status) {
            chat.status = SessionStatus::Completed;
        }
    };
    settle(&mut state.main_chat);
    state.more_chats.iter_mut().for_each(settle);
    state
}

/// `None` for a session without a name.
fn new_source(
    host: &HostIdentity,
    host_uri: &str,
    created_at: Timestamp,
    state: SessionState,
) -> Option<SessionSource> {
    let id = host.session(host_uri).ok()?;
    let identity = SessionIdentity { id, resource: host.here(host_uri), provider_id: host.id.clone(), created_at };
    Some(SessionSource::new(identity, state))
}
