//! The cached session lists of other hosts: a file for each in `hosts-seen` of the data folder.
//!
//! The cache is a convenience for all processes that list sessions. Failed writes are dropped, and unreadable files are
//! ignored. A writer holds the lock of the list of hosts and checks the list first, so that nothing is stored for a
//! host that was removed or has another address now.

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use grove_core::Timestamp;
use grove_host::{Clock, SystemClock};
use grove_sessions::providers::hosts::{CachedSessionList, SessionListCache};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{KnownHost, file};
use crate::data_folder;

/// The maximum size of a file. Of a longer list only the newest part is written; a larger file is not read.
pub(crate) const MAX_BYTES: usize = 4 << 20;

/// The file for one host. Clones share one state.
#[derive(Clone)]
pub(super) struct SessionCacheFile(Arc<SessionCacheInner>);

struct SessionCacheInner {
    data_dir: PathBuf,
    name: String,
    address: String,
    behind: Mutex<WriteBehind>,
}

/// Pending writes.
#[derive(Default)]
struct WriteBehind {
    /// The newest list, until it has been written; it replaces older ones.
    newest: Option<Arc<CachedSessionList>>,
    is_writing: bool,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct CachedSessions<L> {
    /// The address of the host: its name may have been given to another one.
    address: String,
    list: L,
}

/// The timestamp of a file, without its sessions.
#[derive(Deserialize)]
struct CacheTimestamp {
    at: Timestamp,
}

impl SessionCacheFile {
    pub(super) fn of(data_dir: &Path, host: &KnownHost) -> Self {
        Self(Arc::new(SessionCacheInner {
            data_dir: data_dir.to_owned(),
            name: host.name.clone(),
            address: host.address.to_string(),
            behind: Mutex::default(),
        }))
    }
}

impl SessionListCache for SessionCacheFile {
    fn newer(&self, than: Option<Timestamp>) -> Option<CachedSessionList> {
        let waiting = self.0.behind().newest.as_deref().filter(|list| Some(list.at) > than).cloned();
        let written = || {
            self.0.read::<CacheTimestamp>().filter(|timestamp| Some(timestamp.at) > than).and_then(|_| self.0.read())
        };
        waiting.or_else(written)
    }

    fn keep(&self, list: CachedSessionList) {
        {
            let mut behind = self.0.behind();
            behind.newest = Some(Arc::new(list));
            if std::mem::replace(&mut behind.is_writing, true) {
                return;
            }
        }
        let inner = self.0.clone();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || inner.write_all())),
            Err(_) => inner.write_all(),
        }
    }

    fn settle(&self) {
        self.0.settle();
    }
}

impl SessionCacheInner {
    /// Writes a pending list now, since the background task may not run any more.
    fn settle(&self) {
        let newest = self.behind().newest.clone();
        if let Some(list) = newest {
            self.write(CachedSessionList::clone(&list));
        }
    }

    fn behind(&self) -> MutexGuard<'_, WriteBehind> {
        // No panic leaves the state half changed.
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes until nothing is pending.
    fn write_all(&self) {
        loop {
            let newest = self.behind().newest.clone();
            if let Some(list) = &newest {
                self.write(CachedSessionList::clone(list));
            }
            let mut behind = self.behind();
            if behind.newest.as_ref().map(Arc::as_ptr) == newest.as_ref().map(Arc::as_ptr) {
                (behind.newest, behind.is_writing) = (None, false);
                return;
            }
        }
    }

    fn write(&self, list: CachedSessionList) {
        if let Err(error) = self.try_write(list) {
            tracing::debug!(host = %self.name, "cannot cache its sessions: {error:#}");
        }
    }

