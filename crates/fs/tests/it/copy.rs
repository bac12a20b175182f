//! Copies of sessions: whole and bounded, on every backend and between them, interrupted anywhere.

mod contents;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use grove_fs::copy::{
    Boundary, Comparison, CopyError, CopyPurpose, Difference, FolderCopy, Fork, ForkLogRewriter, ForkScope,
    KeepAllLines, LONGEST_LINE, LineAction, LineExtent, LogLine, LogRewriter, PathRewrite, PlanAtTime, SessionFolder,
    compare, is_unfinished, settle,
};
use grove_fs::workspace::database::{Cell, Database, LocalDatabase, Statement};
use grove_fs::workspace::{Field, Manifest, Todos, Workspace};
use grove_fs::{
    Backend, Conventions, DirEntry, FileKind, FsError, LocalFs, MemoryFs, Removal, Result, SessionFs, Stat,
};
use proptest::prelude::*;

use crate::database::todo;
use crate::support::{Files, StoreUnderTest, at_storage_client, backend, every_backend};
use crate::workspace::{at, real_sessions};

/// A store that fails for good after some changes, the last of which it does by half, like a host that is killed.
#[derive(Debug)]
pub(crate) struct Failing {
    store: Arc<dyn SessionFs>,
    /// Shared with its views.
    left: Arc<AtomicI64>,
}

impl Failing {
    pub(crate) fn new(store: Arc<dyn SessionFs>) -> Self {
        Self { store, left: Arc::new(AtomicI64::new(i64::MAX)) }
    }

    /// A view of it, which fails with it.
    fn with(&self, store: Arc<dyn SessionFs>) -> Arc<dyn SessionFs> {
        Arc::new(Self { store, left: Arc::clone(&self.left) })
    }

    pub(crate) fn fail_after(&self, changes: i64) {
        self.left.store(changes, Ordering::SeqCst);
    }

    pub(crate) fn heal(&self) {
        self.fail_after(i64::MAX);
    }

    fn change(&self, path: &str) -> Result<()> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if left > 0 { Ok(()) } else { Err(FsError::NoSpace { path: path.to_owned() }) }
    }
}

#[async_trait]
impl SessionFs for Failing {
    fn backend(&self) -> Backend {
        self.store.backend()
    }

    fn conventions(&self) -> Conventions {
        self.store.conventions()
    }

    fn location(&self, path: &str) -> Result<String> {
        self.store.location(path)
    }

    fn tmpdir(&self) -> Result<Arc<dyn SessionFs>> {
        Ok(self.with(self.store.tmpdir()?))
    }

    fn without_links(&self) -> Arc<dyn SessionFs> {
        self.with(self.store.without_links())
    }

    async fn read_lines(&self, path: &str, longest: usize) -> Result<grove_fs::FileLines> {
        self.store.read_lines(path, longest).await
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        self.store.read_file(path).await
    }

    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.store.read_range(path, offset, length).await
    }

    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.change(path)?;
        self.store.write_file(path, bytes).await
    }

    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        if let Err(error) = self.change(path) {
            self.store.append_file(path, &bytes[..bytes.len() / 2]).await?;
            return Err(error);
        }
        self.store.append_file(path, bytes).await
    }

    async fn sync(&self, path: &str) -> Result<()> {
        self.change(path)?;
        self.store.sync(path).await
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<()> {
        self.change(path)?;
        self.store.truncate(path, length).await
    }

    async fn stat(&self, path: &str) -> Result<Stat> {
        self.store.stat(path).await
    }

    async fn mkdir(&self, path: &str) -> Result<()> {
        self.change(path)?;
        self.store.mkdir(path).await
    }

    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>> {
        self.store.readdir_with_types(path).await
    }

    async fn rm(&self, path: &str, what: Removal) -> Result<()> {
        self.change(path)?;
        self.store.rm(path, what).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.change(from)?;
        self.store.rename(from, to).await
    }
}

