//! The register of client-stored sessions on this machine's disk: ids, times and counters.
//!
//! A storage client cannot list its sessions, so lists, the last id and unwritten forks are answered from here. Each
//! record is a line, appended; a later one about the same session replaces its members. When the file is opened it is
//! rewritten without outdated lines. A line that cannot be read is left out: a killed host leaves half of one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_core::{LogPart, LogScope, SessionId, StoreName, Timestamp};
use grove_fs::{FsError, SessionFs};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex as AsyncMutex;

/// The most sessions that are remembered. Past it the longest untouched are forgotten when the file is opened.
pub const MAX_REGISTERED: usize = 100_000;
/// The longest line that is read.
const MAX_LINE_BYTES: usize = 4 << 10;
/// The largest file that is read: several times the size of that many sessions.
const MAX_FILE_BYTES: usize = 256 << 20;

/// One session of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientStorageRow {
    pub id: SessionId,
    pub created: Timestamp,
    pub modified: Timestamp,
    /// The number of turns that have ended in it.
    pub turns: u64,
    /// The session that it was forked from, if it was.
    pub forked_from: Option<SessionId>,
}

/// A fork that is written when it is first resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkRecord {
    pub source: SessionId,
    pub at: Timestamp,
    /// The part of the source's log that is forked, in bytes.
    pub boundary: u64,
    /// The last entry of the fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<String>,
    /// The time of the entry before which it ends, if it ends before another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub branch: bool,
    /// Says whether the storage client has its files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub written: bool,
}

impl ForkRecord {
    pub fn log(&self) -> LogPart {
        let extent = if self.branch { LogScope::Branch } else { LogScope::All };
        LogPart { boundary: self.boundary, extent, leaf: self.leaf.clone(), until: self.until }
    }
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegisterLine {
    store: StoreName,
    id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fork: Option<ForkRecord>,
    /// The session is deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    gone: bool,
}

impl RegisterLine {
    fn gone(store: &StoreName, id: &SessionId) -> Self {
        let (store, id) = (store.clone(), id.clone());
        Self { store, id, created: None, modified: None, turns: None, fork: None, gone: true }
    }
}

/// The register's facts about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RegisterEntry {
    created: Timestamp,
    modified: Timestamp,
    turns: u64,
    fork: Option<ForkRecord>,
}

type RegisterRows = BTreeMap<(StoreName, SessionId), RegisterEntry>;

/// The register of a host. Clones share it.
#[derive(Clone, Debug)]
pub struct ClientStorageRegister(Arc<RegisterInner>);

#[derive(Debug)]
struct RegisterInner {
    rows: Mutex<RegisterRows>,
    /// The damage that was found when it was opened, in words.
    damage: Vec<String>,
    file: Option<RegisterFile>,
    /// Lines are written in the order of the changes.
    writing: AsyncMutex<()>,
}

#[derive(Debug)]
struct RegisterFile {
    fs: Arc<dyn SessionFs>,
    path: String,
}

impl Default for ClientStorageRegister {
    /// A register that is gone with the host.
    fn default() -> Self {
        let damage = Vec::new();
        Self(Arc::new(RegisterInner { rows: Mutex::default(), damage, file: None, writing: AsyncMutex::default() }))
    }
}

impl ClientStorageRegister {
    /// The register in a file, which is created with the first session. It is rewritten if that makes it smaller.
    pub async fn open(fs: Arc<dyn SessionFs>, path: &str) -> Result<Self, FsError> {
        let bytes = match fs.read_range(path, 0, MAX_FILE_BYTES).await {
            Err(FsError::NotFound { .. }) => Vec::new(),
            read => read?,
        };
        let (rows, damage) = read(&bytes);
        if !damage.is_empty() {
            // It is written again without what is wrong with it.
            fs.write_file(&format!("{path}.damaged"), &bytes).await?;
        }
        let compact: Vec<u8> = rows.iter().flat_map(|((store, id), known)| line_of(store, id, known)).collect();
        if compact != bytes {
            fs.write_file(path, &compact).await?;
        }
        let damage = damage.into_iter().map(|words| format!("{path}: {words}")).collect();
        let file = Some(RegisterFile { fs, path: path.to_owned() });
        Ok(Self(Arc::new(RegisterInner { rows: Mutex::new(rows), damage, file, writing: AsyncMutex::default() })))
    }

    /// The damage that was found when it was opened, in words.
    pub fn damage(&self) -> &[String] {
        &self.0.damage
    }