    fn try_write(&self, list: CachedSessionList) -> Result<()> {
        let at = list.at;
        let text = encode(self.address.clone(), list)?;
        file::while_known(&self.data_dir, &self.name, &self.address, || {
            // A list from the future was written under another clock.
            let is_newer =
                |stored_list: &CachedSessionList| stored_list.at >= at && stored_list.at <= SystemClock.now();
            if self.read().as_ref().is_some_and(is_newer) {
                return Ok(());
            }
            let path = path(&self.data_dir, &self.name);
            let folder = path.parent().context("a file without a folder")?;
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            data_folder::write_private(&path, &text)
        })?
        .unwrap_or(Ok(()))
    }

    fn read<L: DeserializeOwned>(&self) -> Option<L> {
        let mut text = String::new();
        let file = File::open(path(&self.data_dir, &self.name)).ok()?;
        file.take(MAX_BYTES as u64).read_to_string(&mut text).ok()?;
        let cached_sessions: CachedSessions<L> = serde_json::from_str(&text).ok()?;
        (cached_sessions.address == self.address).then_some(cached_sessions.list)
    }
}

impl fmt::Debug for SessionCacheFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCacheFile").field("name", &self.0.name).finish_non_exhaustive()
    }
}

/// Encodes a list, as much of it as fits.
fn encode(address: String, list: CachedSessionList) -> Result<String> {
    let mut cached_sessions = CachedSessions { address, list };
    loop {
        let text = serde_json::to_string(&cached_sessions)?;
        if text.len() < MAX_BYTES || cached_sessions.list.sessions.is_empty() {
            return Ok(text);
        }
        cached_sessions.list = cached_sessions.list.newer_half();
    }
}

/// Deletes the cache of a host.
pub(super) fn forget(data_dir: &Path, name: &str) {
    fs::remove_file(path(data_dir, name)).ok();
}