/// Everything below a folder.
async fn files(store: &dyn SessionFs, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![String::new()];
    while let Some(below) = folders.pop() {
        for entry in store.readdir_with_types(format!("{folder}/{below}").trim_end_matches('/')).await.unwrap() {
            let path = format!("{below}{}", entry.name);
            match entry.kind {
                FileKind::Folder => folders.push(format!("{path}/")),
                _ => drop(found.insert(path.clone(), store.read_file(&format!("{folder}/{path}")).await.unwrap())),
            }
        }
    }
    found
}

const SESSION: &[(&str, &str)] = &[
    ("events.jsonl", "{\"type\":\"session\",\"id\":\"s1\"}\n{\"n\":1}\n{\"n\":2}\n"),
    ("chats/c1/events.jsonl", "{\"type\":\"session\",\"id\":\"c1\"}\n{\"n\":3}"),
    ("chats/c1/events.idx", "index"),
    ("events.idx", "index"),
    ("session.json", "{}"),
    ("plan.md", "# Plan"),
    ("content/abc", "body"),
    ("files/a", "first"),
    ("files/deep/b", "second"),
    ("research/r", "third"),
    ("temp/1-output.txt", "gone"),
    ("inuse.7.lock", "7"),
];

async fn write_session(store: &dyn SessionFs, folder: &str) {
    let workspace = Workspace::of(store, Some(folder)).unwrap();
    let mut manifest = Manifest::parse("id: s1\ncwd: /w\nname: hello\nmc_task_id: t\nother: kept\n").unwrap();
    manifest.set(Field::CreatedAt, grove_fs::workspace::Value::Time(at(1)));
    workspace.create(&manifest).await.unwrap();
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    for (path, text) in SESSION {
        store.write_file(&format!("{prefix}{path}"), text.as_bytes()).await.unwrap();
    }
    for title in ["One", "Two"] {
        workspace.add_checkpoint(title, &format!("summary {title}"), at(2)).await.unwrap();
    }
}

fn place<'a>(store: &'a dyn SessionFs, folder: &'a str) -> SessionFolder<'a> {
    SessionFolder { store, folder, database: None }
}

fn fork(boundary: Option<Boundary>) -> Fork {
    Fork {
        id: "s2".into(),
        name: None,
        at: at(1_800_000_000_000),
        parts: ForkScope::All,
        logs: BTreeMap::new(),
        boundary,
    }
}

fn text<'a>(files: &'a BTreeMap<String, Vec<u8>>, path: &str) -> &'a str {
    std::str::from_utf8(&files[path]).unwrap()
}

#[tokio::test]
async fn a_moved_session_is_the_same_byte_for_byte() {
    for StoreUnderTest { name: from_name, store: from, .. } in every_backend() {
        write_session(&*from, "session-state/s1").await;
        for StoreUnderTest { name: to_name, store: to, .. } in every_backend() {
            let (from, to) = (place(&*from, "session-state/s1"), place(&*to, "elsewhere/s1"));
            let copied = FolderCopy { from, to, purpose: CopyPurpose::Move }.run(&mut KeepAllLines).await.unwrap();
            let Comparison::Same { files: same, .. } = compare(&from, &to).await.unwrap() else { panic!() };
            assert_eq!((same, copied.files), (14, 14), "{from_name} {to_name}");
            settle(to.store, to.folder).await.unwrap();
            let mut expected = files(from.store, from.folder).await;
            expected.retain(|path, _| !path.starts_with("temp/") && !path.starts_with("inuse."));
            assert_eq!(files(to.store, to.folder).await, expected, "{from_name} {to_name}");
        }
    }
}

