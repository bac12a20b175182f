//! Connecting to a host as a client, and finding sessions by name at all hosts.
//!
//! [`HostConnector::at_session`] determines the host of a session; everything after it talks to that host.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use grove_acp_agent::EditorClient;
use grove_client::{Ahp, Backoff, Client, ClientLimits, Dialect, FrameLog, Options, RequestError, V1};
use grove_session_hub::{HostList, ListState};
use grove_wire::ahp::{Implementation, SessionState, SessionSummary, error_code, status, time};
use grove_wire::x_grove::{self, handover::RemoteSession};
use serde::Deserialize;
use serde_json::json;

use crate::background::{find_host, find_or_start_host};
use crate::cli::{Common, ConnectArgs, ServeArgs};
use crate::commands::Failure;
use crate::endpoint::HostEndpoint;
use crate::history::{DATABASE, possible_roots};
use crate::hosts::{self, KnownHost};
use crate::import_export::stores::ToolStores;
use crate::settings::Settings;
use crate::show::table::{cut, short};

/// The attempts to restore a lost connection, for about twenty seconds; then the host counts as gone.
const RECONNECT: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(2),
    attempts: Some(14),
    steady: Duration::from_secs(10),
};

/// How long a summary may take: a model that reads a long conversation needs minutes.
///
/// After this the command fails, and says that the host may still have completed it.
const SUMMARY: Duration = Duration::from_secs(30 * 60);

/// The number of characters shown of a connection error.
const WHY: usize = 300;
/// The number of characters of an editor's name.
const EDITOR_NAME: usize = 80;
/// The number of sessions named for an ambiguous argument.
const SHOWN: usize = 10;

/// The name of the most recently used session, for all arguments that take a session.
pub(crate) const LAST: &str = "@last";

/// Connects a command to its host.
#[derive(Clone, Debug)]
pub(crate) struct HostConnector {
    settings: Arc<Settings>,
    starts: AutoStart,
    limits: ClientLimits,
    at: HostTarget,
    /// The user has named the host.
    is_narrowed: bool,
}

/// The host to connect to.
#[derive(Clone, Debug)]
enum HostTarget {
    /// The host of the data folder.
    Here,
    Known(Arc<KnownHost>),
}

/// Permission to start a host if none is running.
#[derive(Clone, Copy, Debug)]
enum AutoStart {
    Yes,
    No,
}

impl HostConnector {
    pub(crate) fn new(common: &Common, args: &ConnectArgs) -> Result<Self, Failure> {
        let settings = Arc::new(Settings::load(common, &ServeArgs::default())?);
        let starts = if args.no_start { AutoStart::No } else { AutoStart::Yes };
        let anywhere =
            Self { settings, starts, limits: ClientLimits::default(), at: HostTarget::Here, is_narrowed: false };
        match args.host.as_deref() {
            None => Ok(anywhere),
            Some(name) => anywhere.at_host(name),
        }
    }

    /// A connector for the host of this name.
    pub(crate) fn at_host(&self, name: &str) -> Result<Self, Failure> {
        let unknown = || Failure::NotFound(format!("no host is called {name:?}: `grove hosts` lists them"));
        let at = match name {
            hosts::LOCAL => HostTarget::Here,
            name => HostTarget::Known(Arc::new(hosts::named(self.data_dir(), name)?.ok_or_else(unknown)?)),
        };
        Ok(Self { at, is_narrowed: true, ..self.clone() })
    }

    /// The host's name here.
    pub(crate) fn host_name(&self) -> &str {
        match &self.at {
            HostTarget::Here => hosts::LOCAL,
            HostTarget::Known(host) => &host.name,
        }
    }

    /// The host's address, as other machines can use it.
    pub(crate) fn address(&self) -> String {
        match &self.at {
            HostTarget::Here => hosts::own_address(self.data_dir()),
            HostTarget::Known(host) => host.address.to_string(),
        }
    }

