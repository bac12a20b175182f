//! The session that somebody means, wherever it lies: in the host, in another tool's store, in a file.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use grove_core::Timestamp;
use grove_history::{ForeignSession, Located, Place, Source};
use grove_tree::Log;
use grove_wire::ahp::time;
use grove_wire::x_grove::workspace::{self, ManifestResult};
use grove_wire::x_grove::{EntriesParams, EntriesResult, Method};

use super::{Failure, inspect};
use crate::cli::Protocol;
use crate::connect::{Reach, id_of};
use crate::exchange::opened::{GROVE, LOG, Opened, header};
use crate::exchange::stores::{AtPath, Catalogued, NameError, at_path, with_source};
use crate::show::style::{dim, harmless};
use crate::show::table::cut;
use crate::talk::OtherChat;
use crate::talk::tree::{AnyClient, Tree};

/// How many entries are fetched at once.
const PAGE: usize = 1_000;

/// How large a session's log may be: it is held as a whole. A larger one is refused.
const MOST_LOG: usize = 1 << 30;

/// A session that was found.
#[derive(Debug)]
pub(crate) enum Meant {
    OfHost(Tree),
    /// A session of another tool.
    Elsewhere(Box<Located>),
    /// A log in Grove's form that lies somewhere.
    Log(PathBuf),
}

impl Meant {
    /// What it is called where it is: a URI of the host, or a path.
    pub(crate) fn shown(&self) -> String {
        match self {
            Meant::OfHost(session) => session.session().to_owned(),
            Meant::Elsewhere(located) => located.path.display().to_string(),
            Meant::Log(path) => path.display().to_string(),
        }
    }
}

/// Finds a session by what a person calls it: a path, `source:id`, or an id or the beginning of one. By an id the host's own
/// come first.
pub(crate) async fn find(
    reach: &Reach,
    wanted: &str,
    chat: Option<&str>,
    protocol: Protocol,
) -> Result<Meant, Failure> {
    let mut meant = find_any(reach, wanted, protocol).await?;
    match (&mut meant, chat) {
        (_, None) => {}
        (Meant::OfHost(tree), chat) => tree.choose_chat(chat).await?,
        (Meant::Elsewhere(_) | Meant::Log(_), Some(_)) => {
            return Err(anyhow!("only sessions of a host have further chats: leave out --chat").into());
        }
    }
    Ok(meant)
}

/// Says which chats of a session are not shown, if it has more than one.
pub(crate) async fn name_other_chats(meant: &Meant) -> Result<(), Failure> {
    if let Meant::OfHost(tree) = meant
        && tree.chat().is_none()
    {
        tell_other_chats(&tree.other_chats().await?);
    }
    Ok(())
}

/// The same for chats that are known.
pub(crate) fn tell_other_chats(others: &[OtherChat]) {
    if others.is_empty() {
        return;
    }
    let name = |other: &OtherChat| match other.title.trim() {
        "" => harmless(&other.name),
        title => format!("{} ({})", harmless(&other.name), cut(title, 40)),
    };
    let names: Vec<String> = others.iter().map(name).collect();
    let chats = if others.len() == 1 { "chat" } else { "chats" };
    let message = format!("{} more {chats} in this session: {} (--chat NAME)", others.len(), names.join(", "));
    anstream::eprintln!("{}", dim(message));
}

async fn find_any(reach: &Reach, wanted: &str, protocol: Protocol) -> Result<Meant, Failure> {
    match at_path(wanted) {
        Some(Ok(AtPath::Session(located))) => return Ok(Meant::Elsewhere(located)),
        Some(Ok(AtPath::Log(path))) => return Ok(Meant::Log(path)),
        Some(Err(error)) => return Err(error.into()),
        None => {}
    }
    if let Some((source, id)) = with_source(wanted) {
        // An agent of the host may have the name of a source: a URI of one of its sessions comes first.
        if wanted.contains(":/")
            && let Some(own) = of_host(reach, wanted, protocol).await?
        {
            return Ok(own);
        }
        let none = || Failure::NotFound(format!("{source} has no session {id:?} on this machine"));
        return Ok(Meant::Elsewhere(Box::new(elsewhere(reach, Some(source), id)?.ok_or_else(none)?)));
    }
    let (at, named) = match reach.at_session(wanted).await {
        Ok((at, named)) => (at, named),
        // Other tools' sessions can be looked at without a host.
        Err(Failure::NoHost(_)) => (reach.clone(), wanted.to_owned()),
        Err(failure) => return Err(failure),
    };
    if at.is_far() {
        return Ok(Meant::OfHost(Tree::of_session(&at, &named, protocol).await?));
    }
    let failure = match Tree::of_session(&at, &named, protocol).await {
        Ok(session) => return Ok(Meant::OfHost(session)),
        Err(Failure::NotFound(why)) if begins_one(&at, &named, protocol).await? => {
            return Err(Failure::NotFound(why));
        }
        Err(failure @ (Failure::NotFound(_) | Failure::NoHost(_))) => failure,
        Err(failure) => return Err(failure),
    };
    Ok(Meant::Elsewhere(Box::new(elsewhere(reach, None, wanted)?.ok_or(failure)?)))
}