#[tokio::test]
async fn real_sessions_are_moved_between_backends() {
    for folder in real_sessions() {
        let (root, name) = (folder.parent().unwrap(), folder.file_name().unwrap().to_str().unwrap());
        let real = LocalFs::new(root);
        let memory = MemoryFs::default();
        let storage_client = at_storage_client(Arc::new(MemoryFs::default()), Conventions::Posix, Files::Bytes);
        let local = tempfile::tempdir().unwrap();
        let back = LocalFs::new(local.path());
        let places = [place(&real, name), place(&memory, "s"), place(&storage_client, "s"), place(&back, "s")];
        for step in places.windows(2) {
            FolderCopy { from: step[0], to: step[1], purpose: CopyPurpose::Move }.run(&mut KeepAllLines).await.unwrap();
            let Comparison::Same { files, bytes } = compare(&places[0], &step[1]).await.unwrap() else {
                panic!("{name}: {step:?}")
            };
            assert!(files >= 2 && bytes > 100, "{name}");
        }
    }
}

#[tokio::test]
async fn a_session_that_went_through_every_backend_is_the_same() {
    let mut last: Option<StoreUnderTest> = None;
    let first = MemoryFs::default();
    write_session(&first, "s1").await;
    let session = "\u{1f332} one\r\ntwo\0".repeat(200_000);
    first.write_file("s1/files/large.txt", session.as_bytes()).await.unwrap();
    let mut expected = files(&first, "s1").await;
    expected.retain(|path, _| !path.starts_with("temp/") && !path.starts_with("inuse."));
    // From each to the next one: local, memory and storage clients of each kind.
    for subject in every_backend() {
        let from = last.as_ref().map_or(&first as &dyn SessionFs, |subject| &*subject.store);
        let (from, to) = (place(from, "s1"), place(&*subject.store, "s1"));
        FolderCopy { from, to, purpose: CopyPurpose::Move }.run(&mut KeepAllLines).await.unwrap();
        assert!(matches!(compare(&from, &to).await.unwrap(), Comparison::Same { files: 15, .. }), "{}", subject.name);
        settle(to.store, to.folder).await.unwrap();
        assert!(files(to.store, to.folder).await == expected, "{}", subject.name);
        last = Some(subject);
    }
}

#[tokio::test]
async fn a_fork_begins_with_what_its_source_has() {
    for StoreUnderTest { name: from_name, store: from, .. } in every_backend() {
        write_session(&*from, "s1").await;
        for StoreUnderTest { name: to_name, store: to, .. } in every_backend() {
            let copying =
                FolderCopy { from: place(&*from, "s1"), to: place(&*to, "s2"), purpose: CopyPurpose::Fork(fork(None)) };
            let header = b"{\"type\":\"session\",\"id\":\"s2\"}".to_vec();
            let copied = copying.run(&mut ForkLogRewriter { header: Some(header), moved: None }).await.unwrap();
            assert_eq!((copied.left_out.len(), copied.as_of_now.len()), (0, 0));
            settle(&*to, "s2").await.unwrap();
            let found = files(&*to, "s2").await;
            let names: Vec<&str> = found.keys().map(String::as_str).collect();
            assert_eq!(
                names,
                [
                    "chats/c1/events.jsonl",
                    "checkpoints/001-one.md",
                    "checkpoints/002-two.md",
                    "checkpoints/index.md",
                    "content/abc",
                    "events.jsonl",
                    "files/a",
                    "files/deep/b",
                    "plan.md",
                    "research/r",
                    "workspace.yaml"
                ],
                "{from_name} {to_name}"
            );
            assert_eq!(text(&found, "events.jsonl"), SESSION[0].1.replace("s1", "s2"));
            let source = files(&*from, "s1").await;
            for path in names.iter().filter(|path| !["events.jsonl", "workspace.yaml"].contains(path)) {
                assert_eq!(found[*path], source[*path], "{path}");
            }
            assert_eq!(
                text(&found, "workspace.yaml"),
                "id: s2\ncwd: /w\nname: hello (fork)\nuser_named: false\nsummary_count: 2\nfork_count: 0\n\
                 created_at: 2027-01-15T08:00:00.000Z\nupdated_at: 2027-01-15T08:00:00.000Z\nother: kept\n"
            );
        }
    }
}

