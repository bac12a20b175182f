//! Finding the session for an argument: at a host, in another tool's store, or in a file.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use grove_core::Timestamp;
use grove_history::SessionLocation;
use grove_transcript::{FileLocation, TranscriptSession, TranscriptSource};
use grove_tree::Log;
use grove_wire::ahp::time;
use grove_wire::x_grove::workspace::{self, ManifestResult};
use grove_wire::x_grove::{EntriesParams, EntriesResult, Method};

use super::{Failure, inspect};
use crate::chat_client::OtherChat;
use crate::chat_client::tree::{AnyClient, TreeClient};
use crate::cli::Protocol;
use crate::connect::{HostConnector, id_of};
use crate::import_export::prepared_import::PathSession;
use crate::import_export::stores::{CatalogLookup, NameError, session_at_path, with_source};
use crate::import_export::transcript::{GROVE, LOG, Transcript, header};
use crate::show::style::{dim, sanitize};
use crate::show::table::cut;

/// The number of entries per request.
const PAGE: usize = 1_000;

/// The maximum size of a session's log, which is held in memory.
const MAX_LOG_BYTES: usize = 1 << 30;

/// A session that was found.
#[derive(Debug)]
pub(crate) enum ResolvedSession {
    OfHost(TreeClient),
    /// A session of another tool.
    Elsewhere(Box<SessionLocation>),
    /// A log file in Grove's format.
    Log(PathBuf),
}

impl ResolvedSession {
    /// The session's name in its place: a URI of the host, or a path.
    pub(crate) fn shown(&self) -> String {
        match self {
            ResolvedSession::OfHost(session) => session.session().to_owned(),
            ResolvedSession::Elsewhere(location) => location.path.display().to_string(),
            ResolvedSession::Log(path) => path.display().to_string(),
        }
    }
}

/// Finds a session by a path, `source:id`, an id or the beginning of one.
///
/// For an id, sessions of the host come first.
pub(crate) async fn find(
    connector: &HostConnector,
    wanted: &str,
    chat: Option<&str>,
    protocol: Protocol,
) -> Result<ResolvedSession, Failure> {
    let mut resolved = find_any(connector, wanted, protocol).await?;
    match (&mut resolved, chat) {
        (_, None) => {}
        (ResolvedSession::OfHost(tree), chat) => tree.choose_chat(chat).await?,
        (ResolvedSession::Elsewhere(_) | ResolvedSession::Log(_), Some(_)) => {
            return Err(anyhow!("only sessions of a host have further chats: leave out --chat").into());
        }
    }
    Ok(resolved)
}

/// Prints the names of a session's other chats, if it has any.
pub(crate) async fn name_other_chats(resolved: &ResolvedSession) -> Result<(), Failure> {
    if let ResolvedSession::OfHost(tree) = resolved
        && tree.chat().is_none()
    {
        tell_other_chats(&tree.other_chats().await?);
    }
    Ok(())
}

/// The same for chats that are already known.
pub(crate) fn tell_other_chats(others: &[OtherChat]) {
    if others.is_empty() {
        return;
    }
    let name = |other: &OtherChat| match other.title.trim() {
        "" => sanitize(&other.name),
        title => format!("{} ({})", sanitize(&other.name), cut(title, 40)),
    };
    let names: Vec<String> = others.iter().map(name).collect();
    let chats = if others.len() == 1 { "chat" } else { "chats" };
    let message = format!("{} more {chats} in this session: {} (--chat NAME)", others.len(), names.join(", "));
    anstream::eprintln!("{}", dim(message));
}

async fn find_any(connector: &HostConnector, wanted: &str, protocol: Protocol) -> Result<ResolvedSession, Failure> {
    match session_at_path(wanted) {
        Some(Ok(PathSession::Foreign(location))) => return Ok(ResolvedSession::Elsewhere(location)),
        Some(Ok(PathSession::Log(path))) => return Ok(ResolvedSession::Log(path)),
        Some(Err(error)) => return Err(error.into()),
        None => {}
    }
    if let Some((source, id)) = with_source(wanted) {
        // An agent of the host may have the name of a source: the URI of one of its sessions comes first.
        if wanted.contains(":/")
            && let Some(own) = of_host(connector, wanted, protocol).await?
        {
            return Ok(own);
        }
        let none = || Failure::NotFound(format!("{source} has no session {id:?} on this machine"));
        return Ok(ResolvedSession::Elsewhere(Box::new(elsewhere(connector, Some(source), id)?.ok_or_else(none)?)));
    }
    let (at, named) = match connector.at_session(wanted).await {
        Ok((at, named)) => (at, named),
        // Other tools' sessions can be read without a host.
        Err(Failure::NoHost(_)) => (connector.clone(), wanted.to_owned()),
        Err(failure) => return Err(failure),
    };
    if at.is_remote() {
        return Ok(ResolvedSession::OfHost(TreeClient::of_session(&at, &named, protocol).await?));
    }
    let failure = match TreeClient::of_session(&at, &named, protocol).await {
        Ok(session) => return Ok(ResolvedSession::OfHost(session)),
        Err(Failure::NotFound(why)) if is_id_prefix(&at, &named, protocol).await? => {
            return Err(Failure::NotFound(why));
        }
        Err(failure @ (Failure::NotFound(_) | Failure::NoHost(_))) => failure,
        Err(failure) => return Err(failure),
    };
    Ok(ResolvedSession::Elsewhere(Box::new(elsewhere(connector, None, wanted)?.ok_or(failure)?)))
}

