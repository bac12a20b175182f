//! `grove policy`

mod output;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use grove_core::Timestamp;
use grove_host::{Clock, SystemClock, resolve_links};
use grove_policy::import::{import_claude, import_copilot};
use grove_policy::replay::replay_with;
use grove_policy::suggest::suggest;
use grove_policy::{Policy, Request, RequestAction};
use serde_json::{Value, json};

use super::{Failure, print_line};
use crate::cli::{
    Common, PolicyCheckArgs, PolicyCommand, PolicyFolderArgs, PolicyImportArgs, PolicyPastArgs, PolicySubject,
    PolicyTool, ServeArgs,
};
use crate::past_requests::PastRequests;
use crate::policy_files::{PolicyFiles, RulesFile};
use crate::settings::Settings;
use crate::show::style::sanitize;

/// The milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

pub(crate) fn run(common: &Common, command: &PolicyCommand) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let files = PolicyFiles::new(&settings.config_file, &settings.data_dir.value, &settings.home);
    match command {
        PolicyCommand::Show(args) => show(&files, args),
        PolicyCommand::Check(args) => check(&files, args),
        PolicyCommand::Trust(args) => trust(&files, args),
        PolicyCommand::Import(args) => import(args),
        PolicyCommand::Test(args) => test(&settings, &files, args),
        PolicyCommand::Suggest(args) => propose(&settings, args),
    }
}

fn folder(given: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    let folder = given.cloned().unwrap_or_else(|| PathBuf::from("."));
    Ok(folder.canonicalize().with_context(|| format!("{} cannot be opened", folder.display()))?)
}

fn show(files: &PolicyFiles, args: &PolicyFolderArgs) -> Result<(), Failure> {
    let folder = folder(args.folder.as_ref())?;
    let found = files.files_for(Some(&folder));
    let policy = PolicyFiles::policy(&found);
    if args.json {
        let files: Vec<Value> = found.iter().map(file_json).collect();
        let rules: Vec<Value> = policy.rules().iter().map(output::sourced_rule_json).collect();
        return Ok(print_line(json!({"folder": folder, "files": files, "rules": rules}))?);
    }
    for file in &found {
        if let Some(problem) = &file.problem {
            anstream::eprintln!("every request is asked: {}", sanitize(problem));
        } else if !file.is_trusted {
            anstream::eprintln!("{} allows nothing until `grove policy trust` was run", file.path.display());
        }
    }
    if policy.is_empty() {
        return Ok(print_line("there are no rules: every permission request is asked")?);
    }
    output::print_rules(policy.rules())
}

fn file_json(file: &RulesFile) -> Value {
    json!({
        "path": file.path,
        "trusted": file.is_trusted,
        "hash": file.hash,
        "rules": file.rules.rules.len(),
        "problem": file.problem,
    })
}

fn check(files: &PolicyFiles, args: &PolicyCheckArgs) -> Result<(), Failure> {
    let folder = folder(args.folder.as_ref())?;
    let paths = |path: &String| vec![path.clone()];
    let mut action = match &args.subject {
        PolicySubject { read: Some(path), .. } => RequestAction::Read { paths: paths(path) },
        PolicySubject { edit: Some(path), .. } => RequestAction::Edit { paths: paths(path) },
        PolicySubject { fetch: Some(url), .. } => RequestAction::Fetch { url: url.clone() },
        PolicySubject { tool: Some(tool), .. } => RequestAction::Mcp { tool: tool.clone() },
        PolicySubject { command, .. } => RequestAction::Shell { command: command.clone().unwrap_or_default() },
    };
    resolve_links(files, Some(&folder), &mut action);
    let request = Request::new(&args.agent, action).in_directory(&folder.to_string_lossy()).with_home(&files.home());
    let decision = PolicyFiles::policy(&files.files_for(Some(&folder))).judge(&request);
    if args.json {
        let mut value = output::decision_json(&decision);
        value["request"] = output::request_json(&request);
        return Ok(print_line(value)?);
    }
    Ok(print_line(sanitize(&format!("{}: {decision}", decision.verdict)))?)
}

fn trust(files: &PolicyFiles, args: &PolicyFolderArgs) -> Result<(), Failure> {
    let file = files.trust(&folder(args.folder.as_ref())?)?;
    if args.json {
        return Ok(print_line(file_json(&file))?);
    }
    Ok(print_line(format!("{} is trusted as it is now; a change needs trust again", file.path.display()))?)
}

fn import(args: &PolicyImportArgs) -> Result<(), Failure> {
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("{} cannot be read", args.file.display()))?;
    let imported = match args.from {
        PolicyTool::Claude => import_claude(&text),
        PolicyTool::Copilot => import_copilot(&text),
    };
    let imported = imported.with_context(|| format!("{} cannot be imported", args.file.display()))?;
    if args.json {
        let rules: Vec<Value> = imported.rules.iter().map(output::rule_json).collect();
        let skipped = imported.skipped.iter().map(|skipped| json!({"entry": skipped.entry, "reason": skipped.reason}));
        return Ok(print_line(json!({"rules": rules, "skipped": skipped.collect::<Vec<_>>()}))?);
    }
    imported.rules.iter().try_for_each(output::print_rule)?;
    for skipped in &imported.skipped {
        anstream::eprintln!("not imported: {}: {}", sanitize(&skipped.entry), sanitize(&skipped.reason));
    }
    Ok(())
}

fn since(args: &PolicyPastArgs) -> Timestamp {
    Timestamp(SystemClock.now().0.saturating_sub(args.since.saturating_mul(DAY_MS)))
}

fn test(settings: &Settings, files: &PolicyFiles, args: &PolicyPastArgs) -> Result<(), Failure> {
    let since = since(args);
    let past = PastRequests::collect(settings, since);
    // The rules of a repository count for the requests in its folders.
    let mut policies: HashMap<Option<String>, Policy> = HashMap::new();
    for past in &past.requests {
        let directory = &past.request.directory;
        if !policies.contains_key(directory) {
            let found = files.files_for(directory.as_deref().map(Path::new));
            policies.insert(directory.clone(), PolicyFiles::policy(&found));
        }
    }
    let none = Policy::default();
    let report = replay_with(|request| policies.get(&request.directory).unwrap_or(&none), &past.requests);
    match args.json {
        true => Ok(print_line(output::report_json(&report, &past, since))?),
        false => output::print_report(&report, &past),
    }
}

fn propose(settings: &Settings, args: &PolicyPastArgs) -> Result<(), Failure> {
    let since = since(args);
    let past = PastRequests::collect(settings, since);
    let suggestions = suggest(&past.requests);
    if args.json {
        return Ok(print_line(output::suggestions_json(&suggestions, &past, since))?);
    }
    anstream::eprintln!("{}", output::sources_line(&past));
    for suggestion in &suggestions {
        print_line(format!("# matches {} answers", suggestion.answers))?;
        output::print_rule(&suggestion.rule)?;
    }
    if suggestions.is_empty() {
        anstream::eprintln!("no rule would have answered two of them or more");
    }
    Ok(())
}