#[tokio::test]
async fn a_bounded_fork_has_nothing_from_after_its_boundary() {
    for StoreUnderTest { name, store, .. } in every_backend() {
        write_session(&*store, "s1").await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        let boundary = Boundary { last_checkpoint: 1, at: SystemTime::now(), plan: PlanAtTime::Was("# Then".into()) };
        tokio::time::sleep(Duration::from_millis(30)).await;
        store.write_file("s1/files/late", b"x").await.unwrap();
        store.write_file("s1/research/sub/late", b"x").await.unwrap();
        // It existed, and has grown since.
        store.append_file("s1/research/r", b", and more").await.unwrap();
        let log = SESSION[0].1;
        let logs = BTreeMap::from([("events.jsonl".to_owned(), (log.len() - 8) as u64)]);
        let purpose = CopyPurpose::Fork(Fork { logs, ..fork(Some(boundary.clone())) });
        let copying = FolderCopy { from: place(&*store, "s1"), to: place(&*store, "s2"), purpose };
        let copied = copying.run(&mut KeepAllLines).await.unwrap();
        let mut left_out = vec!["checkpoints/002-two.md", "files/late", "research/sub/late"];
        let found = files(&*store, "s2").await;
        // Some file systems do not record a file's creation.
        if store.stat("s1/research/r").await.unwrap().created < boundary.at {
            assert_eq!(copied.as_of_now, ["research/r"], "{name}");
            assert_eq!(text(&found, "research/r"), "third, and more");
        } else {
            assert_ne!(name, "memory");
            left_out.insert(2, "research/r");
        }
        assert_eq!(copied.left_out, left_out, "{name}");
        assert_eq!(text(&found, "events.jsonl"), &log[..log.len() - 8]);
        assert_eq!(text(&found, "plan.md"), "# Then");
        assert!(text(&found, "workspace.yaml").contains("summary_count: 1\n"));
        let forked = Workspace::of(&*store, Some("s2")).unwrap();
        assert_eq!(forked.checkpoints().await.unwrap().len(), 1);
        assert!(!found.contains_key("files/late") && !found.contains_key("checkpoints/002-two.md"));

        let cases = [
            ("none", PlanAtTime::None, true, false),
            ("the same", PlanAtTime::Unknown, false, false),
            ("written since", PlanAtTime::Unknown, false, true),
        ];
        for (to, plan, left, now) in cases {
            if now {
                store.write_file("s1/plan.md", b"# Later").await.unwrap();
            }
            let purpose = CopyPurpose::Fork(fork(Some(Boundary { plan, ..boundary.clone() })));
            let copying = FolderCopy { from: place(&*store, "s1"), to: place(&*store, to), purpose };
            let copied = copying.run(&mut KeepAllLines).await.unwrap();
            assert_eq!(copied.left_out.contains(&"plan.md".to_owned()), left);
            assert_eq!(copied.as_of_now.contains(&"plan.md".to_owned()), now);
            assert_eq!(store.exists(&format!("{to}/plan.md")).await.unwrap(), !left);
        }
    }
}

#[tokio::test]
async fn what_stands_beside_a_log_is_copied_beside_what_is_there_already() {
    for StoreUnderTest { name, store, .. } in every_backend() {
        write_session(&*store, "s1").await;
        store.write_file("s2/files/mine", b"mine").await.unwrap();
        let purpose = CopyPurpose::Fork(Fork { parts: ForkScope::Artifacts, ..fork(None) });
        let run = async || {
            let copying = FolderCopy { from: place(&*store, "s1"), to: place(&*store, "s2"), purpose: purpose.clone() };
            copying.run(&mut KeepAllLines).await.unwrap().files
        };
        assert!(run().await > 0, "{name}");
        assert_eq!(run().await, 0, "{name}: all of it is finished");
        settle(&*store, "s2").await.unwrap();
        let (source, found) = (files(&*store, "s1").await, files(&*store, "s2").await);
        assert_eq!(text(&found, "files/mine"), "mine");
        for path in ["files/a", "plan.md", "checkpoints/index.md", "research/r"] {
            assert_eq!(found[path], source[path], "{name} {path}");
        }
        let others = found.keys().filter(|path| path.contains("events.jsonl") || path.starts_with("content"));
        assert_eq!(others.count(), 0, "{name}");
    }
}

