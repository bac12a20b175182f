//! `grove agents update`

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use anyhow::{Context, anyhow};
use grove_agents::catalog::{AgentCatalog, CATALOG_BYTES, CatalogChange, CatalogError};
use serde_json::{Value, json};

use super::tell_host;
use crate::agents::catalog_file;
use crate::agents::download::{DownloadLimits, check_sha256, download, sha256};
use crate::cli::{AgentsUpdateArgs, Common, ServeArgs};
use crate::commands::{Failure, command_runtime, print_line};
use crate::confirmation::confirm;
use crate::settings::Settings;
use crate::show::style::sanitize;

/// The time that the download of a catalog may take.
pub(crate) const DOWNLOAD_TIME: Duration = Duration::from_secs(60);

pub(super) fn run(common: &Common, args: &AgentsUpdateArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let data_dir = &settings.data_dir.value;
    let before = &settings.catalog.catalog;
    let (text, after) = match &args.from {
        Some(from) => {
            let text = read(from, args.sha256.as_deref())?;
            let catalog = AgentCatalog::parse(&text).with_context(|| format!("{from}: nothing was changed"))?;
            let built_in = AgentCatalog::built_in();
            if catalog.date < built_in.date {
                return Err(anyhow!(
                    "{from} is of {}, older than the catalog of this Grove ({}): nothing was changed; \
                     `grove agents update --built-in` uses that one",
                    catalog.date,
                    built_in.date
                )
                .into());
            }
            (Some(text), catalog)
        }
        None => (None, AgentCatalog::built_in().as_ref().clone()),
    };
    let changes = before.changes_to(&after);
    if !args.json {
        describe(&changes, before, &after)?;
    }
    if !args.dry_run {
        if !args.yes && !changes.is_empty() {
            confirm("use this catalog?", "nothing was changed")?;
        }
        match text {
            Some(text) => drop(catalog_file::replace(data_dir, &text)?),
            None => drop(catalog_file::remove(data_dir)?),
        }
    }
    let host_told = !args.dry_run && tell_host(&settings)?;
    if args.json {
        let changes: Vec<Value> = changes.iter().map(change_json).collect();
        let (before, after) = (&before.date, &after.date);
        return Ok(print_line(json!({
            "from": before, "to": after, "changes": changes, "updated": !args.dry_run, "hostTold": host_told,
        }))?);
    }
    match (args.dry_run, host_told) {
        (true, _) => print_line("nothing was changed (--dry-run)")?,
        (false, true) => print_line(format!("the catalog is of {}; the running host uses it", after.date))?,
        (false, false) => print_line(format!("the catalog is of {}", after.date))?,
    }
    Ok(())
}

/// The text of a catalog, from a file or an address.
fn read(from: &str, wanted_sha256: Option<&str>) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let found = if from.contains("://") {
        let limits = DownloadLimits { bytes: CATALOG_BYTES, time: DOWNLOAD_TIME };
        command_runtime()?.block_on(download(from, limits, &mut bytes)).map_err(anyhow::Error::from)?
    } else {
        let file = File::open(from).with_context(|| format!("{from} cannot be read"))?;
        file.take(CATALOG_BYTES + 1).read_to_end(&mut bytes).with_context(|| format!("{from} cannot be read"))?;
        if bytes.len() as u64 > CATALOG_BYTES {
            return Err(anyhow::Error::from(CatalogError::TooLarge).into());
        }
        sha256(&bytes)
    };
    if let Some(wanted) = wanted_sha256 {
        check_sha256(from, wanted, &found).map_err(anyhow::Error::from)?;
    }
    Ok(String::from_utf8(bytes).with_context(|| format!("{from} is not text"))?)
}

fn describe(changes: &[CatalogChange], before: &AgentCatalog, after: &AgentCatalog) -> Result<(), Failure> {
    if changes.is_empty() {
        return Ok(print_line(format!("no agent changes (catalogs of {} and {})", before.date, after.date))?);
    }
    for change in changes {
        match change {
            CatalogChange::Added { id, version } => {
                let version = version.as_deref().unwrap_or("no version");
                print_line(format!("added    {id} ({})", sanitize(version)))?;
            }
            CatalogChange::Removed { id } => print_line(format!("removed  {id}"))?,
            CatalogChange::Changed { id, members } => {
                print_line(format!("changed  {id}"))?;
                for (name, before, after) in members {
                    print_line(format!("  {name}: {} -> {}", shown(before), shown(after)))?;
                }
            }
        }
    }
    Ok(())
}

fn shown(value: &str) -> String {
    if value.is_empty() { "none".to_owned() } else { sanitize(value) }
}

fn change_json(change: &CatalogChange) -> Value {
    match change {
        CatalogChange::Added { id, version } => json!({ "agent": id, "change": "added", "version": version }),
        CatalogChange::Removed { id } => json!({ "agent": id, "change": "removed" }),
        CatalogChange::Changed { id, members } => {
            let members: Vec<Value> = members
                .iter()
                .map(|(name, before, after)| json!({ "name": name, "before": before, "after": after }))
                .collect();
            json!({ "agent": id, "change": "changed", "members": members })
        }
    }
}