    /// Returns whether it is another host than that of the data folder.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.at, HostTarget::Known(_))
    }

    /// Returns whether the user has named the host.
    pub(crate) fn is_narrowed(&self) -> bool {
        self.is_narrowed
    }

    /// Returns whether there is a store of this name here.
    pub(crate) fn has_store(&self, name: &str) -> bool {
        self.settings.stores.value.contains_key(name)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.settings.data_dir.value
    }

    /// Finds the host of a session, and the session's name there.
    ///
    /// If no host is known to have it, the host of the data folder is returned, which reports the error.
    pub(crate) async fn at_session(&self, wanted: &str) -> Result<(Self, String), Failure> {
        self.at_session_excluding(wanted, None).await
    }

    /// The same, for a session that is not at the host `not_at`.
    pub(crate) async fn at_session_excluding(
        &self,
        wanted: &str,
        not_at: Option<&str>,
    ) -> Result<(Self, String), Failure> {
        if let Some((name, rest)) = wanted.split_once('/')
            && (name == hosts::LOCAL || hosts::named(self.data_dir(), name)?.is_some())
        {
            if self.is_narrowed && self.host_name() != name {
                let host = self.host_name();
                return Err(anyhow!("{wanted:?} is at the host {name}, but --host is {host}: leave out one").into());
            }
            return Ok((self.at_host(name)?, rest.to_owned()));
        }
        if self.is_narrowed || hosts::all_hosts(self.data_dir())?.is_empty() {
            return Ok((self.clone(), wanted.to_owned()));
        }
        let here = self.at_host(hosts::LOCAL)?;
        let mut rows = match here.rows().await {
            Ok(rows) => rows,
            // Other hosts may have it.
            Err(Failure::NoHost(_)) => Vec::new(),
            Err(failure) => return Err(failure),
        };
        rows.retain(|row| Some(row.host.as_str()) != not_at);
        if let Some(row) = rows.iter().find(|row| id_of(&row.uri) == wanted && !row.is_archived) {
            return Ok((here, id_of(&row.uri).to_owned()));
        }
        let lists = hosts::lists(self.data_dir()).await?;
        let mut away = Vec::new();
        for HostList { host, sessions, state } in lists.into_iter().filter(|list| Some(list.host.as_str()) != not_at) {
            let is_cached = matches!(state, ListState::Away { .. });
            if let ListState::Away { why, .. } = state {
                away.push((host.clone(), why));
            }
            rows.extend(
                sessions.iter().map(|session| SessionCandidate { is_cached, ..SessionCandidate::of(&host, session) }),
            );
        }
        let matching = match wanted {
            LAST => last(&rows).into_iter().collect(),
            wanted => without_outdated(matching(&rows, wanted)),
        };
        let candidates = self.without_moved(matching).await?;
        match candidates.as_slice() {
            [] => {
                for (host, why) in away {
                    anstream::eprintln!("{host} is unreachable and was not searched: {}", cut(&why, WHY));
                }
                Ok((here, wanted.to_owned()))
            }
            [row] => Ok((self.at_host(&row.host)?, id_of(&row.uri).to_owned())),
            // That host resolves the ambiguity.
            [first, rest @ ..] if rest.iter().all(|row| row.host == first.host) => {
                Ok((self.at_host(&first.host)?, wanted.to_owned()))
            }
            several => {
                let ids = short(&several.iter().map(|row| id_of(&row.uri)).collect::<Vec<_>>());
                let names = several.iter().zip(ids).map(|(row, id)| format!("{}/{id}", row.host));
                let names = names.take(SHOWN).collect::<Vec<_>>().join(", ");
                let reference: String = wanted.chars().take(80).collect();
                Err(Failure::NotFound(format!("{reference:?} matches sessions of several hosts: use one of {names}")))
            }
        }
    }

    /// Excludes sessions that were moved to another host, if others are left.
    async fn without_moved<'a>(&self, rows: Vec<&'a SessionCandidate>) -> Result<Vec<&'a SessionCandidate>, Failure> {
        if rows.len() < 2 {
            return Ok(rows);
        }
        let mut left = Vec::new();
        for row in &rows {
            let is_moved = match row.is_archived {
                // A session of an unreachable host may be the right one.
                true => self.at_host(&row.host)?.is_moved(&row.uri).await.unwrap_or(false),
                false => false,
            };
            if !is_moved {
                left.push(*row);
            }
        }
        Ok(if left.is_empty() { rows } else { left })
    }

    async fn is_moved(&self, uri: &str) -> Result<bool, Failure> {
        let client = self.ahp(None).await?;
        let moved = moved_to(&client, uri).await?;
        client.close().await;
        Ok(moved.is_some())
    }

    /// The names of all sessions that wait for a person, at the named host or at all hosts.
    pub(crate) async fn waiting_sessions(&self) -> Result<Vec<String>, Failure> {
        let mut rows = match self.rows().await {
            Ok(rows) => rows,
            Err(Failure::NoHost(_)) if !self.is_narrowed => Vec::new(),
            Err(failure) => return Err(failure),
        };
        if !self.is_narrowed {
            for HostList { host, sessions, state } in hosts::lists(self.data_dir()).await? {
                match state {
                    ListState::Away { why, .. } => {
                        anstream::eprintln!("{host} is unreachable and was not searched: {}", cut(&why, WHY));
                    }
                    ListState::Now => rows.extend(sessions.iter().map(|session| SessionCandidate::of(&host, session))),
                }
            }
        }
        let waiting = rows.iter().filter(|row| row.is_waiting);
        let name = |row: &SessionCandidate| match row.host.as_str() {
            hosts::LOCAL => id_of(&row.uri).to_owned(),
            host => format!("{host}/{}", id_of(&row.uri)),
        };
        Ok(waiting.map(name).collect())
    }

    /// The sessions of this host.
    async fn rows(&self) -> Result<Vec<SessionCandidate>, Failure> {
        let client = self.ahp(None).await?;
        client.sessions().refresh().await?;
        let rows =
            client.sessions().read(|list| list.iter().map(|row| SessionCandidate::of(self.host_name(), row)).collect());
        client.close().await;
        Ok(rows)
    }

    /// The same with a timeout for commands that wait for a model.
    pub(crate) fn with_summary_timeout(mut self) -> Self {
        self.limits.answer = SUMMARY;
        self
    }

    /// Other tools' sessions on this machine. They need no host.
    pub(crate) fn stores(&self) -> ToolStores {
        let catalog = self.settings.data_dir.value.join(DATABASE);
        let is_kept_up = self.settings.history.value.enabled;
        ToolStores::new(possible_roots(&self.settings), is_kept_up.then_some(catalog))
    }

    async fn host(&self) -> Result<HostEndpoint, Failure> {
        match self.starts {
            AutoStart::Yes => Ok(find_or_start_host(&self.settings).await?.endpoint),
            AutoStart::No => {
                let data_dir = &self.settings.data_dir.value;
                let none = || {
                    let data_dir = data_dir.display();
                    Failure::NoHost(format!(
                        "no host is running for {data_dir}: start one with `grove start`, or leave out --no-start"
                    ))
                };
                Ok(find_host(data_dir).await?.ok_or_else(none)?.endpoint)
            }
        }
    }

    async fn connect<D: Dialect + Clone>(&self, dialect: D, options: Options) -> Result<Client<D>, Failure> {
        let connect = async |endpoint: &HostEndpoint| {
            Ok::<_, anyhow::Error>(Client::connect(endpoint.for_client()?, dialect.clone(), options.clone()).await?)
        };
        if let HostTarget::Known(host) = &self.at {
            let connected = Client::connect(host.endpoint()?, dialect, options).await;
            return connected.map_err(|error| {
                Failure::NoHost(format!("{} is unreachable: {}", host.name, cut(&format!("{:#}", anyhow!(error)), WHY)))
            });
        }
        match connect(&self.host().await?).await {
            Ok(client) => Ok(client),
            // An idle host may exit at the moment it was found. The next one stays.
            Err(_) => Ok(connect(&self.host().await?).await.context("the host refused this client")?),
        }
    }

    /// Connects an AHP client. `log` receives every frame.
    pub(crate) async fn ahp(&self, log: Option<FrameLog>) -> Result<Client<Ahp>, Failure> {
        let info = Implementation {
            name: "grove".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            title: Some("Grove's command line".to_owned()),
        };
        let dialect = Ahp { info: Some(info), ..Ahp::default() };
        self.connect(dialect, self.options(log)).await
    }

    /// Connects a client for an editor, which reconnects for as long as the editor runs.
    pub(crate) async fn editor(&self, editor: EditorClient) -> Result<Client<Ahp>, Failure> {
        let (dialect, options) = for_editor(editor);
        self.connect(dialect, Options { limits: self.limits, ..options }).await
    }

    /// Makes sure that the host runs, if it may be started.
    pub(crate) async fn ensure_host(&self) -> Result<(), Failure> {
        match &self.at {
            HostTarget::Here => self.host().await.map(|_| ()),
            HostTarget::Known(_) => Ok(()),
        }
    }

    /// Connects a client of version 1.
    pub(crate) async fn v1(&self, log: Option<FrameLog>) -> Result<Client<V1>, Failure> {
        self.connect(V1::default(), self.options(log)).await
    }

    fn options(&self, log: Option<FrameLog>) -> Options {
        Options { reconnect: RECONNECT, limits: self.limits, log, ..Options::default() }
    }
}

