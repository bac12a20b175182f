//! The sessions of a host as they are shown: rows of its list, new sessions, and those that are being sent.
//!
//! Everything lies behind one lock and is told while it is held, so that changes are told in the order in which they
//! happened. Nothing of the client is called under it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_client::{Ahp, Client, SessionList};
use grove_core::Timestamp;
use grove_wire::ahp::{AgentInfo, SessionSummary};
use indexmap::IndexMap;

use super::cache::{CachedSessionList, SessionListCache};
use super::details::{ChatDetails, SessionDetails};
use super::drafts::now;
use super::identity::HostIdentity;
use super::state::{FolderFacts, SessionFacts, at, bits, folder, is_history, is_running, state, tells_repository};
use crate::ids::{SessionId, SessionTypeId};
use crate::provider::{Announcer, Availability, ProviderError, SessionType, SessionsChange};
use crate::session::{Session, SessionIdentity, SessionSource, SessionState, SessionStatus};

/// How many sessions of a host are shown. Further ones are left out.
const MAX_ROWS: usize = 50_000;
/// Of how many folders it is known which repository they belong to. Of further ones it is not.
const MAX_FOLDERS: usize = 1_000;

/// What the provider, its driver and whoever sends share.
#[derive(Debug)]
pub(super) struct HostState {
    pub(super) host: HostIdentity,
    pub(super) announcer: Announcer,
    pub(super) list_cache: Arc<dyn SessionListCache>,
    table: Mutex<HostTable>,
    /// Wakes the driver when other sessions are to be listened to.
    pub(super) opened: tokio::sync::watch::Sender<HashMap<String, usize>>,
    /// Wakes the driver where it waits for somebody to ask for another attempt.
    pub(super) asked: tokio::sync::Notify,
    /// Whether a list of the host came whole.
    pub(super) listed: tokio::sync::watch::Sender<bool>,
}

#[derive(Debug)]
struct HostTable {
    availability: Availability,
    client: Option<Client<Ahp>>,
    agents: Vec<AgentInfo>,
    /// By the URI that the host has.
    rows: IndexMap<String, HostRow>,
    drafts: HashMap<SessionId, DraftSession>,
    /// New sessions whose first message is on its way. They are listed.
    sending: IndexMap<SessionId, SendingDraft>,
    folders: HashMap<String, FolderFacts>,
    /// Folders of which that is to be asked, each with a session that works there.
    unasked: IndexMap<String, String>,
    /// When the rows were last what the host has.
    seen_at: Option<Timestamp>,
    /// Whether they are it now: the host is connected, and has listed them.
    is_current: bool,
    /// How often the list was gone through.
    round: u64,
}

#[derive(Debug)]
struct HostRow {
    source: SessionSource,
    /// `None` where it is only remembered.
    summary: Option<SessionSummary>,
    details: SessionDetails,
    chosen_model: Option<String>,
    /// A new session is becoming this one: it is not shown beside it.
    is_claimed: bool,
    /// It was sent from here, and no list of this connection has had it yet. Some hosts list late, so none misses it either.
    is_awaited: bool,
    /// When the list last had it.
    round: u64,
}

/// A new session. The host knows nothing of it.
#[derive(Debug)]
pub(super) struct DraftSession {
    pub(super) source: SessionSource,
    pub(super) model: Option<String>,
}

/// A new session whose first message is on its way.
#[derive(Debug)]
struct SendingDraft {
    draft: DraftSession,
    /// What it was before, in case that it cannot be sent.
    before: SessionState,
    /// What the host calls the one that it becomes.
    host_uri: String,
}

/// The main chat of a session that was sent.
#[derive(Debug)]
pub(super) struct MainChat {
    pub(super) host_uri: String,
    pub(super) details: ChatDetails,
}

/// A row to which something is done.
#[derive(Clone, Debug)]
pub(super) struct RowView {
    pub(super) session: Session,
    pub(super) summary: Option<SessionSummary>,
    pub(super) chosen_model: Option<String>,
    pub(super) model_is_setting: bool,
}

impl HostState {
    /// With what was kept of the host's list.
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
            asked: tokio::sync::Notify::new(),
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

    /// The connection, where there is one.
    pub(super) fn client(&self) -> Result<Client<Ahp>, ProviderError> {
        let table = self.table();
        match (&table.availability, &table.client) {
            (Availability::Ready, Some(client)) => Ok(client.clone()),
            (availability, _) => Err(self.away_error(availability)),
        }
    }

    /// That the host cannot be reached, and why.
    pub(super) fn not_reached(&self) -> ProviderError {
        self.away_error(&self.availability())
    }

