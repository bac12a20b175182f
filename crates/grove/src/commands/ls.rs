//! `grove ls`

use std::collections::HashSet;

use anyhow::anyhow;
use grove_client::Client;
use grove_core::Timestamp;
use grove_host::{Clock, SystemClock};
use grove_session_hub::{HostList, ListState};
use grove_wire::ahp::{SessionSummary, status, time};
use grove_wire::v1;
use grove_wire::x_grove::Method;
use grove_wire::x_grove::history::HistoryListParams;
use grove_wire::x_grove::removal::{self, DisposedResult, DisposedSession};
use grove_work::{GitRepository, local_path};
use serde_json::{Value, json};

use super::{Failure, command_runtime, history, print_line};
use crate::chat_client::tree::AnyClient;
use crate::cli::{Common, LsArgs, Protocol};
use crate::connect::{HostConnector, id_of};
use crate::hosts;
use crate::show::style::{bold, dim, green, red, yellow};
use crate::show::table::{age, cut, lines_within, short, short_among, terminal_width};

/// The source name of the host's own sessions.
const OWN: &str = "grove";
/// The maximum width of a title, in columns.
const TITLE: usize = 48;
/// The number of characters shown of a connection error.
const WHY: usize = 300;

pub(crate) fn run(common: &Common, args: &LsArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        if args.disposed {
            let sessions = fetch_disposed(&AnyClient::connect(&connector, args.connect.protocol).await?).await?;
            if args.json {
                let sessions = sessions.iter().map(|session| disposed_json(session, connector.host_name()));
                return Ok(print_line(json!({ "sessions": sessions.collect::<Vec<_>>() }))?);
            }
            return show_disposed(&sessions);
        }
        let (own, far) = tokio::join!(own(&connector, args), far(&connector));
        let far = far?;
        let mut listed = match own {
            // The sessions of other hosts are listed without it.
            Err(Failure::NoHost(why)) if !far.is_empty() => {
                anstream::eprintln!("{}: {why}", hosts::LOCAL);
                HostSessions::default()
            }
            own => own?,
        };
        let mut away = Vec::new();
        for HostList { host, sessions, state } in &far {
            let is_cached = matches!(state, ListState::Away { .. });
            if let ListState::Away { why, seen_at } = state {
                away.push(Away { host: host.clone(), error: cut(why, WHY), seen_at: *seen_at });
            }
            let wanted = sessions.iter().filter(|session| is_listed(session, args, HostLocation::Far));
            for session in wanted {
                listed.sessions.push(SessionLine { is_cached, ..row(session, host)? });
            }
        }
        if !connector.is_narrowed() {
            let unusable = hosts::known_hosts(connector.data_dir())?.unusable.into_iter();
            away.extend(unusable.map(|host| Away {
                host: cut(&host.name, TITLE),
                error: cut(&host.error.to_string(), WHY),
                seen_at: None,
            }));
        }
        if !far.is_empty() {
            listed.sessions.sort_by_key(|row| std::cmp::Reverse(row.modified));
        }
        // A session that was imported keeps its id, or says which one it is a copy of, and is shown once.
        let copied = |row: &SessionLine| row.json["_meta"]["importedFrom"]["sourceId"].as_str().map(str::to_owned);
        let own = listed.sessions.iter().flat_map(|row| std::iter::once(row.id.clone()).chain(copied(row)));
        let own: HashSet<String> = own.collect();
        listed.others.retain(|other| !own.contains(&other.source_id));
        listed.sessions.extend(listed.others.into_iter().map(|other| other.row));
        let elsewhere = far.iter().flat_map(|host| &host.sessions);
        listed.searched.extend(elsewhere.map(|session| id_of(&session.resource).to_owned()));
        if args.json {
            let sessions: Vec<Value> = listed.sessions.into_iter().map(SessionLine::json).collect();
            let mut output = json!({ "sessions": sessions });
            if !away.is_empty() {
                output["away"] = away.iter().map(Away::json).collect();
            }
            return Ok(print_line(output)?);
        }
        show(
            &listed.sessions,
            &listed.searched,
            args,
            if far.is_empty() { HostColumn::One } else { HostColumn::Several },
        )?;
        for Away { host, error, seen_at } in &away {
            let cache_note =
                seen_at.map_or_else(String::new, |at| format!("; its sessions from {} ago are shown", age(at.0)));
            anstream::eprintln!("{host} is unreachable ({error}){cache_note}");
        }
        Ok(())
    })
}

