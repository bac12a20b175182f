//! `grove ls`

use grove_client::Client;
use grove_host::{Clock, SystemClock};
use grove_wire::ahp::{SessionSummary, status, time};
use grove_wire::v1;
use grove_wire::x_grove::Method;
use grove_wire::x_grove::history::{ListParams, Row as Other};
use grove_wire::x_grove::removal::{self, DisposedResult, DisposedSession};
use grove_work::{Repository, local_path};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Failure, errand, history, say};
use crate::cli::{Common, LsArgs, Protocol};
use crate::connect::{Reach, id_of};
use crate::show::style::{bold, dim, green, red, yellow};
use crate::show::table::{age, cut, lines, short};
use crate::talk::tree::AnyClient;

/// The source of the host's own sessions.
const OWN: &str = "grove";
/// How much of a title is shown.
const TITLE: usize = 48;

pub(crate) fn run(common: &Common, args: &LsArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        if args.disposed {
            let sessions = fetch_disposed(&AnyClient::connect(&reach, args.connect.protocol).await?).await?;
            if args.json {
                return Ok(say(json!({ "sessions": sessions }))?);
            }
            return show_disposed(&sessions);
        }
        match args.connect.protocol {
            Protocol::Ahp => {
                let client = reach.ahp(None).await?;
                let mut sessions = fetch(&client).await?;
                sessions.retain(|session| args.all || session.status & status::IS_ARCHIVED == 0);
                sessions.retain(|session| {
                    let folder = session.working_directories.iter().flatten().next();
                    is_wanted(args, time::parse(&session.modified_at).map_or(0, |at| at.0), folder)
                });
                let others = others(AnyClient::Ahp(client), args).await?;
                if args.json {
                    return Ok(say(together(&sessions, &others, args, |session| &session.resource)?)?);
                }
                show(&sessions.iter().map(row).chain(others.iter().map(row_of_other)).collect::<Vec<_>>(), args)
            }
            Protocol::V1 => {
                let client = reach.v1(None).await?;
                let mut sessions = fetch(&client).await?;
                sessions.retain(|it| is_wanted(args, it.modified_at, it.working_directory.as_ref()));
                let others = others(AnyClient::V1(client), args).await?;
                if args.json {
                    return Ok(say(together(&sessions, &others, args, |session| &session.resource)?)?);
                }
                show(&sessions.iter().map(row_of_v1).chain(others.iter().map(row_of_other)).collect::<Vec<_>>(), args)
            }
        }
    })
}

/// What other tools left, where that is asked for.
async fn others(client: AnyClient, args: &LsArgs) -> Result<Vec<Other>, Failure> {
    if !args.all || args.source.as_deref() == Some(OWN) {
        return Ok(Vec::new());
    }
    history::refresh(&client).await?;
    let wanted = ListParams {
        source: args.source.clone(),
        repository: args.repo.clone(),
        since: since(args),
        ..ListParams::default()
    };
    history::list(&client, wanted).await
}

fn since(args: &LsArgs) -> Option<u64> {
    args.since.map(|since| since.time(SystemClock.now()).0)
}

