//! `grove gc`

use std::time::SystemTime;

use anyhow::{Context, anyhow};

use super::{Failure, command_runtime, print_line};
use crate::cli::{Common, GcArgs, ServeArgs};
use crate::data_folder::{DataFolder, DataFolderInUse};
use crate::disk_usage::bytes_shown;
use crate::garbage::{self, Garbage};
use crate::settings::Settings;

pub(crate) fn run(common: &Common, args: &GcArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let data_dir = &settings.data_dir.value;
    if !data_dir.exists() {
        return Err(anyhow!("{} does not exist: there is nothing to remove", data_dir.display()).into());
    }
    // Locked as a host does it, so that none starts meanwhile.
    let lock = match DataFolder::take(data_dir) {
        Ok(lock) => Some(lock),
        Err(error) if error.is::<DataFolderInUse>() => None,
        Err(error) => return Err(error.into()),
    };
    let now = SystemTime::now();
    let found = match &lock {
        Some(_) => command_runtime()?.block_on(garbage::find_all(&settings, now)),
        None => garbage::find_beside_host(&settings, now),
    };
    let found = found.with_context(|| format!("{} cannot be searched", data_dir.display()))?;
    let (mut removed, mut failed) = (Vec::new(), Vec::new());
    for one in found {
        match if args.dry_run { Ok(()) } else { garbage::remove(&one) } {
            Ok(()) => removed.push(one),
            Err(error) => failed.push((one, error)),
        }
    }
    let has_host = lock.is_none();
    if args.json {
        let failed: Vec<_> = failed
            .iter()
            .map(|(one, error)| serde_json::json!({"path": one.path, "error": error.to_string()}))
            .collect();
        print_line(serde_json::json!({
            "folder": data_dir,
            "dryRun": args.dry_run,
            "hostRunning": has_host,
            "bytes": removed.iter().map(|one| one.bytes).sum::<u64>(),
            "removed": removed,
            "failed": failed,
        }))?;
    } else {
        print_words(&removed, args.dry_run, has_host)?;
    }
    match failed.first() {
        None => Ok(()),
        Some((one, error)) => {
            Err(anyhow!("{} cannot be removed: {error}; {} of the findings are left", one.path.display(), failed.len())
                .into())
        }
    }
}

fn print_words(removed: &[Garbage], is_dry_run: bool, has_host: bool) -> Result<(), Failure> {
    for Garbage { path, kind, bytes } in removed {
        print_line(format!("{:>10}  {} ({})", bytes_shown(*bytes), path.display(), kind.words()))?;
    }
    let total = bytes_shown(removed.iter().map(|one| one.bytes).sum());
    print_line(match (removed.len(), is_dry_run) {
        (0, _) => "there is nothing to remove".to_owned(),
        (count, true) => format!("{count} items with {total} would be removed"),
        (count, false) => format!("{count} items with {total} are removed"),
    })?;
    if has_host {
        anstream::eprintln!("a host is running, which may use other files: `grove stop`, then `grove gc` again");
    }
    Ok(())
}
