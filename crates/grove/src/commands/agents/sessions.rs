//! `grove agents sessions`

use std::path::Path;

use anyhow::anyhow;
use grove_agents::acp::{AcpAgent, ListedSession};
use serde_json::{Value, json};

use super::installed_program;
use crate::agents::one_shot::OneShotPool;
use crate::cli::{AgentsSessionsArgs, Common, ServeArgs};
use crate::commands::{Failure, command_runtime, print_line};
use crate::settings::Settings;
use crate::show::style::{bold, sanitize};
use crate::show::table::lines;

pub(super) fn run(common: &Common, args: &AgentsSessionsArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let program = installed_program(&settings, &args.agent)?;
    let pool = OneShotPool::new(&settings)?;
    let folder = args.directory.as_deref().map(std::path::absolute).transpose()?;
    let listed = command_runtime()?.block_on(async {
        let agent = AcpAgent::new(program, pool.pool());
        agent.list(folder.as_deref()).await
    });
    let listed = listed.map_err(|error| anyhow!("the sessions cannot be listed: {error}"))?;
    if args.json {
        let sessions: Vec<Value> = listed.iter().map(session_json).collect();
        return Ok(print_line(json!({ "agent": args.agent, "sessions": sessions }))?);
    }
    let head = ["SESSION", "CHANGED", "FOLDER", "TITLE"].map(str::to_owned).to_vec();
    let rows = listed.iter().map(|session| {
        let text = |text: &Option<String>| sanitize(text.as_deref().unwrap_or_default());
        vec![sanitize(&session.id), text(&session.updated_at), shown(&session.working_directory), text(&session.title)]
    });
    for (number, line) in lines(&std::iter::once(head).chain(rows).collect::<Vec<_>>()).into_iter().enumerate() {
        match number {
            0 => print_line(bold(line))?,
            _ => print_line(line)?,
        }
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    sanitize(&path.display().to_string())
}

fn session_json(session: &ListedSession) -> Value {
    json!({
        "id": session.id, "cwd": session.working_directory, "title": session.title, "updatedAt": session.updated_at,
    })
}