    /// The sessions of a store, last touched first.
    pub fn rows(&self, store: &StoreName) -> Vec<ClientStorageRow> {
        let rows = self.known();
        let mine = rows.iter().filter(|((of, _), _)| of == store);
        let mut mine: Vec<ClientStorageRow> = mine
            .map(|((_, id), known)| ClientStorageRow {
                id: id.clone(),
                created: known.created,
                modified: known.modified,
                turns: known.turns,
                forked_from: known.fork.as_ref().map(|fork| fork.source.clone()),
            })
            .collect();
        mine.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
        mine
    }

    pub fn is_known(&self, store: &StoreName, id: &SessionId) -> bool {
        self.known().contains_key(&(store.clone(), id.clone()))
    }

    /// A fork of which nothing is written yet.
    pub fn unwritten_fork(&self, store: &StoreName, id: &SessionId) -> Option<ForkRecord> {
        let fork = self.known().get(&(store.clone(), id.clone()))?.fork.clone();
        fork.filter(|fork| !fork.written)
    }

    /// Notes a session, or that it was touched: this many turns of it have ended since it was last noted.
    pub async fn note(
        &self,
        store: &StoreName,
        id: &SessionId,
        (created, modified): (Timestamp, Timestamp),
        more_turns: u64,
    ) -> Result<(), FsError> {
        self.change(store, id, |known| {
            let known = known.get_or_insert(RegisterEntry { created, modified, turns: 0, fork: None });
            known.modified = modified;
            known.turns = known.turns.saturating_add(more_turns);
        })
        .await
    }

    /// Notes a fork that is to be written when it is resumed.
    pub async fn note_fork(&self, store: &StoreName, id: &SessionId, fork: ForkRecord) -> Result<(), FsError> {
        self.change(store, id, |known| {
            let turns = known.as_ref().map_or(0, |known| known.turns);
            *known = Some(RegisterEntry { created: fork.at, modified: fork.at, turns, fork: Some(fork) });
        })
        .await
    }

    /// Notes that the storage client has a fork's files, with this many turns.
    pub async fn fork_written(&self, store: &StoreName, id: &SessionId, turns: u64) -> Result<(), FsError> {
        self.change(store, id, |known| {
            if let Some(known) = known {
                known.turns = turns;
                if let Some(fork) = &mut known.fork {
                    fork.written = true;
                }
            }
        })
        .await
    }

    /// Forgets a session.
    pub async fn forget(&self, store: &StoreName, id: &SessionId) -> Result<(), FsError> {
        self.change(store, id, |known| *known = None).await
    }

    /// Changes the facts about a session, and writes them.
    async fn change(
        &self,
        store: &StoreName,
        id: &SessionId,
        change: impl FnOnce(&mut Option<RegisterEntry>) + Send,
    ) -> Result<(), FsError> {
        let _writing = self.0.writing.lock().await;
        let line = {
            let mut rows = self.known();
            let key = (store.clone(), id.clone());
            let before = rows.get(&key).cloned();
            let mut known = before.clone();
            change(&mut known);
            if known == before {
                return Ok(());
            }
            match known {
                Some(known) => {
                    let line = line_of(store, id, &known);
                    rows.insert(key, known);
                    line
                }
                None => {
                    rows.remove(&key);
                    written(&RegisterLine::gone(store, id))
                }
            }
        };
        let Some(RegisterFile { fs, path }) = &self.0.file else { return Ok(()) };
        fs.append_file(path, &line).await?;
        fs.sync(path).await
    }