/// The session of a host that has exactly this URI.
async fn of_host(connector: &HostConnector, uri: &str, protocol: Protocol) -> Result<Option<ResolvedSession>, Failure> {
    match TreeClient::of_session(connector, uri, protocol).await {
        Ok(session) if session.session() == uri => Ok(Some(ResolvedSession::OfHost(session))),
        Ok(_) | Err(Failure::NotFound(_) | Failure::NoHost(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Finds a session of another tool by `source:id`, an id or the beginning of one.
pub(crate) fn find_in_tool_stores(connector: &HostConnector, wanted: &str) -> Result<Option<SessionLocation>, Failure> {
    match with_source(wanted) {
        Some((source, id)) => elsewhere(connector, Some(source), id),
        None => elsewhere(connector, None, wanted),
    }
}

/// Finds a session of another tool. The stores are only searched if the catalog does not have it.
fn elsewhere(
    connector: &HostConnector,
    source: Option<TranscriptSource>,
    wanted: &str,
) -> Result<Option<SessionLocation>, Failure> {
    let failure = |error: NameError| match error {
        NameError::Several { .. } => Failure::NotFound(error.to_string()),
        error => error.into(),
    };
    let stores = connector.stores();
    let why = match stores.look_up_in_catalog(source, wanted).map_err(failure)? {
        CatalogLookup::Session(location) => return Ok(Some(*location)),
        CatalogLookup::Unknown => format!("the catalog has no {wanted:?}"),
        CatalogLookup::NoCatalog => "there is no catalog yet (`grove history scan` creates one)".to_owned(),
    };
    anstream::eprintln!("{why}: searching every tool's store");
    stores.named(source, wanted).map_err(failure)
}

/// Returns whether ids of the host's sessions begin with the text. Then the text is ambiguous.
async fn is_id_prefix(connector: &HostConnector, wanted: &str, protocol: Protocol) -> Result<bool, Failure> {
    let begins = |uri: &str| !wanted.is_empty() && id_of(uri).starts_with(id_of(wanted));
    Ok(match AnyClient::connect(connector, protocol).await? {
        AnyClient::Ahp(client) => {
            client.sessions().refresh().await?;
            client.sessions().read(|list| list.iter().any(|row| begins(&row.resource)))
        }
        AnyClient::V1(client) => {
            client.sessions().refresh().await?;
            client.sessions().read(|list| list.iter().any(|row| begins(&row.resource)))
        }
    })
}

/// Reads a session as a transcript.
pub(crate) async fn open(resolved: &ResolvedSession) -> Result<Transcript, Failure> {
    match resolved {
        ResolvedSession::Elsewhere(location) => Ok(Transcript::of_located(location)?),
        ResolvedSession::Log(path) => {
            let log = inspect::read(path)?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let header = log.index().header();
            let id = header.and_then(|header| header.id()).filter(|id| !id.is_empty()).unwrap_or(name);
            let mut session = TranscriptSession::new(TranscriptSource::default(), id);
            session.title = log.index().name();
            session.created_at = time_of(header.and_then(|header| header.timestamp()).as_deref());
            let folder = header.and_then(|header| header.cwd()).filter(|folder| !folder.is_empty());
            session.workspace.folders = folder.map(FileLocation::local).into_iter().collect();
            Ok(Transcript::of_log(LOG, session, log)?)
        }
        ResolvedSession::OfHost(tree) => {
            let about: ManifestResult =
                tree.ask_session(Method::Workspace(workspace::WorkspaceMethod::Manifest), &()).await?;
            let id = id_of(tree.session());
            let log = log_of(tree, id, &about).await?;
            let mut session = TranscriptSession::new(TranscriptSource::default(), id);
            session.title = match tree.chat() {
                Some(chat) => tree.chat_title(chat).await?.or(about.name),
                None => about.name,
            };
            session.created_at = time_of(about.created_at.as_deref());
            session.modified_at = time_of(about.updated_at.as_deref());
            session.workspace.folders = about.cwd.map(FileLocation::local).into_iter().collect();
            session.workspace.repository = about.repository;
            session.workspace.branch = about.branch;
            Ok(Transcript::of_log(GROVE, session, log)?)
        }
    }
}

/// Parses a timestamp of the host.
pub(crate) fn time_of(text: Option<&str>) -> Option<Timestamp> {
    text.and_then(|text| time::parse(text).ok())
}

/// The entries of a host session's log.
pub(crate) async fn log_of(session: &TreeClient, id: &str, about: &ManifestResult) -> Result<Log, Failure> {
    let created = time_of(about.created_at.as_deref()).unwrap_or_default();
    let mut bytes = grove_tree::turns::header_line(&header(id, GROVE, about.cwd.clone(), created));
    let mut params = EntriesParams { cursor: None, limit: Some(PAGE) };
    loop {
        let page: EntriesResult = session.ask(Method::Entries, &params).await?;
        for entry in &page.entries {
            if bytes.len() + entry.get().len() > MAX_LOG_BYTES {
                return Err(
                    anyhow!("the session's log has more than 1 GiB, which is too much to hold in memory").into()
                );
            }
            bytes.extend_from_slice(entry.get().as_bytes());
            bytes.push(b'\n');
        }
        // A page without entries would loop forever.
        if !page.more || page.entries.is_empty() {
            return Ok(grove_tree::open(bytes, &mut String::new).context("the session's log")?);
        }
        params.cursor = Some(page.cursor);
    }
}
