//! `grove check`

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use grove_fs::{LocalFs, SessionFs};
use grove_tree::{Index, Log, repair};

use super::inspect::{find, read};
use super::{Failure, errand, say};
use crate::cli::{CheckArgs, Common};

pub(crate) fn run(common: &Common, args: &CheckArgs) -> Result<(), Failure> {
    let path = find(common, &args.log)?;
    let log = read(&path)?;
    let index = log.index();
    let count = index.damage().len() as u64 + index.untold_damage();
    let repaired = if args.repair && count > 0 { Some(write_repaired(&path, &log)?) } else { None };
    if args.json {
        say(serde_json::json!({
            "file": path,
            "version": log.migrated_from().unwrap_or(grove_tree::VERSION),
            "entries": index.len(),
            "damage": index.damage(),
            "untold": index.untold_damage(),
            "repaired": repaired,
        }))?;
    } else {
        say(in_words(index, repaired.as_deref()))?;
    }
    match count {
        0 => Ok(()),
        1 => Err(Failure::Damaged(format!("{}: one thing is wrong", path.display()))),
        count => Err(Failure::Damaged(format!("{}: {count} things are wrong", path.display()))),
    }
}

fn in_words(index: &Index, repaired: Option<&Path>) -> String {
    let mut lines: Vec<String> =
        index.damage().iter().map(|damage| format!("line {}: {}", damage.line, damage.message)).collect();
    if lines.is_empty() {
        lines.push(format!("nothing is wrong: {} entries", index.len()));
    }
    if index.untold_damage() > 0 {
        lines.push(format!("and {} more", index.untold_damage()));
    }
    if let Some(repaired) = repaired {
        lines.push(format!("a mended copy is in {}", repaired.display()));
    }
    lines.join("\n")
}

/// Writes a mended copy beside a log and gives its path.
fn write_repaired(path: &Path, log: &Log) -> Result<PathBuf, Failure> {
    if log.index().header().is_none() {
        return Err(anyhow!("{}: there is nothing in it to mend", path.display()).into());
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = repair::repaired_name(&name);
    let copy = path.with_file_name(&name);
    if copy.exists() {
        // Somebody may be working with it.
        return Err(anyhow!("{} is there already: move it away first", copy.display()).into());
    }
    let folder = LocalFs::new(copy.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")));
    let written = errand()?.block_on(folder.write_file(&name, &repair::repair(log)));
    written.with_context(|| format!("{} cannot be written", copy.display()))?;
    Ok(copy)
}