/// An unreachable host.
struct Away {
    host: String,
    error: String,
    /// The time of its last answer, if its cached sessions are listed.
    seen_at: Option<Timestamp>,
}

impl Away {
    fn json(&self) -> Value {
        let mut json = json!({"host": self.host, "error": self.error});
        if let Some(seen_at) = self.seen_at {
            json["seenAt"] = time::text(seen_at).into();
        }
        json
    }
}

/// The sessions of the host that is asked first.
#[derive(Default)]
struct HostSessions {
    sessions: Vec<SessionLine>,
    /// The sessions of other tools.
    others: Vec<ToolSessionRow>,
    /// The ids of all sessions, listed or not; the next command searches among them.
    searched: Vec<String>,
}

/// A session of another tool, with the id that the tool uses.
struct ToolSessionRow {
    source_id: String,
    row: SessionLine,
}

async fn own(connector: &HostConnector, args: &LsArgs) -> Result<HostSessions, Failure> {
    let reached = if connector.is_remote() { HostLocation::Far } else { HostLocation::Here };
    let host = connector.host_name();
    let mut searched: Vec<String> = Vec::new();
    let (sessions, client) = match args.connect.protocol {
        Protocol::Ahp => {
            let client = connector.ahp(None).await?;
            let sessions = fetch(&client).await?;
            searched.extend(sessions.iter().map(|session| id_of(&session.resource).to_owned()));
            let wanted = sessions.iter().filter(|session| is_listed(session, args, reached));
            (wanted.map(|session| row(session, host)).collect::<Result<_, _>>()?, AnyClient::Ahp(client))
        }
        Protocol::V1 if args.waiting => {
            return Err(anyhow!("version 1 does not tell which sessions wait: leave out --protocol v1").into());
        }
        Protocol::V1 => {
            let client = connector.v1(None).await?;
            let sessions = fetch(&client).await?;
            searched.extend(sessions.iter().map(|session| id_of(&session.resource).to_owned()));
            let wanted =
                sessions.iter().filter(|it| is_wanted(args, it.modified_at, it.working_directory.as_ref(), reached));
            (wanted.map(|session| row_of_v1(session, host)).collect::<Result<_, _>>()?, AnyClient::V1(client))
        }
    };
    let others = others(&client, args).await?;
    if !others.is_empty() && (args.source.is_some() || args.repo.is_some() || args.since.is_some()) {
        let all = history::list(&client, HistoryListParams::default()).await?;
        searched.extend(all.iter().map(|other| id_of(&other.resource).to_owned()));
    }
    let others = others.iter().map(|other| {
        Ok::<_, Failure>(ToolSessionRow { source_id: other.about.source_id.clone(), row: row_of_other(other, host)? })
    });
    Ok(HostSessions { sessions, others: others.collect::<Result<_, _>>()?, searched })
}

/// The sessions of the other hosts, unless one host is selected.
async fn far(connector: &HostConnector) -> Result<Vec<HostList>, Failure> {
    match connector.is_narrowed() {
        true => Ok(Vec::new()),
        false => Ok(hosts::lists(connector.data_dir()).await?),
    }
}

/// The location of a host. Only folders of this machine can be inspected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostLocation {
    Here,
    Far,
}

