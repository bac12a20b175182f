//! `grove status`

use super::{Failure, errand, say};
use crate::cli::{Common, OutputArgs, ServeArgs};
use crate::data_folder;
use crate::settings::Settings;

pub(crate) fn run(common: &Common, args: &OutputArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let data_dir = &settings.data_dir.value;
    let none =
        || Failure::NoHost(format!("no host is running for {}: start one with `grove serve`", data_dir.display()));
    let endpoint = data_folder::read_endpoint(data_dir)?.ok_or_else(none)?;
    let health = match errand()?.block_on(endpoint.health()) {
        Ok(health) => health,
        // The file of a host that was killed stays behind; the lock does not.
        Err(_) if !data_folder::is_taken(data_dir) => return Err(none()),
        Err(error) => return Err(error.into()),
    };
    if args.json {
        let status = serde_json::json!({
            "running": true,
            "http": endpoint.http,
            "ws": endpoint.ws,
            "pid": health.pid,
            "version": health.version,
            "sessions": health.sessions,
            "runningTurns": health.running_turns,
            "connections": health.connections,
            "serverSeq": health.server_seq,
        });
        say(status)?;
    } else {
        say(format!("grove {} is running at {} (process {})", health.version, endpoint.http, health.pid))?;
        say(format!(
            "{} sessions, {} running turns, {} connections",
            health.sessions, health.running_turns, health.connections
        ))?;
    }
    Ok(())
}