/// The session of a host that has exactly this URI.
async fn of_host(reach: &Reach, uri: &str, protocol: Protocol) -> Result<Option<Meant>, Failure> {
    match Tree::of_session(reach, uri, protocol).await {
        Ok(session) if session.session() == uri => Ok(Some(Meant::OfHost(session))),
        Ok(_) | Err(Failure::NotFound(_) | Failure::NoHost(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// A session of another tool that is called so, by `source:id` or by an id or the beginning of one.
pub(crate) fn of_another_tool(reach: &Reach, wanted: &str) -> Result<Option<Located>, Failure> {
    match with_source(wanted) {
        Some((source, id)) => elsewhere(reach, Some(source), id),
        None => elsewhere(reach, None, wanted),
    }
}

/// A session of another tool. The catalog knows them all; only where it does not answer is every store looked into.
fn elsewhere(reach: &Reach, source: Option<Source>, wanted: &str) -> Result<Option<Located>, Failure> {
    let told = |error: NameError| match error {
        NameError::Several { .. } => Failure::NotFound(error.to_string()),
        error => error.into(),
    };
    let stores = reach.stores();
    let why = match stores.catalogued(source, wanted).map_err(told)? {
        Catalogued::Session(located) => return Ok(Some(*located)),
        Catalogued::Unknown => format!("the catalog does not know {wanted:?}"),
        Catalogued::NoCatalog => "there is no catalog yet (`grove history scan` makes one)".to_owned(),
    };
    anstream::eprintln!("{why}: looking into every tool's store");
    stores.named(source, wanted).map_err(told)
}

/// Whether sessions of the host begin so: then too little was said, and no other session is meant.
async fn begins_one(reach: &Reach, wanted: &str, protocol: Protocol) -> Result<bool, Failure> {
    let begins = |uri: &str| !wanted.is_empty() && id_of(uri).starts_with(id_of(wanted));
    Ok(match AnyClient::connect(reach, protocol).await? {
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

/// Brings a session into the normal form.
pub(crate) async fn open(meant: &Meant) -> Result<Opened, Failure> {
    match meant {
        Meant::Elsewhere(located) => Ok(Opened::of_located((**located).clone())?),
        Meant::Log(path) => {
            let log = inspect::read(path)?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let header = log.index().header();
            let id = header.and_then(|header| header.id()).filter(|id| !id.is_empty()).unwrap_or(name);
            let mut session = ForeignSession::new(Source::default(), id);
            session.title = log.index().name();
            session.created_at = time_of(header.and_then(|header| header.timestamp()).as_deref());
            let folder = header.and_then(|header| header.cwd()).filter(|folder| !folder.is_empty());
            session.workspace.folders = folder.map(Place::local).into_iter().collect();
            Ok(Opened::of_log(LOG, session, log))
        }
        Meant::OfHost(tree) => {
            let about: ManifestResult = tree.ask_session(Method::Workspace(workspace::Method::Manifest), &()).await?;
            let id = id_of(tree.session());
            let log = log_of(tree, id, &about).await?;
            let mut session = ForeignSession::new(Source::default(), id);
            session.title = match tree.chat() {
                Some(chat) => tree.chat_title(chat).await?.or(about.name),
                None => about.name,
            };
            session.created_at = time_of(about.created_at.as_deref());
            session.modified_at = time_of(about.updated_at.as_deref());
            session.workspace.folders = about.cwd.map(Place::local).into_iter().collect();
            session.workspace.repository = about.repository;
            session.workspace.branch = about.branch;
            Ok(Opened::of_log(GROVE, session, log))
        }
    }
}

/// A time as the host writes it.
pub(crate) fn time_of(text: Option<&str>) -> Option<Timestamp> {
    text.and_then(|text| time::parse(text).ok())
}

/// The log of a session of the host, as far as its entries go.
pub(crate) async fn log_of(session: &Tree, id: &str, about: &ManifestResult) -> Result<Log, Failure> {
    let created = time_of(about.created_at.as_deref()).unwrap_or_default();
    let mut bytes = grove_tree::turns::header_line(&header(id, GROVE, about.cwd.clone(), created));
    let mut params = EntriesParams { cursor: None, limit: Some(PAGE) };
    loop {
        let page: EntriesResult = session.ask(Method::Entries, &params).await?;
        for entry in &page.entries {
            if bytes.len() + entry.get().len() > MOST_LOG {
                return Err(anyhow!("the session's log has more than 1 GiB, which is more than can be held").into());
            }
            bytes.extend_from_slice(entry.get().as_bytes());
            bytes.push(b'\n');
        }
        // A page without entries brings nobody further.
        if !page.more || page.entries.is_empty() {
            return Ok(grove_tree::open(bytes, &mut String::new).context("the session's log")?);
        }
        params.cursor = Some(page.cursor);
    }
}