    // No step under this lock can panic half way.
    fn known(&self) -> MutexGuard<'_, RegisterRows> {
        self.0.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line_of(store: &StoreName, id: &SessionId, known: &RegisterEntry) -> Vec<u8> {
    written(&RegisterLine {
        store: store.clone(),
        id: id.clone(),
        created: Some(known.created),
        modified: Some(known.modified),
        turns: Some(known.turns),
        fork: known.fork.clone(),
        gone: false,
    })
}

fn written(line: &RegisterLine) -> Vec<u8> {
    // Plain data with string keys always serializes.
    let mut bytes = serde_json::to_vec(line).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// The largest number that is believed: no session has more turns, and no log more bytes.
const MOST_NUMBER: u64 = 1 << 53;

impl RegisterEntry {
    /// Replaces numbers that nothing comes to, and names them.
    fn with_plausible_numbers(mut self) -> (Self, Vec<&'static str>) {
        let mut replaced = Vec::new();
        let at = self.fork.as_ref().map(|fork| fork.at);
        let oldest = [Some(self.created), Some(self.modified), at].into_iter().flatten();
        let known = oldest.filter(|time| time.is_plausible()).min().unwrap_or_default();
        let fork = self.fork.as_mut().map(|fork| ("fork.at", &mut fork.at));
        let times = [("created", &mut self.created), ("modified", &mut self.modified)];
        for (name, time) in times.into_iter().chain(fork).filter(|(_, time)| !time.is_plausible()) {
            *time = known;
            replaced.push(name);
        }
        if self.turns > MOST_NUMBER {
            self.turns = 0;
            replaced.push("turns");
        }
        if self.fork.as_ref().and_then(|fork| fork.until).is_some_and(|until| !until.is_plausible())
            && let Some(fork) = &mut self.fork
        {
            fork.until = None;
            replaced.push("fork.until");
        }
        (self, replaced)
    }

    /// Returns false for an unwritten fork whose boundary is nonsense: nobody knows where it ends.
    fn has_boundary(&self) -> bool {
        self.fork.as_ref().is_none_or(|fork| fork.written || fork.boundary <= MOST_NUMBER)
    }
}

/// Reads the lines of a register, whatever is among them. Gives the rows, and the damage in words.
fn read(bytes: &[u8]) -> (RegisterRows, Vec<String>) {
    let mut rows = RegisterRows::new();
    let mut damage = Vec::new();
    let mut unreadable = 0u64;
    for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| *line != b"\n") {
        let is_whole = line.ends_with(b"\n");
        let read = (line.len() <= MAX_LINE_BYTES).then(|| serde_json::from_slice::<RegisterLine>(line).ok()).flatten();
        let Some(line) = read else {
            // Half a line at the end is what a host leaves that was killed.
            unreadable += u64::from(is_whole);
            continue;
        };
        let key = (line.store, line.id);
        if line.gone {
            rows.remove(&key);
            continue;
        }
        let (Some(created), Some(modified)) = (line.created, line.modified) else { continue };
        let known = RegisterEntry { created, modified, turns: line.turns.unwrap_or(0), fork: line.fork };
        if !known.has_boundary() {
            damage.push(format!(
                "session {} of store {} is a fork whose boundary no log comes to: it is forgotten",
                key.1, key.0
            ));
            continue;
        }
        let (known, replaced) = known.with_plausible_numbers();
        if !replaced.is_empty() {
            let names = replaced.join(", ");
            damage.push(format!("session {} of store {} has numbers that nothing comes to ({names})", key.1, key.0));
        }
        rows.insert(key, known);
    }
    if unreadable > 0 {
        damage.push(format!("{unreadable} lines cannot be read"));
    }
    if rows.len() > MAX_REGISTERED {
        let mut by_time: Vec<_> = rows.iter().map(|(key, known)| (known.modified, key.clone())).collect();
        by_time.sort_unstable();
        for (_, key) in by_time.into_iter().take(rows.len() - MAX_REGISTERED) {
            rows.remove(&key);
        }
    }
    (rows, damage)
}

#[cfg(test)]
mod tests {
    use grove_fs::MemoryFs;

    use super::*;

    fn fork() -> ForkRecord {
        let (boundary, leaf) = (12, Some("e1".to_owned()));
        let source = "a".into();
        ForkRecord { source, at: Timestamp(5), boundary, leaf, until: None, branch: true, written: false }
    }

    #[tokio::test]
    async fn what_is_noted_is_there_when_it_is_opened_again() {
        let fs: Arc<dyn SessionFs> = Arc::new(MemoryFs::default());
        let open = async || ClientStorageRegister::open(fs.clone(), "entrusted.jsonl").await.unwrap();
        let (one, two) = (StoreName::from("one"), StoreName::from("two"));
        let register = open().await;
        let times = |modified| (Timestamp(1), Timestamp(modified));
        register.note(&one, &"a".into(), times(1), 0).await.unwrap();
        register.note(&one, &"a".into(), times(9), 2).await.unwrap();
        register.note(&two, &"a".into(), times(2), 0).await.unwrap();
        register.note(&one, &"gone".into(), times(3), 0).await.unwrap();
        register.forget(&one, &"gone".into()).await.unwrap();
        register.note_fork(&one, &"b".into(), fork()).await.unwrap();
        let lines = |bytes: Vec<u8>| bytes.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines(fs.read_file("entrusted.jsonl").await.unwrap()), 6);
        let again = open().await;
        assert_eq!(lines(fs.read_file("entrusted.jsonl").await.unwrap()), 3, "what is not true any more is left out");
        assert_eq!(again.rows(&one), register.rows(&one));
        let ids: Vec<_> = again.rows(&one).into_iter().map(|row| (row.id.to_string(), row.turns)).collect();
        assert_eq!(ids, [("a".to_owned(), 2), ("b".to_owned(), 0)]);
        assert_eq!(again.unwritten_fork(&one, &"b".into()), Some(fork()));
        again.fork_written(&one, &"b".into(), 4).await.unwrap();
        assert_eq!(open().await.unwritten_fork(&one, &"b".into()), None);
        assert_eq!(open().await.rows(&two).len(), 1);
    }