/// A copy of `s1`.
fn copying<'a>(
    from: &'a dyn SessionFs,
    to: &'a dyn SessionFs,
    folder: &'a str,
    purpose: &CopyPurpose,
) -> FolderCopy<'a> {
    FolderCopy { from: place(from, "s1"), to: place(to, folder), purpose: purpose.clone() }
}

#[tokio::test]
async fn a_copy_that_is_cut_off_anywhere_is_finished_by_the_next_run() {
    let purposes = [
        CopyPurpose::Move,
        CopyPurpose::Fork(fork(None)),
        CopyPurpose::Fork(fork(Some(Boundary { last_checkpoint: 1, at: SystemTime::now(), plan: PlanAtTime::None }))),
    ];
    // At a storage client each change takes many calls, so each kind of client tries one of them.
    let tried = [
        ("local", &purposes[..]),
        ("memory", &purposes[..]),
        ("rpc, text", &purposes[1..2]),
        ("rpc, binary", &purposes[2..]),
    ];
    for (name, purposes) in tried {
        let subject = backend(name);
        let store = &subject.store;
        write_session(&**store, "s1").await;
        // Larger than one read, so that it grows in pieces.
        let large: String = (0..20).map(|n| format!("{{\"n\":{n}{}}}\n", " ".repeat(60_000))).collect();
        store.write_file("s1/events.jsonl", large.as_bytes()).await.unwrap();
        for (number, purpose) in purposes.iter().enumerate() {
            let once = format!("once-{number}");
            copying(&**store, &**store, &once, purpose).run(&mut KeepAllLines).await.unwrap();
            settle(&**store, &once).await.unwrap();
            let expected = files(&**store, &once).await;
            let (mut changes, mut unfinished) = (0, 0);
            loop {
                let failing = Failing::new(store.clone());
                failing.fail_after(changes);
                let folder = format!("cut-{number}-{changes}");
                let cut = copying(&**store, &failing, &folder, purpose);
                let first = cut.run(&mut KeepAllLines).await;
                if is_unfinished(&**store, &folder).await.unwrap() {
                    assert!(first.is_err());
                    assert!(settle(&**store, &folder).await.is_err());
                    unfinished += 1;
                }
                // It may be interrupted again, and be run again when it is finished.
                failing.fail_after(2);
                let second = cut.run(&mut KeepAllLines).await;
                assert!(second.is_err() || !is_unfinished(&**store, &folder).await.unwrap());
                failing.heal();
                cut.run(&mut KeepAllLines).await.unwrap();
                assert_eq!(cut.run(&mut KeepAllLines).await.unwrap().files, 0);
                assert!(!is_unfinished(&**store, &folder).await.unwrap());
                settle(&**store, &folder).await.unwrap();
                assert!(files(&**store, &folder).await == expected, "{name} {purpose:?} after {changes} changes");
                store.rm(&folder, Removal::Everything).await.unwrap();
                if first.is_ok() {
                    break;
                }
                changes += 1;
            }
            // All but the first, before anything was written, and the last, when only the sync was missing.
            assert!(changes > 10 && unfinished == changes - 2, "{name}: {unfinished} of {changes}");
        }
    }
}