/// The dialect and the options of a client for an editor, which reconnects for as long as the editor is there.
pub(crate) fn for_editor(editor: EditorClient) -> (Ahp, Options) {
    // The host asks such a client for the unsaved versions of files.
    let meta = editor.meta();
    let EditorClient { name, documents, .. } = editor;
    let info = Implementation {
        name: "grove-acp".to_owned(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        title: Some(name.map_or_else(|| "An editor".to_owned(), |name| cut(&name, EDITOR_NAME))),
    };
    let reconnect = Backoff { attempts: None, ..RECONNECT };
    let options = Options { reconnect, list_sessions: false, requests: documents, ..Options::default() };
    (Ahp { info: Some(info), meta, ..Ahp::default() }, options)
}

/// A session of a host.
#[derive(Debug)]
struct SessionCandidate {
    host: String,
    uri: String,
    is_archived: bool,
    is_waiting: bool,
    /// The time of the last use, in milliseconds since 1970.
    modified: u64,
    /// The host is unreachable, and this is cached.
    is_cached: bool,
}

impl SessionCandidate {
    fn of(host: &str, session: &SessionSummary) -> Self {
        let is_archived = session.status & status::IS_ARCHIVED != 0;
        let modified = time::parse(&session.modified_at).map_or(0, |at| at.0);
        let is_waiting = session.status & status::INPUT_NEEDED == status::INPUT_NEEDED;
        let uri = session.resource.clone();
        Self { host: host.to_owned(), uri, is_archived, is_waiting, modified, is_cached: false }
    }
}

/// The most recently used session of all hosts.
fn last(rows: &[SessionCandidate]) -> Option<&SessionCandidate> {
    // Of several with the same time it is the first, as in `grove ls`.
    rows.iter().rev().filter(|row| !row.is_archived).max_by_key(|row| row.modified)
}

/// The sessions that match a name. An exact id comes before the beginning of one.
fn matching<'a>(rows: &'a [SessionCandidate], wanted: &str) -> Vec<&'a SessionCandidate> {
    let (id, may_begin) = named(wanted);
    let whole: Vec<&SessionCandidate> = rows.iter().filter(|row| row.uri == wanted || id_of(&row.uri) == id).collect();
    match whole.is_empty() && may_begin && !id.is_empty() {
        true => rows.iter().filter(|row| id_of(&row.uri).starts_with(id)).collect(),
        false => whole,
    }
}

