//! `grove status`

use grove_wire::x_grove::presence::AttendedSession;

use super::{Failure, command_runtime, exit, print_line, print_page_url};
use crate::background::find_host;
use crate::chat_client::presence::{label, named};
use crate::cli::{Common, OutputArgs, ServeArgs};
use crate::connect::id_of;
use crate::json_errors;
use crate::settings::Settings;
use crate::show::style::{sanitize, sanitize_line};

/// How many sessions in which everything is allowed are named in one line.
const ALLOW_ALL_NAMED: usize = 5;

/// Names the sessions in which everything is allowed.
fn allow_all(sessions: &[String], count: usize) -> String {
    let mut names: Vec<String> = sessions.iter().take(ALLOW_ALL_NAMED).map(|id| sanitize(id)).collect();
    if count > names.len() {
        names.push(format!("and {} more", count - names.len()));
    }
    let (word, names) = (if count == 1 { "session allows" } else { "sessions allow" }, names.join(", "));
    format!(
        "{count} {word} everything without asking: {names} (`grove permissions SESSION --revoke` makes it ask again)"
    )
}

/// The sessions with attached clients, a line for each.
fn attended(sessions: &[AttendedSession], count: usize) -> Vec<String> {
    let line = |session: &AttendedSession| {
        let clients = named(session.presence.clients.iter().map(label).collect(), session.presence.more);
        sanitize_line(&format!("attached to {}: {clients}", id_of(&session.session)))
    };
    let mut lines: Vec<String> = sessions.iter().map(line).collect();
    if count > sessions.len() {
        lines.push(format!("and clients are attached to {} more sessions", count - sessions.len()));
    }
    lines
}

pub(crate) fn run(common: &Common, args: &OutputArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let data_dir = &settings.data_dir.value;
    let none =
        || Failure::NoHost(format!("no host is running for {}: start one with `grove start`", data_dir.display()));
    let Some(found) = command_runtime()?.block_on(find_host(data_dir))? else {
        let failure = none();
        if !args.json {
            return Err(failure);
        }
        let (folder, error) = (data_dir.display().to_string(), json_errors::body(&failure));
        print_line(serde_json::json!({"running": false, "dataDir": folder, "error": error}))?;
        anstream::eprintln!("grove: {failure}");
        return Err(Failure::Exit(exit::NO_HOST));
    };
    let (endpoint, health) = (found.endpoint, found.health);
    if args.json {
        let status = serde_json::json!({
            "running": true,
            "http": endpoint.http,
            "ws": endpoint.ws,
            "page": endpoint.page(),
            "pid": health.pid,
            "version": health.version,
            "sessions": health.sessions,
            "loadedSessions": health.loaded_sessions,
            "runningTurns": health.running_turns,
            "connections": health.connections,
            "serverSeq": health.server_seq,
            "storageProblem": health.storage_problem,
            "damage": health.damage,
            "damageCount": health.damage_count,
            "allowAllSessions": health.allow_all_sessions,
            "allowAllCount": health.allow_all_count,
            "attendedSessions": health.attended_sessions,
            "attendedCount": health.attended_count,
            "watchesFolders": grove_work::can_watch(),
        });
        print_line(status)?;
    } else {
        print_line(format!("grove {} is running at {} (process {})", health.version, endpoint.http, health.pid))?;
        print_line(format!(
            "{} sessions ({} of them in memory), {} running turns, {} connections",
            health.sessions, health.loaded_sessions, health.running_turns, health.connections
        ))?;
        attended(&health.attended_sessions, health.attended_count).into_iter().try_for_each(print_line)?;
        if health.allow_all_count > 0 {
            print_line(allow_all(&health.allow_all_sessions, health.allow_all_count))?;
        }
        if !grove_work::can_watch() {
            print_line("folders are not watched on this system: other tools' sessions are scanned once a minute")?;
        }
        if let Some(problem) = &health.storage_problem {
            print_line(format!("PROBLEM: {problem}"))?;
        }
        if health.damage_count > 0 {
            print_line("damage found when the host started (`grove check` looks again):")?;
            health.damage.iter().try_for_each(|damage| print_line(format!("  {damage}")))?;
            if health.damage_count > health.damage.len() {
                print_line(format!("  and {} more, see the host's log", health.damage_count - health.damage.len()))?;
            }
        }
        print_page_url(&endpoint)?;
        if let Some(remote) = &endpoint.remote {
            print_line(format!(
                "other machines: {} ({})",
                remote.ws,
                remote.certificate.as_deref().unwrap_or("without TLS")
            ))?;
        }
    }
    Ok(())
}
