//! `grove policy`

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use grove_agents::call_subject;
use grove_core::{CancelReason, Confirmation, ConfirmationReason, Part, ToolCall, ToolCallStatus};
use grove_policy::import::{import_claude, import_copilot};
use grove_policy::replay::{Answer, PastRequest, replay};
use grove_policy::suggest::suggest;
use grove_policy::{Request, RequestAction, Rule};
use serde_json::Value;

use super::{Failure, print_line};
use crate::cli::{Common, PolicyCommand, PolicyImportArgs, PolicyTool, ServeArgs};
use crate::policy_files::PolicyFiles;
use crate::settings::Settings;

/// The maximum number of past requests that are judged, the newest sessions first.
const MAX_REQUESTS: usize = 100_000;
/// The largest log that is read.
const MAX_LOG_BYTES: u64 = 256 << 20;

pub(crate) fn run(common: &Common, command: &PolicyCommand) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let files = PolicyFiles::new(&settings.config_file, &settings.data_dir.value, &settings.home);
    match command {
        PolicyCommand::Show(args) => show(&files, &folder(args.folder.as_ref())?),
        PolicyCommand::Check(args) => {
            let folder = folder(args.folder.as_ref())?;
            let action = RequestAction::Shell { command: args.command.clone() };
            let request = Request::new(&args.agent, action).in_directory(&folder.to_string_lossy());
            let decision =
                PolicyFiles::policy(&files.files_for(Some(&folder))).judge(&request.with_home(&files.home()));
            Ok(print_line(format!("{}: {decision}", decision.verdict))?)
        }
        PolicyCommand::Trust(args) => {
            let file = files.trust(&folder(args.folder.as_ref())?)?;
            Ok(print_line(format!("{} is trusted as it is now; a change needs trust again", file.path.display()))?)
        }
        PolicyCommand::Import(args) => import(args),
        PolicyCommand::Test(args) => {
            let past = past_requests(&settings.data_dir.value, args.since, &files.home());
            test(&files, &past)
        }
        PolicyCommand::Suggest(args) => {
            let past = past_requests(&settings.data_dir.value, args.since, &files.home());
            for suggestion in suggest(&past) {
                print_line(format!("# matches {} answers", suggestion.answers))?;
                print_rule(&suggestion.rule)?;
            }
            Ok(())
        }
    }
}

fn folder(given: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    let folder = given.cloned().unwrap_or_else(|| PathBuf::from("."));
    Ok(folder.canonicalize().with_context(|| format!("{} cannot be opened", folder.display()))?)
}

fn print_rule(rule: &Rule) -> Result<(), Failure> {
    for line in rule.to_toml("policy.rules").lines() {
        print_line(line)?;
    }
    Ok(print_line("")?)
}

fn show(files: &PolicyFiles, folder: &Path) -> Result<(), Failure> {
    let found = files.files_for(Some(folder));
    for file in &found {
        if let Some(problem) = &file.problem {
            anstream::eprintln!("every request is asked: {problem}");
        } else if !file.is_trusted {
            anstream::eprintln!("{} allows nothing until `grove policy trust` was run", file.path.display());
        }
    }
    let policy = PolicyFiles::policy(&found);
    for rule in policy.rules() {
        print_line(format!("{}  ({})", rule.rule, rule.origin))?;
    }
    if policy.is_empty() {
        print_line("there are no rules: every permission request is asked")?;
    }
    Ok(())
}

fn import(args: &PolicyImportArgs) -> Result<(), Failure> {
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("{} cannot be read", args.file.display()))?;
    let imported = match args.from {
        PolicyTool::Claude => import_claude(&text),
        PolicyTool::Copilot => import_copilot(&text),
    };
    let imported = imported.with_context(|| format!("{} cannot be imported", args.file.display()))?;
    imported.rules.iter().try_for_each(print_rule)?;
    for skipped in &imported.skipped {
        anstream::eprintln!("not imported: {}: {}", crate::show::style::sanitize(&skipped.entry), skipped.reason);
    }
    Ok(())
}

fn test(files: &PolicyFiles, past: &[PastRequest]) -> Result<(), Failure> {
    let policy = PolicyFiles::policy(&files.files_for(None));
    let report = replay(&policy, past);
    print_line(format!(
        "{} requests: {} allowed, {} denied, {} asked; {} as the person answered, {} differently",
        report.requests,
        report.allowed,
        report.denied,
        report.asked,
        report.agreed,
        report.differences.len()
    ))?;
    for difference in &report.differences {
        let answer = if difference.answer == Answer::Approved { "approved" } else { "denied" };
        let what = past.get(difference.index).map(|past| format!("{:?}", past.request.action)).unwrap_or_default();
        print_line(format!("a person {answer} {what}, but: {}", difference.decision))?;
    }
    Ok(())
}

/// The permission requests that people answered in Grove's sessions, from their logs.
fn past_requests(data_dir: &Path, days: u64, home: &str) -> Vec<PastRequest> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let since = now.as_secs().saturating_sub(days.saturating_mul(86_400)).saturating_mul(1_000);
    let folders = std::fs::read_dir(data_dir.join("session-state")).into_iter().flatten().flatten();
    let mut sessions: Vec<(u64, PathBuf, Value)> = folders
        .filter_map(|entry| {
            let text = std::fs::read_to_string(entry.path().join("session.json")).ok()?;
            let session: Value = serde_json::from_str(&text).ok()?;
            let modified = session.get("modifiedAt")?.as_u64()?;
            (modified >= since).then(|| (modified, entry.path(), session))
        })
        .collect();
    sessions.sort_by_key(|(modified, ..)| std::cmp::Reverse(*modified));
    let mut past = Vec::new();
    for (_, folder, session) in sessions {
        let agent = session.get("provider").and_then(Value::as_str).unwrap_or_default();
        let uri = session.get("workingDirectories").and_then(|folders| folders.get(0)?.as_str());
        let directory = uri.and_then(|uri| grove_work::local_path(uri).ok());
        let directory = directory.map(|path| path.to_string_lossy().into_owned());
        let log = folder.join("events.jsonl");
        if std::fs::metadata(&log).is_ok_and(|metadata| metadata.len() > MAX_LOG_BYTES) {
            continue;
        }
        let Ok(bytes) = std::fs::read(&log) else { continue };
        let mut next = 0;
        let mut new_id = || {
            next += 1;
            format!("{next:08x}")
        };
        let Ok(log) = grove_tree::open(bytes, &mut new_id) else { continue };
        for turn in grove_tree::turns::turns(&log) {
            for part in &turn.parts {
                let Part::ToolCall(call) = part else { continue };
                let Some(answer) = person_answer(call) else { continue };
                if past.len() >= MAX_REQUESTS {
                    return past;
                }
                let action = call_subject(agent, call, None, directory.as_deref());
                let request = Request {
                    agent: agent.to_owned(),
                    action,
                    directory: directory.clone(),
                    home: Some(home.to_owned()),
                };
                past.push(PastRequest { request, answer: Some(answer) });
            }
        }
    }
    past
}

/// The answer that a person gave to a call's permission request.
fn person_answer(call: &ToolCall) -> Option<Answer> {
    match (&call.status, &call.confirmed) {
        (ToolCallStatus::Cancelled(cancellation), _) if cancellation.reason == CancelReason::Denied => {
            Some(Answer::Denied)
        }
        (_, Some(Confirmation { by: ConfirmationReason::Person, .. })) => Some(Answer::Approved),
        _ => None,
    }
}