    fn away_error(&self, availability: &Availability) -> ProviderError {
        let reason = match availability {
            Availability::Ready => "the connection was lost a moment ago: try again".to_owned(),
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

    /// A listed session, where it is not one that is being sent.
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

    /// The connection is there.
    pub(super) fn connected(&self, client: &Client<Ahp>, agents: &[AgentInfo]) {
        self.table().client = Some(client.clone());
        // Who hears that the host is there finds its agents.
        self.set_agents(agents);
        self.set_availability(&mut self.table(), Availability::Ready);
    }

    pub(super) fn connecting(&self) {
        let mut table = self.table();
        // Why it is away is worth more than that it is tried.
        if table.availability == Availability::Ready {
            self.set_availability(&mut table, Availability::Connecting);
        }
    }

    /// The host cannot be reached: its sessions stay, what needs it goes.
    pub(super) fn away(&self, why: Availability) {
        self.store_cached_list();
        let mut table = self.table();
        table.is_current = false;
        table.client = None;
        // The first list of the next connection tells what there is.
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

    /// The host has these agents.
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

    /// Takes the host's list in. Only a list that is whole tells what is gone.
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
            // What the host took back while it was being sent is nothing to show where sending fails.
            table.rows.values_mut().filter(|row| is_missing(row)).for_each(|row| row.summary = None);
        }
        self.announcer.sessions(change);
    }

    /// What is new is added, what is known is brought up to date.
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

    /// Shows a row as it is known now. `true` where that differs from before.
    fn refresh(&self, table: &HostTable, host_uri: &str) -> bool {
        let Some(row) = table.rows.get(host_uri) else { return false };
        let Some(summary) = &row.summary else { return false };
        let before = row.source.session().state();
        let now = self.state_of(table, summary, &row.details, row.chosen_model.as_deref(), Some(&before));
        row.source.update(|state| *state = now)
    }

    /// Shows some rows as they are known now, and tells of those that differ.
    fn show(&self, table: &mut HostTable, which: &[String]) {
        let differ = which.iter().filter(|host_uri| self.refresh(table, host_uri));
        let rows = differ.filter_map(|host_uri| table.rows.get(host_uri)).filter(|row| !row.is_claimed);
        let changed: Vec<Session> = rows.map(|row| row.source.session()).collect();
        self.announcer.sessions(SessionsChange::changed(changed));
    }

    /// What the channels of a session told.
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

    /// Has the driver look which sessions are to be listened to. Not to be called under the table's lock, which it takes
    /// while it looks.
    fn wake(&self) {
        self.opened.send_modify(|_| ());
    }

    /// Nobody listens to any session any more but to these.
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

    /// The model for what is sent next.
    pub(super) fn choose_model(&self, host_uri: &str, model: &str) {
        let mut table = self.table();
        if let Some(row) = table.rows.get_mut(host_uri) {
            row.chosen_model = Some(model.to_owned());
            self.show(&mut table, &[host_uri.to_owned()]);
        }
    }

    /// The session is not on the host any more.
    pub(super) fn remove(&self, host_uri: &str) {
        let mut table = self.table();
        match table.rows.get_mut(host_uri) {
            // Nobody was told of it. It goes with the one that was to become it.
            Some(row) if row.is_claimed => row.summary = None,
            Some(_) => {
                let gone = table.rows.shift_remove(host_uri).map(|row| row.source.session());
                self.announcer.sessions(SessionsChange::removed(gone));
            }
            None => {}
        }
    }

    /// A folder of which it is not known to which repository it belongs, and a session that works there. It is given once.
    pub(super) fn next_unknown_folder(&self) -> Option<(String, String)> {
        let mut table = self.table();
        while let Some((folder, host_uri)) = table.unasked.pop() {
            if !table.folders.contains_key(&folder) && table.rows.contains_key(&host_uri) {
                return Some((folder, host_uri));
            }
        }
        None
    }

    /// It could not be asked.
    pub(super) fn still_unknown(&self, folder: String, host_uri: String) {
        self.table().unasked.insert(folder, host_uri);
    }

    /// Which repository a folder belongs to. All sessions in it do.
    pub(super) fn learn_folder(&self, path: String, facts: FolderFacts) {
        let mut table = self.table();
        let in_it = |row: &HostRow| row.summary.as_ref().and_then(folder).as_deref() == Some(&*path);
        let rows: Vec<String> = table.rows.iter().filter(|(_, row)| in_it(row)).map(|(key, _)| key.clone()).collect();
        table.folders.insert(path, facts);
        self.show(&mut table, &rows);
    }

    /// The sessions that run, by the list or by what is known better, the one that changed last first, and how many are
    /// wanted at most.
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

    /// The rows are what the host has.
    pub(super) fn is_seen(&self) {
        let mut table = self.table();
        (table.is_current, table.seen_at) = (true, Some(now()));
    }

    /// The rows as the host listed them, where they are what it has.
    pub(super) fn summaries(&self) -> Option<Vec<SessionSummary>> {
        let table = self.table();
        table.is_current.then(|| table.rows.values().filter_map(|row| row.summary.clone()).collect())
    }

    /// When they last were.
    pub(super) fn seen_at(&self) -> Option<Timestamp> {
        self.table().seen_at
    }

    /// The same, where they are not now.
    pub(super) fn shown_since(&self) -> Option<Timestamp> {
        let table = self.table();
        table.seen_at.filter(|_| !table.is_current)
    }

    /// Keeps what the host has for when it is away.
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

    /// Shows what was seen of a host that cannot be asked.
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

/// New sessions.
impl HostState {
    /// Keeps a new session. `false` where there are as many as may be.
    pub(super) fn add_draft(&self, draft: DraftSession, most: usize) -> bool {
        let mut table = self.table();
        let has_room = table.drafts.len() < most;
        if has_room {
            table.drafts.insert(draft.source.session().id().clone(), draft);
        }
        has_room
    }

    pub(super) fn drop_draft(&self, id: &SessionId) {
        self.table().drafts.remove(id);
    }

    /// Does something to a new session. `None` where it is none.
    pub(super) fn with_draft<T>(&self, id: &SessionId, act: impl FnOnce(&mut DraftSession) -> T) -> Option<T> {
        self.table().drafts.get_mut(id).map(act)
    }

    /// A new session is being sent, and is to be what the host calls `host_uri`. From now on it is listed, and what the host
    /// tells of that one is not. `None` where it is no new session.
    pub(super) fn begin_sending(
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
        // The one that it becomes knows what this one was. Its turn has not begun there, so none has ended either.
        let mut state = SessionState::clone(&session.state());
        Arc::make_mut(&mut state.main_chat).status = SessionStatus::Untitled;
        if let Some(claimed) = new_source(&self.host, host_uri, session.created_at(), state) {
            table.rows.insert(host_uri.to_owned(), HostRow { is_claimed: true, ..HostRow::new(claimed, None) });
        }
        table.sending.insert(id.clone(), SendingDraft { draft, before, host_uri: host_uri.to_owned() });
        self.announcer.sessions(SessionsChange::added([session]));
        Some(())
    }

    /// A new session was sent: the host's takes its place. `None` where the host went away meanwhile. `main` is what its chat
    /// said with the turn begun: the list may be from before that, and is not believed until the chat is listened to.
    pub(super) fn commit(&self, id: &SessionId, summary: SessionSummary, main: MainChat) -> Option<Session> {
        let mut table = self.table();
        let SendingDraft { draft, host_uri, .. } = table.sending.shift_remove(id)?;
        table.note_folder(&summary);
        let row = table.rows.get_mut(&host_uri)?;
        row.is_claimed = false;
        row.chosen_model = draft.model;
        row.is_awaited = row.summary.is_none();
        // What the list said of it is newer.
        row.summary.get_or_insert(summary);
        row.details.chats.insert(main.host_uri, main.details);
        self.refresh(&table, &host_uri);
        let to = table.rows.get(&host_uri)?.source.session();
        self.announcer.replaced(draft.source.session(), to.clone());
        drop(table);
        // It is listened to from now on.
        self.wake();
        Some(to)
    }

    /// A new session could not be sent, and is a new session again.
    pub(super) fn roll_back(&self, id: &SessionId) {
        let mut table = self.table();
        if let Some(draft) = self.take_back(&mut table, id) {
            table.drafts.insert(id.clone(), draft);
        }
    }

    /// Takes a new session out of the list. What the host has of it, if anything, is shown as what it is.
    fn take_back(&self, table: &mut HostTable, id: &SessionId) -> Option<DraftSession> {
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

impl HostTable {
    /// The folder of a row is to be asked for its repository, unless that is known or the row says it.
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

/// Whether the host has it and it is shown as running.
fn is_shown_running(row: &HostRow) -> bool {
    row.summary.is_some() && is_running(row.source.session().status())
}

fn says_running(summary: &SessionSummary) -> bool {
    is_running(bits(summary).status)
}

/// What a row says that was remembered: nobody knows whether it still runs.
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

/// `None` for a session that has no name.
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