fn is_listed(session: &SessionSummary, args: &LsArgs, reached: HostLocation) -> bool {
    let folder = session.working_directories.iter().flatten().next();
    let modified = time::parse(&session.modified_at).map_or(0, |at| at.0);
    let is_shown = match args.waiting {
        true => does(session.status) == SessionActivity::Waiting,
        false => args.all || session.status & status::IS_ARCHIVED == 0,
    };
    is_shown && is_wanted(args, modified, folder, reached)
}

/// The sessions of other tools, if requested.
async fn others(
    client: &AnyClient,
    args: &LsArgs,
) -> Result<Vec<grove_wire::x_grove::history::HistoryListRow>, Failure> {
    let is_asked_for = args.all || args.source.is_some();
    if !is_asked_for || args.waiting || args.source.as_deref() == Some(OWN) {
        return Ok(Vec::new());
    }
    history::refresh(client).await?;
    let wanted = HistoryListParams {
        source: args.source.clone(),
        repository: args.repo.clone(),
        since: since(args),
        ..HistoryListParams::default()
    };
    history::list(client, wanted).await
}

fn since(args: &LsArgs) -> Option<u64> {
    args.since.map(|since| since.time(SystemClock.now()).0)
}

/// Returns whether one of the host's own sessions matches the filters.
fn is_wanted(args: &LsArgs, modified: u64, folder: Option<&String>, reached: HostLocation) -> bool {
    let is_of = |repository: &String| {
        let folder = folder.and_then(|folder| local_path(folder).ok());
        let looked_at = folder.as_deref().filter(|_| reached == HostLocation::Here);
        let name = looked_at.and_then(GitRepository::of).and_then(|repository| repository.name());
        let is_named = name.is_some_and(|name| {
            let (name, wanted) = (name.to_lowercase(), repository.to_lowercase());
            name == wanted || name.ends_with(&format!("/{wanted}"))
        });
        is_named || folder.is_some_and(|folder| folder.as_os_str() == repository.trim_end_matches('/'))
    };
    args.source.as_deref().is_none_or(|source| source == OWN)
        && since(args).is_none_or(|since| modified >= since)
        && args.repo.as_ref().is_none_or(is_of)
}

/// The session list, in the host's order.
pub(super) async fn fetch<D: grove_client::Dialect>(client: &Client<D>) -> Result<Vec<D::SessionRow>, Failure> {
    let sessions = client.sessions();
    sessions.refresh().await?;
    Ok(sessions.read(|list| list.iter().cloned().collect()))
}

/// Disposed sessions whose folders still exist.
pub(super) async fn fetch_disposed(client: &AnyClient) -> Result<Vec<DisposedSession>, Failure> {
    let method = Method::Removal(removal::RemovalMethod::Disposed);
    let DisposedResult { sessions } = client.ask(method, &json!({})).await?;
    Ok(sessions)
}

fn show_disposed(sessions: &[DisposedSession]) -> Result<(), Failure> {
    if sessions.is_empty() {
        anstream::eprintln!("there are no disposed sessions on disk");
        return Ok(());
    }
    let ids = short(&sessions.iter().map(|session| id_of(&session.session)).collect::<Vec<_>>());
    let head = ["ID", "STORE", "TITLE", "AGE"].map(str::to_owned).to_vec();
    let cells = sessions
        .iter()
        .zip(ids)
        .map(|(session, id)| vec![id, session.store.clone(), cut(&session.title, TITLE), age(session.modified_at)]);
    let rows: Vec<_> = std::iter::once(head).chain(cells).collect();
    let table = lines_within(&rows, terminal_width(), &[2, 1]);
    for (at, line) in table.iter().enumerate() {
        if at == 0 { print_line(bold(line))? } else { print_line(line)? }
    }
    Ok(())
}

/// A session of the list, for people and for programs.
struct SessionLine {
    host: String,
    id: String,
    does: SessionActivity,
    title: String,
    agent: String,
    /// The tool that the session belongs to, and its id there.
    source: String,
    source_id: String,
    /// The working directory, as a path or, for other schemes, as a URI.
    cwd: Option<String>,
    created: u64,
    modified: u64,
    /// The host is unreachable, and this is cached.
    is_cached: bool,
    /// The protocol's JSON of the session.
    json: Value,
}