#[tokio::test]
async fn what_is_there_already_is_not_overwritten() {
    for StoreUnderTest { store, .. } in every_backend() {
        write_session(&*store, "s1").await;
        write_session(&*store, "s2").await;
        let copying = |to, id: &str| {
            let purpose = CopyPurpose::Fork(Fork { id: id.into(), ..fork(None) });
            FolderCopy { from: place(&*store, "s1"), to: place(&*store, to), purpose }
        };
        let occupied = CopyError::Occupied { folder: "s2".into() };
        assert_eq!(copying("s2", "s2").run(&mut KeepAllLines).await.unwrap_err(), occupied);
        let nothing = FolderCopy { from: place(&*store, "gone"), ..copying("s3", "s3") };
        assert_eq!(
            nothing.run(&mut KeepAllLines).await.unwrap_err(),
            CopyError::NothingThere { folder: "gone".into() }
        );
        assert!(!store.exists("s3").await.unwrap());
        // A finished copy of something else stays, an unfinished one is deleted.
        copying("s3", "s3").run(&mut KeepAllLines).await.unwrap();
        let occupied = CopyError::Occupied { folder: "s3".into() };
        assert_eq!(copying("s3", "other").run(&mut KeepAllLines).await.unwrap_err(), occupied);
        let failing = Failing::new(store.clone());
        failing.fail_after(4);
        let half = FolderCopy { to: place(&failing, "s4"), ..copying("s4", "s4") };
        half.run(&mut KeepAllLines).await.unwrap_err();
        // Also if it was interrupted while deleting the unfinished copy.
        store.write_file("s4/files/stray", b"of the half").await.unwrap();
        let other = FolderCopy { to: place(&failing, "s4"), ..copying("s4", "s5") };
        for changes in 0..4 {
            failing.fail_after(changes);
            other.run(&mut KeepAllLines).await.unwrap_err();
        }
        copying("s4", "s5").run(&mut KeepAllLines).await.unwrap();
        let found = files(&*store, "s4").await;
        assert!(text(&found, "workspace.yaml").contains("id: s5\n"));
        assert!(!found.contains_key("files/stray"));
    }
}

#[tokio::test]
async fn a_session_may_be_all_that_its_store_has() {
    for StoreUnderTest { store: from, .. } in every_backend() {
        write_session(&*from, "").await;
        for StoreUnderTest { store: to, .. } in every_backend() {
            let (from, to) = (place(&*from, ""), place(&*to, ""));
            let failing = Failing::new(Arc::new(MemoryFs::default()));
            failing.fail_after(5);
            let half = FolderCopy { from, to: place(&failing, ""), purpose: CopyPurpose::Fork(fork(None)) };
            half.run(&mut KeepAllLines).await.unwrap_err();
            failing.heal();
            let moved = FolderCopy { purpose: CopyPurpose::Move, ..half };
            moved.run(&mut KeepAllLines).await.unwrap();
            assert!(matches!(compare(&from, &moved.to).await.unwrap(), Comparison::Same { files: 14, .. }));
            FolderCopy { from, to, purpose: CopyPurpose::Move }.run(&mut KeepAllLines).await.unwrap();
            assert!(matches!(compare(&from, &to).await.unwrap(), Comparison::Same { files: 14, .. }));
            settle(to.store, "").await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_comparison_names_the_first_difference() {
    let bytes = |path: &str, offset| Difference::Bytes { path: path.into(), offset };
    for (path, change, expected) in [
        ("files/a", Some("first!"), bytes("files/a", 5)),
        ("files/a", Some("fir"), bytes("files/a", 3)),
        ("events.jsonl", Some("X"), bytes("events.jsonl", 0)),
        ("plan.md", None, Difference::OnlyInFirst { path: "plan.md".into() }),
        ("content/zzz", Some("new"), Difference::OnlyInSecond { path: "content/zzz".into() }),
        ("workspace.yaml", None, Difference::OnlyInFirst { path: "workspace.yaml".into() }),
        ("zzz", Some("new"), Difference::OnlyInSecond { path: "zzz".into() }),
    ] {
        let store = MemoryFs::default();
        write_session(&store, "s1").await;
        let (from, to) = (place(&store, "s1"), place(&store, "s2"));
        FolderCopy { from, to, purpose: CopyPurpose::Move }.run(&mut KeepAllLines).await.unwrap();
        match change {
            Some(text) => store.write_file(&format!("s2/{path}"), text.as_bytes()).await.unwrap(),
            None => store.rm(&format!("s2/{path}"), Removal::One).await.unwrap(),
        }
        assert_eq!(compare(&from, &to).await.unwrap(), Comparison::Different(expected), "{path}");
    }
}