/// Whether one of the host's own sessions is to be listed.
fn is_wanted(args: &LsArgs, modified: u64, folder: Option<&String>) -> bool {
    let is_of = |repository: &String| {
        let folder = folder.and_then(|folder| local_path(folder).ok());
        let name = folder.as_deref().and_then(Repository::of).and_then(|repository| repository.name());
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

/// All of them as JSON. With `--all` each says whose it is.
fn together<S: Serialize>(
    own: &[S],
    others: &[Other],
    args: &LsArgs,
    resource: impl Fn(&S) -> &str,
) -> Result<Value, Failure> {
    let mut sessions = Vec::with_capacity(own.len() + others.len());
    for session in own {
        let mut json = serde_json::to_value(session)?;
        if let (true, Some(members)) = (args.all, json.as_object_mut()) {
            members.insert("source".to_owned(), OWN.into());
            members.insert("sourceId".to_owned(), id_of(resource(session)).into());
        }
        sessions.push(json);
    }
    for other in others {
        sessions.push(serde_json::to_value(other)?);
    }
    Ok(json!({ "sessions": sessions }))
}

/// The list, in the host's order.
pub(super) async fn fetch<D: grove_client::Dialect>(client: &Client<D>) -> Result<Vec<D::Summary>, Failure> {
    let sessions = client.sessions();
    sessions.refresh().await?;
    Ok(sessions.read(|list| list.iter().cloned().collect()))
}

/// Sessions that were disposed, and whose folders are still there.
pub(super) async fn fetch_disposed(client: &AnyClient) -> Result<Vec<DisposedSession>, Failure> {
    let method = Method::Removal(removal::Method::Disposed);
    let DisposedResult { sessions } = client.ask(method, &json!({})).await?;
    Ok(sessions)
}

fn show_disposed(sessions: &[DisposedSession]) -> Result<(), Failure> {
    if sessions.is_empty() {
        anstream::eprintln!("no session is disposed and still on the disk");
        return Ok(());
    }
    let ids = short(&sessions.iter().map(|session| id_of(&session.session)).collect::<Vec<_>>());
    let head = ["ID", "STORE", "TITLE", "AGE"].map(str::to_owned).to_vec();
    let cells = sessions
        .iter()
        .zip(ids)
        .map(|(session, id)| vec![id, session.store.clone(), cut(&session.title, TITLE), age(session.modified_at)]);
    let table = lines(&std::iter::once(head).chain(cells).collect::<Vec<_>>());
    for (at, line) in table.iter().enumerate() {
        if at == 0 { say(bold(line))? } else { say(line)? }
    }
    Ok(())
}

struct Row<'a> {
    id: &'a str,
    does: Does,
    title: &'a str,
    agent: &'a str,
    modified: u64,
}

/// What a session does, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Idle,
    Working,
    Waiting,
    Failed,
    Archived,
    /// It belongs to another tool.
    Elsewhere,
}

impl Does {
    const fn word(self) -> &'static str {
        match self {
            Does::Idle => "idle",
            Does::Working => "working",
            Does::Waiting => "waiting",
            Does::Failed => "failed",
            Does::Archived => "archived",
            Does::Elsewhere => "history",
        }
    }
}

fn does(bits: u32) -> Does {
    match bits & status::ACTIVITY {
        activity if activity & status::INPUT_NEEDED == status::INPUT_NEEDED => Does::Waiting,
        activity if activity & status::IN_PROGRESS != 0 => Does::Working,
        _ if bits & status::IS_ARCHIVED != 0 => Does::Archived,
        activity if activity & status::ERROR != 0 => Does::Failed,
        _ => Does::Idle,
    }
}

fn row(session: &SessionSummary) -> Row<'_> {
    Row {
        id: id_of(&session.resource),
        does: does(session.status),
        title: &session.title,
        agent: &session.provider,
        modified: time::parse(&session.modified_at).map_or(0, |at| at.0),
    }
}

fn row_of_v1(session: &v1::SessionSummary) -> Row<'_> {
    Row {
        id: id_of(&session.resource),
        does: match session.status {
            v1::SessionStatus::Idle => Does::Idle,
            v1::SessionStatus::InProgress => Does::Working,
            v1::SessionStatus::Error => Does::Failed,
        },
        title: &session.title,
        agent: &session.provider,
        modified: session.modified_at,
    }
}

fn row_of_other(session: &Other) -> Row<'_> {
    Row {
        id: id_of(&session.resource),
        does: Does::Elsewhere,
        title: &session.title,
        agent: &session.about.source,
        modified: session.modified_at,
    }
}

fn show(rows: &[Row<'_>], args: &LsArgs) -> Result<(), Failure> {
    if rows.is_empty() {
        let hidden = if args.all { "" } else { " (--all shows archived ones, too, and those of other tools)" };
        anstream::eprintln!("no sessions{hidden}: `grove run PROMPT` starts one");
        return Ok(());
    }
    let ids = short(&rows.iter().map(|row| row.id).collect::<Vec<_>>());
    let head = ["ID", "STATUS", "TITLE", "AGENT", "AGE"].map(str::to_owned).to_vec();
    let cells = rows.iter().zip(ids).map(|(row, id)| {
        vec![id, row.does.word().to_owned(), cut(row.title, TITLE), cut(row.agent, TITLE), age(row.modified)]
    });
    let table = lines(&std::iter::once(head).chain(cells).collect::<Vec<_>>());
    for (at, line) in table.iter().enumerate() {
        match at.checked_sub(1).and_then(|at| rows.get(at)).map(|row| row.does) {
            None => say(bold(line))?,
            Some(Does::Idle) => say(line)?,
            Some(Does::Working) => say(green(line))?,
            Some(Does::Waiting) => say(yellow(line))?,
            Some(Does::Failed) => say(red(line))?,
            Some(Does::Archived | Does::Elsewhere) => say(dim(line))?,
        }
    }
    Ok(())
}