impl SessionLine {
    /// The session for programs.
    ///
    /// Every row has the keys written here, whatever its host, protocol or tool; the protocol's other keys are added.
    fn json(self) -> Value {
        let mut json = self.json;
        if let Some(members) = json.as_object_mut() {
            // A word replaces AHP's bits, which can mean several things.
            if let Some(bits) = members.remove("status").filter(Value::is_number) {
                members.insert("statusBits".to_owned(), bits);
            }
            let common = [
                ("id", self.id.into()),
                ("title", self.title.into()),
                ("host", self.host.into()),
                ("source", self.source.into()),
                ("sourceId", self.source_id.into()),
                ("agent", self.agent.into()),
                ("status", self.does.word().into()),
                ("createdAt", time::text(Timestamp(self.created)).into()),
                ("modifiedAt", time::text(Timestamp(self.modified)).into()),
                ("cwd", self.cwd.into()),
            ];
            members.extend(common.map(|(name, value): (&str, Value)| (name.to_owned(), value)));
            if self.is_cached {
                members.insert("cached".to_owned(), true.into());
            }
        }
        json
    }
}

/// A disposed session in the same form.
fn disposed_json(session: &DisposedSession, host: &str) -> Value {
    let id = id_of(&session.session);
    json!({
        "id": id,
        "title": session.title,
        "host": host,
        "source": OWN,
        "sourceId": id,
        "agent": session.session.split_once(":/").map(|(agent, _)| agent),
        "status": "disposed",
        "modifiedAt": time::text(Timestamp(session.modified_at)),
        "session": session.session,
        "store": session.store,
    })
}

/// A folder as a path.
fn path_of(folder: &str) -> String {
    grove_wire::file_uri::to_path(folder).unwrap_or_else(|| folder.to_owned())
}

/// The activity of a session, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionActivity {
    Idle,
    Working,
    Waiting,
    Failed,
    Archived,
    /// The session belongs to another tool.
    Elsewhere,
}

impl SessionActivity {
    const fn word(self) -> &'static str {
        match self {
            SessionActivity::Idle => "idle",
            SessionActivity::Working => "working",
            SessionActivity::Waiting => "waiting",
            SessionActivity::Failed => "failed",
            SessionActivity::Archived => "archived",
            SessionActivity::Elsewhere => "history",
        }
    }
}

fn does(bits: u32) -> SessionActivity {
    match bits & status::ACTIVITY {
        activity if activity & status::INPUT_NEEDED == status::INPUT_NEEDED => SessionActivity::Waiting,
        activity if activity & status::IN_PROGRESS != 0 => SessionActivity::Working,
        _ if bits & status::IS_ARCHIVED != 0 => SessionActivity::Archived,
        activity if activity & status::ERROR != 0 => SessionActivity::Failed,
        _ => SessionActivity::Idle,
    }
}

fn row(session: &SessionSummary, host: &str) -> Result<SessionLine, Failure> {
    Ok(SessionLine {
        host: host.to_owned(),
        id: id_of(&session.resource).to_owned(),
        does: does(session.status),
        title: session.title.clone(),
        agent: session.provider.clone(),
        source: OWN.to_owned(),
        source_id: id_of(&session.resource).to_owned(),
        cwd: session.working_directories.iter().flatten().next().map(|folder| path_of(folder)),
        created: time::parse(&session.created_at).map_or(0, |at| at.0),
        modified: time::parse(&session.modified_at).map_or(0, |at| at.0),
        is_cached: false,
        json: serde_json::to_value(session)?,
    })
}

