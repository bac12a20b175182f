//! `hosts.toml`: a table for each host. It is written atomically, and only its owner can read it.
//!
//! Users edit it by hand. An invalid table affects only its own host, and is kept when others change.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use grove_client::{Credentials, HostAddress};
use serde::{Deserialize, Serialize};

use super::{HostsError, KnownHost, KnownHosts, UnusableHost, check_name, session_cache};
use crate::data_folder;
use crate::secret_files::{self, SecretError};

/// The identity of a file, to detect changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    /// Every change replaces the file, and so its inode.
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// The maximum size of the file, and the maximum number of hosts.
const MAX_BYTES: u64 = 1 << 20;
pub(crate) const MAX_HOSTS: usize = 256;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostTable {
    address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pin: Option<String>,
}

/// The tables by name, valid or not.
type HostTables = BTreeMap<String, toml::Value>;

/// The identity of the file; `None` if it does not exist.
pub(super) fn mark(data_dir: &Path) -> Option<FileStamp> {
    let found = fs::metadata(path(data_dir)).ok()?;
    Some(FileStamp { inode: found.ino(), size: found.size(), modified: (found.mtime(), found.mtime_nsec()) })
}

pub(super) fn read(data_dir: &Path) -> Result<KnownHosts, HostsError> {
    let path = path(data_dir);
    let mut known = KnownHosts::default();
    for (name, table) in read_all(&path)? {
        match usable(&path, &name, table) {
            Ok(host) => known.hosts.push(host),
            Err(error) => known.unusable.push(UnusableHost { name, error }),
        }
    }
    Ok(known)
}

fn usable(path: &Path, name: &str, table: toml::Value) -> Result<KnownHost, HostsError> {
    let place = || (path.to_owned(), name.to_owned());
    check_name(name)?;
    let host_table: HostTable = table.try_into().map_err(|error: toml::de::Error| {
        let (path, name) = place();
        HostsError::Table { path, name, why: error.message().to_owned() }
    })?;
    let address = host_table.address.parse().map_err(|error| {
        let (path, name) = place();
        HostsError::Address { path, name, error }
    })?;
    let pin = host_table.pin.map(|pin| pin.parse()).transpose().map_err(|error| {
        let (path, name) = place();
        HostsError::Pin { path, name, error }
    })?;
    Ok(KnownHost { name: name.to_owned(), address, access: Credentials { token: host_table.token, pin, ssh: None } })
}

/// Adds a host with an unused name.
pub(crate) fn add(data_dir: &Path, host: &KnownHost) -> Result<(), HostsError> {
    check_name(&host.name)?;
    change(data_dir, |all| {
        if all.contains_key(&host.name) {
            return Err(HostsError::Known(host.name.clone()));
        }
        if all.len() >= MAX_HOSTS {
            return Err(HostsError::TooMany(MAX_HOSTS));
        }
        let host_table = HostTable {
            address: host.address.to_string(),
            token: host.access.token.clone(),
            pin: host.access.pin.map(|pin| pin.to_string()),
        };
        all.insert(host.name.clone(), toml::Value::try_from(host_table)?);
        Ok(true)
    })?;
    Ok(())
}

/// Removes a host and its cached sessions. Returns whether it existed.
pub(crate) fn remove(data_dir: &Path, name: &str) -> Result<bool, HostsError> {
    if !path(data_dir).exists() {
        return Ok(false);
    }
    change(data_dir, |all| {
        let is_known = all.remove(name).is_some();
        if is_known {
            session_cache::forget(data_dir, name);
        }
        Ok(is_known)
    })
}

/// Runs a function while the file is locked, if it has a host of this name at this address.
pub(super) fn while_known<T>(
    data_dir: &Path,
    name: &str,
    address: &str,
    act: impl FnOnce() -> T,
) -> Result<Option<T>, HostsError> {
    let path = path(data_dir);
    if !path.exists() {
        return Ok(None);
    }
    let _lock = lock(data_dir)?;
    let all = read_all(&path)?;
    // An address has several spellings.
    let is_there = |table: &toml::Value| {
        let address_text = table.get("address").and_then(toml::Value::as_str);
        address_text.is_some_and(|text| text.parse::<HostAddress>().is_ok_and(|known| known.to_string() == address))
    };
    Ok(all.get(name).is_some_and(is_there).then(act))
}

/// Changes the file if `edit` returns `true`. Concurrent changes wait for each other.
fn change(data_dir: &Path, edit: impl FnOnce(&mut HostTables) -> Result<bool, HostsError>) -> Result<bool, HostsError> {
    let path = path(data_dir);
    let failed = |what| {
        let path = path.clone();
        move |error| HostsError::File { path, what, error }
    };
    data_folder::make(data_dir).map_err(|error| failed("made")(std::io::Error::other(error)))?;
    let lock = lock(data_dir)?;
    let mut all = read_all(&path)?;
    let changed = edit(&mut all)?;
    if changed {
        let text = toml::to_string(&all)?;
        data_folder::write_private(&path, &text).map_err(|error| failed("written")(std::io::Error::other(error)))?;
    }
    drop(lock);
    Ok(changed)
}

/// The lock for everything that changes the file, or relies on it not to change.
fn lock(data_dir: &Path) -> Result<File, HostsError> {
    let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock_path(data_dir));
    let lock = lock.and_then(|lock| lock.lock().map(|()| lock));
    lock.map_err(|error| HostsError::File { path: path(data_dir), what: "locked", error })
}

