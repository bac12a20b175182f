//! `grove ls`

use grove_client::Client;
use grove_wire::ahp::{SessionSummary, status, time};
use grove_wire::v1;
use serde_json::json;

use super::{Failure, errand, say};
use crate::cli::{Common, LsArgs, Protocol};
use crate::connect::{Reach, id_of};
use crate::show::style::{bold, dim, green, red, yellow};
use crate::show::table::{age, cut, lines, short};

/// How much of a title is shown.
const TITLE: usize = 48;

pub(crate) fn run(common: &Common, args: &LsArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        match args.connect.protocol {
            Protocol::Ahp => {
                let mut sessions = fetch(&reach.ahp(None).await?).await?;
                sessions.retain(|session| args.all || session.status & status::IS_ARCHIVED == 0);
                if args.json {
                    return Ok(say(json!({ "sessions": sessions }))?);
                }
                show(&sessions.iter().map(row).collect::<Vec<_>>(), args)
            }
            Protocol::V1 => {
                let sessions = fetch(&reach.v1(None).await?).await?;
                if args.json {
                    return Ok(say(json!({ "sessions": sessions }))?);
                }
                show(&sessions.iter().map(row_of_v1).collect::<Vec<_>>(), args)
            }
        }
    })
}

/// The list, in the host's order.
pub(super) async fn fetch<D: grove_client::Dialect>(client: &Client<D>) -> Result<Vec<D::Summary>, Failure> {
    let sessions = client.sessions();
    sessions.refresh().await?;
    Ok(sessions.read(|list| list.iter().cloned().collect()))
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
}

impl Does {
    const fn word(self) -> &'static str {
        match self {
            Does::Idle => "idle",
            Does::Working => "working",
            Does::Waiting => "waiting",
            Does::Failed => "failed",
            Does::Archived => "archived",
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

fn show(rows: &[Row<'_>], args: &LsArgs) -> Result<(), Failure> {
    if rows.is_empty() {
        let hidden = if args.all { "" } else { " (--all shows archived ones, too)" };
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
            Some(Does::Archived) => say(dim(line))?,
        }
    }
    Ok(())
}
