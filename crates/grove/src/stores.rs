//! The stores of sessions: the data folder, memory, `log-dir`, and the tables `[stores.NAME]` of `grove.toml`.
//!
//! The data folder keeps a list of all stores that were ever used (`stores.json`), so that a session in a store that is
//! no longer configured can be distinguished from one that never existed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fs, io};

use anyhow::{Context, Result, anyhow, bail};
use grove_core::{ChatId, Session, SessionId, StoreName};
use grove_fs::LocalFs;
use grove_storage::{RetiredStore, Stores, paths};
use serde::{Deserialize, Serialize};
use toml::Value;

use crate::commands::Failure;
use crate::connect::{LAST, choose};
use crate::data_folder;
use crate::settings::Settings;

/// The name of the store for `log-dir`.
const LOG_DIR: &str = "log-dir";
/// The maximum number of stores in the list; the oldest is dropped.
pub(crate) const MAX_REMEMBERED: usize = 256;

/// One table `[stores.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreConfig {
    pub(crate) folder: PathBuf,
}

/// A store in a folder of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoreFolder {
    pub(crate) name: StoreName,
    pub(crate) folder: PathBuf,
}

/// Reads the key `stores` of a file. Errors name the file, the store and the key.
pub(crate) fn read(file: &Path, stores: Option<&Value>) -> Result<BTreeMap<String, StoreConfig>> {
    let Some(stores) = stores else { return Ok(BTreeMap::new()) };
    let file = file.display();
    let stores = stores.as_table().ok_or_else(|| anyhow!("{file}: `stores` must be tables [stores.NAME]"))?;
    let one = |(name, table): (&String, &Value)| match one(table) {
        Ok(store) => Ok((name.clone(), store)),
        Err(error) => Err(anyhow!("{file}: [stores.{name}] {error}")),
    };
    stores.iter().map(one).collect()
}

fn one(table: &Value) -> Result<StoreConfig> {
    let table = table.as_table().ok_or_else(|| anyhow!("must be a table"))?;
    if let Some(unknown) = table.keys().find(|key| *key != "folder") {
        bail!("has no `{unknown}`; there is: folder");
    }
    let folder = table.get("folder").and_then(Value::as_str).filter(|folder| Path::new(folder).is_absolute());
    match folder {
        Some(folder) => Ok(StoreConfig { folder: folder.into() }),
        None => bail!("folder must be an absolute path: folder = \"/path/to/sessions\""),
    }
}

/// The stores in folders, the local one first.
pub(crate) fn folders(settings: &Settings) -> Vec<StoreFolder> {
    let local = StoreFolder { name: StoreName::default(), folder: paths::root(&settings.data_dir.value) };
    let log_dir = settings.log_dir.value.iter().map(|folder| StoreFolder {
        name: LOG_DIR.into(),
        folder: std::path::absolute(folder).unwrap_or_else(|_| folder.clone()),
    });
    let configured = settings.stores.value.iter();
    let configured = configured
        .map(|(name, store)| StoreFolder { name: StoreName::from(name.as_str()), folder: store.folder.clone() });
    std::iter::once(local).chain(log_dir).chain(configured).collect()
}

/// Opens the stores of a host, and adds them to the list. The caller has locked the data folder.
pub(crate) fn open(settings: &Settings) -> Result<Stores> {
    let data_dir = &settings.data_dir.value;
    let folders = folders(settings);
    refuse_twice(&folders)?;
    if let Some(log_dir) = folders.iter().find(|store| store.name.as_str() == LOG_DIR) {
        // The user who names a folder for logs expects it to be created.
        let made = std::fs::create_dir_all(&log_dir.folder);
        made.with_context(|| format!("{} cannot be created (log-dir)", log_dir.folder.display()))?;
    }
    let mut remembered = remembered(data_dir)?;
    let is_current = |store: &StoreFolder| folders.contains(store);
    let former = remembered
        .iter()
        .filter(|store| !is_current(store))
        .map(|store| RetiredStore { name: store.name.clone(), fs: Arc::new(LocalFs::new(&store.folder)) });
    let former = former.collect();
    let before = remembered.len();
    let new: Vec<_> = folders.iter().skip(1).filter(|store| !remembered.contains(store)).cloned().collect();
    remembered.extend(new);
    if remembered.len() > before {
        let excess = remembered.len().saturating_sub(MAX_REMEMBERED);
        remembered.drain(..excess);
        data_folder::write_stores(data_dir, &serde_json::to_string_pretty(&remembered)?)?;
    }
    let mut stores = Stores::new(Arc::new(LocalFs::inside(data_dir, paths::root(data_dir)))).with_retired(former);
    for store in folders.iter().skip(1) {
        stores = stores.with(&store.name, Arc::new(LocalFs::new(&store.folder)))?;
    }
    // `log-dir` overrides the store of new sessions; a session that names its store overrides both.
    let default = match &settings.log_dir.value {
        Some(_) => StoreName::from(LOG_DIR),
        None => StoreName::from(settings.store.value.as_str()),
    };
    let from = || format!("the store of new sessions, from {}", settings.store.source);
    stores.with_default(&default).with_context(from)
}