/// Excludes cached sessions of unreachable hosts if a reachable host has the session.
///
/// The session was moved there and back, and the cache is older than that.
fn without_outdated(rows: Vec<&SessionCandidate>) -> Vec<&SessionCandidate> {
    let lives = |id: &str| rows.iter().any(|row| !row.is_cached && !row.is_archived && id_of(&row.uri) == id);
    rows.iter().filter(|row| !(row.is_cached && lives(id_of(&row.uri)))).copied().collect()
}

/// The new location of a session that was moved to another host.
pub(crate) async fn moved_to(client: &Client<Ahp>, uri: &str) -> Result<Option<RemoteSession>, Failure> {
    let session = client.subscribe(uri).await?;
    Ok(session.read(|state| read_moved_to(state.session()?)))
}

/// The same from a session's state.
pub(crate) fn read_moved_to(session: &SessionState) -> Option<RemoteSession> {
    RemoteSession::deserialize(session.meta.as_ref()?.get("movedTo")?).ok()
}

/// The id in a session's URI.
pub(crate) fn id_of(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap_or(uri)
}

/// The URI of a session by its URI in any spelling, its id, or the beginning of its id.
pub(crate) async fn find_session<D: Dialect>(client: &Client<D>, wanted: &str) -> Result<String, Failure> {
    let sessions = client.sessions();
    sessions.refresh().await?;
    if wanted == LAST {
        let last = sessions.read(|list| {
            let used = list.iter().filter_map(|row| Some((D::last_used(row)?, D::row_uri(row))));
            // Of several with the same time it is the first, as in `grove ls`.
            used.min_by_key(|(used, _)| std::cmp::Reverse(*used)).map(|(_, uri)| uri.to_owned())
        });
        return last
            .ok_or_else(|| Failure::NotFound("there is no session yet: `grove run PROMPT` starts one".to_owned()));
    }
    let all: Vec<String> = sessions.read(|list| list.iter().map(|row| D::row_uri(row).to_owned()).collect());
    match choose(&all, wanted) {
        Ok(uri) => Ok(uri),
        // An ambiguous beginning of an existing id has its own error.
        Err(error) if all.iter().any(|uri| id_of(uri).starts_with(id_of(wanted))) => Err(Failure::NotFound(error)),
        Err(error) => Err(Failure::NotFound(why_missing(client, id_of(wanted)).await.unwrap_or(error))),
    }
}