    #[tokio::test]
    async fn any_prefix_of_it_opens_and_damage_costs_its_own_line() {
        let fs: Arc<dyn SessionFs> = Arc::new(MemoryFs::default());
        let register = ClientStorageRegister::open(fs.clone(), "r").await.unwrap();
        for id in ["a", "b"] {
            register.note(&"one".into(), &id.into(), (Timestamp(1), Timestamp(2)), 1).await.unwrap();
        }
        let bytes = fs.read_file("r").await.unwrap();
        let first = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in 0..bytes.len() {
            fs.write_file("r", &bytes[..cut]).await.unwrap();
            let opened = ClientStorageRegister::open(fs.clone(), "r").await.unwrap();
            let whole = usize::from(cut >= first - 1) + usize::from(cut >= bytes.len() - 1);
            assert_eq!(opened.rows(&"one".into()).len(), whole, "cut at {cut}");
            opened.note(&"one".into(), &"c".into(), (Timestamp(1), Timestamp(2)), 1).await.unwrap();
            let again = ClientStorageRegister::open(fs.clone(), "r").await.unwrap();
            assert_eq!(again.rows(&"one".into()).len(), whole + 1, "cut at {cut}");
        }
        let damaged = [b"nonsense\n\0\0\n{}\n{\"store\":3}\n", bytes.as_slice()].concat();
        assert_eq!(read(&damaged).0.len(), 2);
    }

    #[tokio::test]
    async fn numbers_that_nothing_comes_to_are_replaced_and_told() {
        let fs: Arc<dyn SessionFs> = Arc::new(MemoryFs::default());
        let store = StoreName::from("one");
        let register = ClientStorageRegister::open(fs.clone(), "r").await.unwrap();
        for (id, at) in [("a", 5), ("b", 7)] {
            register.note(&store, &id.into(), (Timestamp(at), Timestamp(at)), 3).await.unwrap();
        }
        let text = String::from_utf8(fs.read_file("r").await.unwrap()).unwrap();
        for odd in ["18446744073709551615", "9007199254740993", "18446744073709551616", "-1"] {
            let bad = text
                .replace(r#""modified":5"#, &format!(r#""modified":{odd}"#))
                .replace(r#""turns":3"#, r#""turns":18446744073709551615"#);
            fs.write_file("r", bad.as_bytes()).await.unwrap();
            let opened = ClientStorageRegister::open(fs.clone(), "r").await.unwrap();
            let damage = opened.damage();
            assert!(damage.len() == 2 && damage[0].contains("modified, turns"), "{odd}: {damage:?}");
            assert_eq!(fs.read_file("r.damaged").await.unwrap(), bad.as_bytes(), "it is kept as it was");
            let rows = opened.rows(&store);
            let ids: Vec<_> = rows.iter().map(|row| (row.id.as_str(), row.modified.0, row.turns)).collect();
            assert_eq!(ids, [("b", 7, 0), ("a", 5, 0)], "{odd}: it does not stand first for ever");
            opened.note(&store, &"a".into(), (Timestamp(5), Timestamp(9)), u64::MAX).await.unwrap();
            opened.note(&store, &"a".into(), (Timestamp(5), Timestamp(9)), 1).await.unwrap();
            assert_eq!(ClientStorageRegister::open(fs.clone(), "again").await.unwrap().damage(), [""; 0]);
        }
        let mut fork = fork();
        fork.boundary = u64::MAX;
        let register = ClientStorageRegister::open(fs.clone(), "forks").await.unwrap();
        register.note_fork(&store, &"f".into(), fork).await.unwrap();
        let opened = ClientStorageRegister::open(fs.clone(), "forks").await.unwrap();
        assert!(opened.rows(&store).is_empty() && opened.damage()[0].contains("boundary"), "{:?}", opened.damage());
    }
}