fn read_all(path: &Path) -> Result<HostTables, HostsError> {
    let failed = |error| HostsError::File { path: path.to_owned(), what: "read", error };
    let opened = secret_files::open(path).map_err(|error| match error {
        SecretError::Io { error, .. } => failed(error),
        refused => failed(std::io::Error::other(refused)),
    })?;
    let Some((file, was_readable)) = opened else { return Ok(HostTables::new()) };
    if was_readable {
        anstream::eprintln!(
            "grove: others could read {}, which holds tokens: it is private now. Users who read them can still use them: \
             remove `token` in the data folders of those hosts, and start them again, for new ones",
            path.display()
        );
    }
    let mut text = String::new();
    let length = file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if u64::try_from(length).is_ok_and(|length| length > MAX_BYTES) {
        return Err(HostsError::TooLarge { path: path.to_owned(), most: MAX_BYTES });
    }
    toml::from_str(&text).map_err(|error| HostsError::Damaged { path: path.to_owned(), error })
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("hosts.toml")
}

fn lock_path(data_dir: &Path) -> PathBuf {
    data_dir.join("hosts.lock")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn host(name: &str, address: &str, token: Option<&str>) -> KnownHost {
        let access = Credentials { token: token.map(str::to_owned), ..Credentials::default() };
        KnownHost { name: name.to_owned(), address: address.parse().unwrap(), access }
    }

    #[test]
    fn what_is_added_is_read_again_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        assert!(read(&data).unwrap().hosts.is_empty());
        assert!(!remove(&data, "lab").unwrap());
        assert!(!data.exists(), "asking leaves nothing behind");
        add(&data, &host("lab", "wss://lab:7443/", Some("secret"))).unwrap();
        add(&data, &host("dev", "ssh://me@dev/srv", None)).unwrap();
        assert!(matches!(add(&data, &host("lab", "ssh://x", None)), Err(HostsError::Known(_))));
        let mode = |name: &str| fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("hosts.toml"), mode("hosts.lock")), (0o600, 0o600));
        let all = read(&data).unwrap().hosts;
        let shown: Vec<_> = all.iter().map(|host| (host.name.as_str(), host.address.to_string())).collect();
        assert_eq!(shown, [("dev", "ssh://me@dev/srv".to_owned()), ("lab", "wss://lab:7443/".to_owned())]);
        assert_eq!(all[1].access.token.as_deref(), Some("secret"));
        assert!(!format!("{all:?}").contains("secret"));
        assert!(remove(&data, "lab").unwrap() && !remove(&data, "lab").unwrap());
        assert_eq!(read(&data).unwrap().hosts.len(), 1);
    }

    #[test]
    fn a_file_that_others_can_read_is_made_private() {
        let folder = tempfile::tempdir().unwrap();
        add(folder.path(), &host("lab", "ws://lab/", Some("secret"))).unwrap();
        let path = path(folder.path());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read(folder.path()).unwrap().hosts.len(), 1);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_file_is_said_to_be_one_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        for text in ["nonsense", "[lab]\naddress = 'ws://x'\n[lab]", "[lab"] {
            data_folder::write_private(&path, text).unwrap();
            assert!(matches!(read(folder.path()), Err(HostsError::Damaged { .. })), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        data_folder::write_private(&path, &"#".repeat((1 << 20) + 1)).unwrap();
        assert!(matches!(read(folder.path()), Err(HostsError::TooLarge { .. })));
    }

    #[test]
    fn a_row_that_cannot_be_used_costs_that_row_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let rows = [
            ("lab", "lab = 5"),
            ("lab", "[lab]\ntoken = 't'"),
            ("lab", "[lab]\naddress = 'x'"),
            ("lab", "[lab]\naddress = 'ws://x'\npin = 'x'"),
            ("lab", "[lab]\naddress = 'ws://x'\nadress = 'ws://y'"),
            ("Lab", "[Lab]\naddress = 'ws://x'"),
        ];
        for (name, bad) in rows {
            let text = format!("{bad}\n[dev]\naddress = 'ssh://dev'\n[zoo]\naddress = 'ssh://zoo'\n");
            data_folder::write_private(&path(folder.path()), &text).unwrap();
            let known = read(folder.path()).unwrap();
            let names: Vec<&str> = known.hosts.iter().map(|host| host.name.as_str()).collect();
            assert_eq!(names, ["dev", "zoo"], "{bad}");
            let [unusable] = known.unusable.as_slice() else { panic!("{bad}: {:?}", known.unusable) };
            assert_eq!(unusable.name, name, "{bad}");
            assert!(unusable.error.to_string().contains(name), "{}", unusable.error);
            let before = read_all(&path(folder.path())).unwrap();
            assert!(remove(folder.path(), "zoo").unwrap());
            add(folder.path(), &host("new", "ssh://new", None)).unwrap();
            assert_eq!(read_all(&path(folder.path())).unwrap()[name], before[name], "{bad}");
            assert!(matches!(add(folder.path(), &host("new", "ssh://x", None)), Err(HostsError::Known(_))));
            assert!(remove(folder.path(), name).unwrap(), "it can be removed");
            assert!(read(folder.path()).unwrap().unusable.is_empty());
        }
    }

    #[test]
    fn no_more_hosts_are_kept_than_can_be_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MAX_HOSTS {
            add(folder.path(), &host(&format!("h{number}"), "ssh://x", None)).unwrap();
        }
        assert!(matches!(add(folder.path(), &host("more", "ssh://x", None)), Err(HostsError::TooMany(_))));
    }
}