/// Refuses a folder with two names, since each session refers to its store by name.
fn refuse_twice(folders: &[StoreFolder]) -> Result<()> {
    let place = |store: &StoreFolder| store.folder.canonicalize().unwrap_or_else(|_| store.folder.clone());
    let mut seen: BTreeMap<PathBuf, &StoreName> = BTreeMap::new();
    for store in folders {
        if let Some(other) = seen.insert(place(store), &store.name) {
            let (folder, name) = (store.folder.display(), &store.name);
            bail!("{folder} is the folder of two stores, {other} and {name}: remove one of them from grove.toml");
        }
    }
    Ok(())
}

/// The stores that a data folder had, without the local one.
fn remembered(data_dir: &Path) -> Result<Vec<StoreFolder>> {
    match data_folder::read_stores(data_dir)? {
        Some(text) => serde_json::from_str(&text).context("stores.json in the data folder is damaged: remove it"),
        None => Ok(Vec::new()),
    }
}

/// An error of finding a session's log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FindLogError {
    #[error(
        "session {id} is in the store {store} ({folder}), which is not configured any more: \
         add [stores.{store}] to {config}, or name its file, {file}"
    )]
    NotConfigured { id: SessionId, store: StoreName, folder: String, config: String, file: String },
    #[error("no store has a log of session {0}")]
    Missing(SessionId),
}

/// The log of a session's main chat, in any store.
pub(crate) fn find_log(settings: &Settings, id: &SessionId) -> Result<PathBuf, FindLogError> {
    let log = paths::log(id, &ChatId::from(Session::MAIN_CHAT));
    let folders = folders(settings);
    if let Some(found) = folders.iter().map(|store| store.folder.join(&log)).find(|log| log.is_file()) {
        return Ok(found);
    }
    let remembered = remembered(&settings.data_dir.value).unwrap_or_default();
    let former = remembered.iter().filter(|store| !folders.contains(store));
    for StoreFolder { name, folder } in former {
        let found = folder.join(&log);
        if found.is_file() {
            return Err(FindLogError::NotConfigured {
                id: id.clone(),
                store: name.clone(),
                folder: folder.display().to_string(),
                config: settings.config_file.display().to_string(),
                file: found.display().to_string(),
            });
        }
    }
    Err(FindLogError::Missing(id.clone()))
}

/// Finds the URI of a stored session without a host: by its URI, its id, the beginning of its id, or `@last`.
pub(crate) fn choose_stored(settings: &Settings, wanted: &str) -> Result<String, Failure> {
    let stored = stored_sessions(settings)?;
    if wanted == LAST {
        let last = stored.into_iter().max_by_key(|(_, changed)| *changed);
        let none = || Failure::NotFound("there is no session yet: `grove run PROMPT` starts one".to_owned());
        return last.map(|(uri, _)| uri).ok_or_else(none);
    }
    let uris: Vec<String> = stored.into_iter().map(|(uri, _)| uri).collect();
    choose(&uris, wanted).map_err(Failure::NotFound)
}

/// The sessions with a folder, by URI, and the times of their last change.
fn stored_sessions(settings: &Settings) -> Result<Vec<(String, Option<SystemTime>)>> {
    let mut found = Vec::new();
    for StoreFolder { folder, .. } in folders(settings) {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", folder.display())),
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        // A name with a `~` is a folder that was set aside.
        for name in names.filter(|name| !name.contains('~')) {
            let log = paths::log(&SessionId::from(name.as_str()), &ChatId::from(Session::MAIN_CHAT));
            let changed = fs::metadata(folder.join(log)).and_then(|log| log.modified()).ok();
            found.push((format!("session:/{name}"), changed));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_in_the_file_is_a_folder_with_a_whole_path() {
        let read = |text: &str| read(Path::new("grove.toml"), text.parse::<toml::Table>().unwrap().get("stores"));
        let stores = read("[stores.work]\nfolder = '/srv/work'").unwrap();
        assert_eq!(stores["work"], StoreConfig { folder: "/srv/work".into() });
        for bad in [
            "stores = 1",
            "[stores]\nx = 1",
            "[stores.x]",
            "[stores.x]\nfolder = 'a'",
            "[stores.x]\nfolder = '/a'\nb = 1",
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.starts_with("grove.toml: "), "{error}");
        }
    }

    #[test]
    fn a_folder_has_one_name() {
        let store = |name: &str, folder: &str| StoreFolder { name: name.into(), folder: folder.into() };
        refuse_twice(&[store("a", "/a"), store("b", "/b")]).unwrap();
        let error = refuse_twice(&[store("a", "/a"), store("b", "/a")]).unwrap_err().to_string();
        assert!(error.contains("two stores, a and b"), "{error}");
    }
}