fn path(data_dir: &Path, name: &str) -> PathBuf {
    // The name of a host is a valid file name.
    data_dir.join("hosts-seen").join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use grove_client::Credentials;
    use grove_wire::ahp::SessionSummary;
    use grove_wire::ahp::time;

    use super::*;

    fn host(name: &str, address: &str) -> KnownHost {
        KnownHost { name: name.to_owned(), address: address.parse().unwrap(), access: Credentials::default() }
    }

    fn known(data: &Path, name: &str, address: &str) -> SessionCacheFile {
        let host = host(name, address);
        file::add(data, &host).unwrap();
        SessionCacheFile::of(data, &host)
    }

    fn session(number: u64, title: &str) -> SessionSummary {
        let at = time::text(Timestamp(number * 1000));
        SessionSummary {
            resource: format!("scripted:/{number}"),
            title: title.to_owned(),
            created_at: at.clone(),
            modified_at: at,
            ..SessionSummary::default()
        }
    }

    impl SessionCacheFile {
        fn read(&self) -> Option<CachedSessionList> {
            self.0.read()
        }

        fn write(&self, list: CachedSessionList) {
            self.0.write(list);
        }
    }

    fn list(at: u64, sessions: &[SessionSummary]) -> CachedSessionList {
        CachedSessionList::new(Timestamp(at), sessions)
    }

    #[test]
    fn what_was_seen_last_is_its_owners_alone_and_damage_is_nothing() {
        let data = tempfile::tempdir().unwrap();
        let lab = known(data.path(), "lab", "ssh://lab");
        assert_eq!(lab.read(), None);
        let newest = list(5, &[session(1, "one"), session(2, "two")]);
        assert_eq!(newest.sessions[0].title, "two", "the newest first");
        lab.write(newest.clone());
        lab.write(list(4, &[]));
        assert_eq!(lab.read(), Some(newest.clone()), "an older list does not take its place");
        assert_eq!(lab.newer(Some(Timestamp(4))), Some(newest));
        assert_eq!(lab.newer(Some(Timestamp(5))), None);
        let path = path(data.path(), "lab");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        for damage in ["", "{", r#"{"at":5,"sessions":[]}"#, r#"{"address":"ssh://lab","list":{"at":9}}"#] {
            fs::write(&path, damage).unwrap();
            assert_eq!(lab.newer(None), None, "{damage}");
        }
        lab.write(list(6, &[session(1, "one")]));
        assert_eq!(lab.read().unwrap().sessions.len(), 1, "damage is written over");
    }

    #[test]
    fn a_name_that_is_forgotten_or_given_to_another_host_shows_nothing_of_the_old_one() {
        let data = tempfile::tempdir().unwrap();
        let old = known(data.path(), "lab", "ssh://old");
        old.write(list(5, &[session(1, "one")]));
        let renamed = SessionCacheFile::of(data.path(), &host("lab", "ssh://new"));
        assert_eq!(renamed.read(), None);
        assert!(file::remove(data.path(), "lab").unwrap());
        assert!(!path(data.path(), "lab").exists());
        old.write(list(6, &[session(1, "one")]));
        assert!(!path(data.path(), "lab").exists(), "a pending write does not bring it back");
        let new = known(data.path(), "lab", "ssh://new");
        old.write(list(7, &[session(1, "one")]));
        assert_eq!(new.read(), None);
        new.write(list(1, &[]));
        assert_eq!(new.read().map(|list| list.sessions.len()), Some(0));
    }

    #[test]
    fn many_who_write_at_once_leave_a_whole_file() {
        let data = tempfile::tempdir().unwrap();
        let lab = known(data.path(), "lab", "ssh://lab");
        let sessions: Vec<_> = (0..200).map(|number| session(number, "one")).collect();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (sessions, of) = (&sessions, host("lab", "ssh://lab"));
                let file = SessionCacheFile::of(data.path(), &of);
                scope.spawn(move || (0..20).for_each(|turn| file.write(list(turn * 4 + writer, sessions))));
            }
            for _ in 0..100 {
                let read = lab.read();
                assert!(read.is_none_or(|list: CachedSessionList| list.sessions.len() == 200));
            }
        });
        assert_eq!(lab.read().map(|list| list.at), Some(Timestamp(79)), "and it is the newest");
    }

    #[test]
    fn a_list_that_is_too_large_is_kept_in_its_newer_part() {
        let data = tempfile::tempdir().unwrap();
        let lab = known(data.path(), "lab", "ssh://lab");
        let sessions: Vec<_> = (0..2_100).map(|number| session(number, "short")).collect();
        lab.write(list(1, &sessions));
        let read = lab.read().unwrap();
        assert_eq!((read.sessions.len(), read.is_whole), (2_000, false));
        let long = "x".repeat(1 << 20);
        let sessions: Vec<_> = (0..9).map(|number| session(number, &long)).collect();
        lab.write(list(2, &sessions));
        let read = lab.read().unwrap();
        assert_eq!((read.sessions.len(), read.is_whole, &*read.sessions[0].resource), (2, false, "scripted:/8"));
    }

    #[test]
    fn what_was_kept_is_written_once_it_is_settled_whoever_was_to_write_it() {
        let data = tempfile::tempdir().unwrap();
        let lab = known(data.path(), "lab", "ssh://lab");
        // The runtime may end before the background task starts.
        *lab.0.behind() = WriteBehind { newest: Some(Arc::new(list(3, &[session(1, "one")]))), is_writing: true };
        assert_eq!(lab.read(), None);
        lab.settle();
        assert_eq!(lab.read().map(|list| list.at), Some(Timestamp(3)));
    }

    #[tokio::test]
    async fn what_is_kept_is_read_again_at_once_and_the_last_of_many_is_written() {
        let data = tempfile::tempdir().unwrap();
        let lab = known(data.path(), "lab", "ssh://lab");
        for at in 1..=200 {
            lab.keep(list(at, &[session(at, "one")]));
        }
        assert!(lab.newer(None).is_some_and(|list| list.at <= Timestamp(200)));
        let started = std::time::Instant::now();
        while lab.read().map(|list: CachedSessionList| list.at) != Some(Timestamp(200)) {
            assert!(started.elapsed().as_secs() < 20, "it is not written");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}