fn row_of_v1(session: &v1::SessionSummary, host: &str) -> Result<SessionLine, Failure> {
    Ok(SessionLine {
        host: host.to_owned(),
        id: id_of(&session.resource).to_owned(),
        does: match session.status {
            v1::SessionStatus::Idle => SessionActivity::Idle,
            v1::SessionStatus::InProgress => SessionActivity::Working,
            v1::SessionStatus::Error => SessionActivity::Failed,
        },
        title: session.title.clone(),
        agent: session.provider.clone(),
        source: OWN.to_owned(),
        source_id: id_of(&session.resource).to_owned(),
        cwd: session.working_directory.as_deref().map(path_of),
        created: session.created_at,
        modified: session.modified_at,
        is_cached: false,
        json: serde_json::to_value(session)?,
    })
}

fn row_of_other(session: &grove_wire::x_grove::history::HistoryListRow, host: &str) -> Result<SessionLine, Failure> {
    Ok(SessionLine {
        host: host.to_owned(),
        id: id_of(&session.resource).to_owned(),
        does: SessionActivity::Elsewhere,
        title: session.title.clone(),
        agent: session.about.source.clone(),
        source: session.about.source.clone(),
        source_id: session.about.source_id.clone(),
        cwd: session.working_directory.as_deref().map(path_of),
        created: session.created_at,
        modified: session.modified_at,
        is_cached: false,
        json: serde_json::to_value(session)?,
    })
}

/// The number of hosts in the list: with several, each line names its host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostColumn {
    One,
    Several,
}

fn show(rows: &[SessionLine], searched: &[String], args: &LsArgs, hosts: HostColumn) -> Result<(), Failure> {
    if rows.is_empty() {
        let is_narrowed = args.source.is_some() || args.repo.is_some() || args.since.is_some();
        anstream::eprintln!(
            "{}",
            match (args.waiting, is_narrowed, args.all) {
                (true, _, _) => "no session waits for an answer: `grove ls` lists all of them",
                (false, true, true) => "no session matches: `grove ls --all` lists all of them",
                (false, true, false) => {
                    "no session matches: --all includes archived ones and those of other tools"
                }
                (false, false, true) => "no sessions: `grove run PROMPT` starts one",
                (false, false, false) => {
                    "no sessions (--all includes archived ones and those of other tools): `grove run PROMPT` starts one"
                }
            }
        );
        return Ok(());
    }
    let searched: Vec<&str> = searched.iter().map(String::as_str).collect();
    let ids = short_among(&rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), &searched);
    let mut head = ["ID", "STATUS", "TITLE", "AGENT", "AGE"].map(str::to_owned).to_vec();
    if hosts == HostColumn::Several {
        head.insert(1, "HOST".to_owned());
    }
    let cells = rows.iter().zip(ids).map(|(row, id)| {
        let does = if row.is_cached { format!("{} (cached)", row.does.word()) } else { row.does.word().to_owned() };
        let mut cells = vec![id, does, cut(&row.title, TITLE), cut(&row.agent, TITLE), age(row.modified)];
        if hosts == HostColumn::Several {
            cells.insert(1, row.host.clone());
        }
        cells
    });
    let table: Vec<_> = std::iter::once(head).chain(cells).collect();
    // The title is shortened first, then the agent, then the host.
    let flexible = if hosts == HostColumn::Several { &[3, 4, 1][..] } else { &[2, 3] };
    let table = lines_within(&table, terminal_width(), flexible);
    for (at, line) in table.iter().enumerate() {
        let row = at.checked_sub(1).and_then(|at| rows.get(at));
        match row.map(|row| if row.is_cached { SessionActivity::Elsewhere } else { row.does }) {
            None => print_line(bold(line))?,
            Some(SessionActivity::Idle) => print_line(line)?,
            Some(SessionActivity::Working) => print_line(green(line))?,
            Some(SessionActivity::Waiting) => print_line(yellow(line))?,
            Some(SessionActivity::Failed) => print_line(red(line))?,
            Some(SessionActivity::Archived | SessionActivity::Elsewhere) => print_line(dim(line))?,
        }
    }
    Ok(())
}