/// The host's reason why it has no session of this id, if it knows more than that.
async fn why_missing<D: Dialect>(client: &Client<D>, id: &str) -> Option<String> {
    if !client.offers(x_grove::Method::Tree) {
        return None;
    }
    let channel = format!("ahp-session:/{id}");
    let params = json!({"channel": channel, "limit": 1});
    match client.request_raw::<serde_json::Value>(x_grove::Method::Tree.as_str(), &params).await {
        Err(RequestError::Refused { error, .. }) if error.code == error_code::SESSION_NOT_FOUND => {
            Some(error.message).filter(|message| *message != format!("there is no session {channel}"))
        }
        Ok(_) | Err(_) => None,
    }
}

/// The id in an argument, and whether it may be the beginning of one.
fn named(wanted: &str) -> (&str, bool) {
    match wanted.split_once(":/") {
        Some((_, id)) => (id, false),
        None => (wanted, true),
    }
}

/// Selects one of these session URIs by name.
pub(crate) fn choose(all: &[String], wanted: &str) -> Result<String, String> {
    if let Some(uri) = all.iter().find(|uri| *uri == wanted) {
        return Ok(uri.clone());
    }
    let (id, may_begin) = named(wanted);
    if let Some(uri) = all.iter().find(|uri| id_of(uri) == id) {
        return Ok(uri.clone());
    }
    let matching: Vec<&String> = match may_begin && !id.is_empty() {
        true => all.iter().filter(|uri| id_of(uri).starts_with(id)).collect(),
        false => Vec::new(),
    };
    match matching.as_slice() {
        [uri] => Ok((*uri).clone()),
        [] => Err(format!("there is no session {wanted:?}: `grove ls --all` lists them")),
        several => {
            let ids: Vec<&str> = several.iter().map(|uri| id_of(uri)).collect();
            let ids = short(&ids).join(", ");
            Err(format!("{wanted:?} is the beginning of several sessions ({ids}): use more characters"))
        }
    }
}

