//! `grove check`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use grove_core::SessionUri;
use grove_fs::{LocalFs, SessionFs};
use grove_tree::{Log, LogIndex, repair};

use super::inspect::{find, read};
use super::{Failure, command_runtime, print_line};
use crate::cli::{CheckArgs, Common, ServeArgs};
use crate::damage_file::{self, Finding};
use crate::settings::Settings;
use crate::stores;

pub(crate) fn run(common: &Common, args: &CheckArgs) -> Result<(), Failure> {
    let Some(name) = &args.log else { return check_all(common, args) };
    let path = find(common, name)?;
    let log = read(&path)?;
    let index = log.index();
    let findings = findings(common, name, &path)?;
    let count = index.damage().len() as u64 + index.unlisted_damage();
    let repaired = if args.repair && count > 0 { Some(write_repaired(&path, &log)?) } else { None };
    if args.json {
        print_line(serde_json::json!({
            "file": path,
            "version": log.migrated_from().unwrap_or(grove_tree::VERSION),
            "entries": index.len(),
            "damage": index.damage(),
            "untold": index.unlisted_damage(),
            "findings": findings,
            "repaired": repaired,
        }))?;
    } else {
        print_line(in_words(index, &findings, repaired.as_deref()))?;
    }
    failure(&path, count + findings.len() as u64)
}

/// Checks the whole data folder.
fn check_all(common: &Common, args: &CheckArgs) -> Result<(), Failure> {
    if args.repair {
        return Err(anyhow!("--repair needs the log or the session to repair").into());
    }
    let settings = Settings::load(common, &ServeArgs::default())?;
    let data_dir = &settings.data_dir.value;
    let stores: Vec<Arc<dyn SessionFs>> =
        stores::folders(&settings).into_iter().map(|store| Arc::new(LocalFs::new(&store.folder)) as _).collect();
    let findings = command_runtime()?.block_on(grove_storage::verify_all(&data_dir.join("journal"), &stores));
    let earlier = damage_file::read(data_dir);
    if args.json {
        print_line(serde_json::json!({"folder": data_dir, "findings": findings, "foundBefore": earlier}))?;
    } else {
        let mut lines = findings.clone();
        lines.extend(earlier.iter().map(earlier_words));
        if lines.is_empty() {
            lines.push("nothing is wrong".to_owned());
        } else if !earlier.is_empty() {
            lines.push(format!("delete {} once you have read it", damage_file::path(data_dir).display()));
        }
        print_line(lines.join("\n"))?;
    }
    failure(data_dir, (findings.len() + earlier.len()) as u64)
}

/// Compares a session's logs with its `session.json`, and lists the damage that hosts found when they started.
fn findings(common: &Common, name: &str, path: &Path) -> Result<Vec<String>, Failure> {
    // A log in any other folder has no `session.json` beside it.
    let folder = path.parent().filter(|folder| folder.join("session.json").is_file());
    let id = folder.and_then(|folder| folder.file_name()?.to_str());
    let id = id.and_then(|id| SessionUri::from(format!("session:/{id}")).id());
    let (Some(folder), Some(id)) = (folder.and_then(Path::parent), id) else { return Ok(Vec::new()) };
    let mut findings = command_runtime()?.block_on(grove_storage::verify_session(&LocalFs::new(folder), &id));
    if !Path::new(name).is_file() {
        let settings = Settings::load(common, &ServeArgs::default())?;
        let of_it = format!("session {id}:");
        let earlier = damage_file::read(&settings.data_dir.value);
        findings.extend(earlier.iter().filter(|finding| finding.message.starts_with(&of_it)).map(earlier_words));
    }
    Ok(findings)
}

fn earlier_words(finding: &Finding) -> String {
    let at = i64::try_from(finding.at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    match at {
        Some(at) => format!("found at {at:.0}: {}", finding.message),
        None => format!("found earlier: {}", finding.message),
    }
}

fn failure(path: &Path, count: u64) -> Result<(), Failure> {
    match count {
        0 => Ok(()),
        1 => Err(Failure::Damaged(format!("{}: one thing is wrong", path.display()))),
        count => Err(Failure::Damaged(format!("{}: {count} things are wrong", path.display()))),
    }
}

fn in_words(index: &LogIndex, findings: &[String], repaired: Option<&Path>) -> String {
    let mut lines: Vec<String> =
        index.damage().iter().map(|damage| format!("line {}: {}", damage.line, damage.message)).collect();
    lines.extend_from_slice(findings);
    if lines.is_empty() {
        lines.push(format!("nothing is wrong: {} entries", index.len()));
    }
    if index.unlisted_damage() > 0 {
        lines.push(format!("and {} more", index.unlisted_damage()));
    }
    if let Some(repaired) = repaired {
        lines.push(format!("a repaired copy is in {}", repaired.display()));
    }
    lines.join("\n")
}

/// Writes a repaired copy beside a log, and returns its path.
fn write_repaired(path: &Path, log: &Log) -> Result<PathBuf, Failure> {
    if log.index().header().is_none() {
        return Err(anyhow!("{}: it has no damage to repair", path.display()).into());
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = repair::repaired_name(&name);
    let copy = path.with_file_name(&name);
    if copy.exists() {
        // The user may be working with it.
        return Err(anyhow!("{} exists already: move it away first", copy.display()).into());
    }
    let folder = LocalFs::new(copy.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")));
    let written = command_runtime()?.block_on(folder.write_file(&name, &repair::repair(log)));
    written.with_context(|| format!("{} cannot be written", copy.display()))?;
    Ok(copy)
}