/// A new random id: a UUID of version 4, as other clients create.
pub(crate) fn new_id() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("cannot get random numbers: {error}"))?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_meant_by_uri_id_or_the_beginning_of_its_id() {
        let all: Vec<String> =
            ["scripted:/abc1", "scripted:/abc2", "other:/xyz", "other:/ab"].map(str::to_owned).into();
        let chosen = |wanted: &str| choose(&all, wanted);
        assert_eq!(chosen("scripted:/abc1"), Ok("scripted:/abc1".to_owned()));
        assert_eq!(chosen("ahp-session:/xyz"), Ok("other:/xyz".to_owned()));
        assert_eq!(chosen("x"), Ok("other:/xyz".to_owned()));
        assert_eq!(chosen("ab"), Ok("other:/ab".to_owned()), "a whole id comes first");
        assert!(chosen("abc").unwrap_err().contains("several sessions (abc1, abc2)"));
        for unknown in ["", "q", "scripted:/abc", "abc11"] {
            assert!(chosen(unknown).unwrap_err().contains("no session"), "{unknown}");
        }
    }

    #[test]
    fn what_an_unreachable_host_had_does_not_compete_with_a_session_that_is_there() {
        let row = |host: &str, uri: &str, is_archived: bool, is_cached: bool| SessionCandidate {
            host: host.to_owned(),
            uri: uri.to_owned(),
            is_archived,
            is_cached,
            is_waiting: false,
            modified: 0,
        };
        let left = |rows: &[SessionCandidate]| {
            let left = without_outdated(rows.iter().collect());
            left.iter().map(|row| row.host.clone()).collect::<Vec<_>>()
        };
        let there_and_back = [row("local", "a:/s", false, false), row("lab", "a:/s", false, true)];
        assert_eq!(left(&there_and_back), ["local"]);
        let there = [row("local", "a:/s", true, false), row("lab", "a:/s", false, true)];
        assert_eq!(left(&there), ["local", "lab"], "the new host is unreachable, and has the session");
        let others = [row("local", "a:/s1", false, false), row("lab", "a:/s2", false, true)];
        assert_eq!(left(&others), ["local", "lab"]);
    }

    #[test]
    fn over_several_hosts_a_whole_id_comes_before_the_beginning_of_one() {
        let row = |host: &str, uri: &str| SessionCandidate {
            host: host.to_owned(),
            uri: uri.to_owned(),
            is_archived: false,
            is_waiting: false,
            modified: 0,
            is_cached: false,
        };
        let rows = [row("local", "a:/ab1"), row("lab", "a:/ab2"), row("box", "b:/ab"), row("lab", "b:/x")];
        let found = |wanted: &str| {
            let matching = matching(&rows, wanted);
            matching.iter().map(|row| format!("{}/{}", row.host, id_of(&row.uri))).collect::<Vec<_>>()
        };
        assert_eq!(found("ab"), ["box/ab"]);
        assert_eq!(found("a"), ["local/ab1", "lab/ab2", "box/ab"]);
        assert_eq!(found("other:/ab2"), ["lab/ab2"]);
        assert_eq!(found("other:/a"), Vec::<String>::new());
        assert_eq!(found(""), Vec::<String>::new());
    }

    #[test]
    fn the_last_session_is_the_one_used_last_at_any_host_and_not_archived() {
        let row = |host: &str, modified: u64, is_archived: bool| SessionCandidate {
            host: host.to_owned(),
            uri: format!("a:/{modified}"),
            is_archived,
            is_waiting: false,
            modified,
            is_cached: false,
        };
        let rows = [row("local", 5, false), row("lab", 9, true), row("box", 7, false), row("lab", 7, false)];
        assert_eq!(last(&rows).map(|row| row.host.as_str()), Some("box"));
        assert!(last(&rows[1..2]).is_none());
    }

    #[test]
    fn ids_are_uuids() {
        let id = new_id().unwrap_or_default();
        assert_eq!(id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
        assert_ne!(id, new_id().unwrap_or_default());
    }
}
