//! The contents of a copy: lines, text, databases, links.

use super::*;

#[tokio::test]
async fn only_the_path_of_a_checkpoint_is_rewritten() {
    let moved = |from: &str| PathRewrite { from: from.into(), to: "C:\\new".into(), separator: '\\' };
    let line = |number, text: &'static str| LogLine { number, bytes: text.as_bytes(), extent: LineExtent::Whole };
    let odd =
        r#"{ "n": 1e5,"details":{"x":"\ud800", "checkpointPath" : "/old/s1/checkpoints/001-a.md" },"y":"/old/s1/"}"#;
    let expected =
        r#"{ "n": 1e5,"details":{"x":"\ud800", "checkpointPath" : "C:\\new\\checkpoints\\001-a.md" },"y":"/old/s1/"}"#;
    let mut rewrite = ForkLogRewriter { header: Some(b"H".to_vec()), moved: Some(moved("/old/s1")) };
    assert_eq!(rewrite.line("events.jsonl", line(1, odd)), LineAction::Replace(expected.into()));
    assert_eq!(rewrite.line("events.jsonl", line(0, odd)), LineAction::Replace(b"H".to_vec()));
    assert_eq!(rewrite.line("chats/c/events.jsonl", line(0, "{}")), LineAction::Keep);
    for kept in [
        r#"{"details":{"checkpointPath":"/old/s10/checkpoints/001-a.md"}}"#,
        r#"{"details":{"checkpointPath":"/old/s1"}}"#,
        r#"{"details":{"checkpointPath":7}}"#,
        r#"{"details":["checkpointPath"]}"#,
        r#"{"text":"\"checkpointPath\":\"/old/s1/x\""}"#,
        r#""checkpointPath" /old/s1/x"#,
    ] {
        assert_eq!(rewrite.line("events.jsonl", line(1, kept)), LineAction::Keep, "{kept}");
    }
}

#[tokio::test]
async fn the_checkpoints_of_a_real_log_lead_to_the_fork() {
    let id = "11111111-1111-4111-8111-111111111111";
    let folder = real_sessions().into_iter().find(|folder| folder.ends_with(id)).unwrap();
    let real = LocalFs::new(folder.parent().unwrap());
    let memory = MemoryFs::default();
    let copying =
        FolderCopy { from: place(&real, id), to: place(&memory, "s2"), purpose: CopyPurpose::Fork(fork(None)) };
    let log = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let at = log.find("\"checkpointPath\":\"").unwrap() + 18;
    let old = log[at..].split(id).next().unwrap().to_owned() + id;
    let moved = PathRewrite { from: old.clone(), to: "/state/s2".into(), separator: '/' };
    copying.run(&mut ForkLogRewriter { header: None, moved: Some(moved) }).await.unwrap();
    let key = "\"checkpointPath\":\"";
    let expected = log.replace(&format!("{key}{old}/"), &format!("{key}/state/s2/"));
    assert_ne!(expected, log);
    assert_eq!(memory.read_file("s2/events.jsonl").await.unwrap(), expected.as_bytes());
}

/// Treats each line by its first byte.
struct ByFirstByte;

impl LogRewriter for ByFirstByte {
    fn line(&mut self, _: &str, line: LogLine<'_>) -> LineAction {
        match line.bytes.first() {
            Some(b'd') => LineAction::Drop,
            Some(b'r') => LineAction::Replace(format!("{}:{}", line.number, line.bytes.len()).into_bytes()),
            _ => LineAction::Keep,
        }
    }
}

fn by_first_byte(log: &[u8]) -> Vec<u8> {
    let fate = |(number, line): (usize, &[u8])| {
        let (body, end) = line.strip_suffix(b"\n").map_or((line, ""), |body| (body, "\n"));
        match body.first() {
            Some(b'd') => Vec::new(),
            Some(b'r') => format!("{number}:{}{end}", body.len()).into_bytes(),
            _ => line.to_vec(),
        }
    };
    log.split_inclusive(|byte| *byte == b'\n').enumerate().flat_map(fate).collect()
}

proptest! {
    #[test]
    fn each_line_has_its_own_fate(log in "[drk\n\r]{0,60}", end in 0..70_u64) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let store = MemoryFs::default();
            store.write_file("s1/chats/c/events.jsonl", log.as_bytes()).await.unwrap();
            let path = "chats/c/events.jsonl".to_owned();
            let purpose = CopyPurpose::Fork(Fork { logs: BTreeMap::from([(path, end)]), ..fork(None) });
            let copying = FolderCopy { from: place(&store, "s1"), to: place(&store, "s2"), purpose };
            copying.run(&mut ByFirstByte).await.unwrap();
            let cut = &log.as_bytes()[..log.len().min(end as usize)];
            assert_eq!(store.read_file("s2/chats/c/events.jsonl").await.unwrap(), by_first_byte(cut));
        });
    }
}

#[tokio::test]
async fn lines_of_any_length_are_copied() {
    let store = MemoryFs::default();
    let long = |first: char, length: usize| format!("{first}{}\n", "x".repeat(length - 1));
    for length in [1024 * 1024, LONGEST_LINE, LONGEST_LINE + 1, LONGEST_LINE + 3_000_000] {
        let log = ['k', 'd', 'k', 'r', 'k'].map(|first| long(first, length)).concat();
        store.write_file("s1/events.jsonl", log.as_bytes()).await.unwrap();
        let copying =
            FolderCopy { from: place(&store, "s1"), to: place(&store, "s2"), purpose: CopyPurpose::Fork(fork(None)) };
        copying.run(&mut ByFirstByte).await.unwrap();
        let kept = long('k', length);
        let expected = format!("{kept}{kept}3:{}\n{kept}", length.min(LONGEST_LINE));
        assert!(store.read_file("s2/events.jsonl").await.unwrap() == expected.as_bytes(), "{length}");
        store.rm("s2", Removal::Everything).await.unwrap();
    }
}

#[tokio::test]
async fn a_store_may_take_text_alone() {
    let store = MemoryFs::default();
    for (first, character) in [("", "é"), ("a", "é"), ("a", "€"), ("ab", "€"), ("abc", "🌳")] {
        let text = format!("{first}{}", character.repeat(700_000));
        for path in ["files/large", "events.jsonl"] {
            store.write_file(&format!("s1/{path}"), text.as_bytes()).await.unwrap();
        }
        let to = at_storage_client(Arc::new(MemoryFs::default()), Conventions::Posix, Files::Text);
        let copying =
            FolderCopy { from: place(&store, "s1"), to: place(&to, "s2"), purpose: CopyPurpose::Fork(fork(None)) };
        copying.run(&mut KeepAllLines).await.unwrap();
        for path in ["files/large", "events.jsonl"] {
            assert!(
                to.read_file(&format!("s2/{path}")).await.unwrap() == text.as_bytes(),
                "{first:?} {character} {path}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_no_text_goes_to_stores_that_keep_bytes_and_is_refused_by_the_others() {
    let from = MemoryFs::default();
    write_session(&from, "s1").await;
    let large = [b"a".repeat(1_500_000), vec![0xff]].concat();
    for bytes in [&b"\x89PNG\r\n\x1a\n\0\xff"[..], &large] {
        from.write_file("s1/files/picture.png", bytes).await.unwrap();
        for StoreUnderTest { name, store, files: keeps, .. } in every_backend() {
            let (from, to) = (place(&from, "s1"), place(&*store, "s1"));
            let copied = FolderCopy { from, to, purpose: CopyPurpose::Move }.run(&mut KeepAllLines).await;
            if keeps == Files::Bytes {
                copied.unwrap();
                assert!(matches!(compare(&from, &to).await.unwrap(), Comparison::Same { files: 15, .. }), "{name}");
                continue;
            }
            let refused = FsError::NotText { path: "s1/files/picture.png".to_owned() };
            assert_eq!(copied.unwrap_err(), CopyError::Fs(refused), "{name}");
            assert!(is_unfinished(&*store, "s1").await.unwrap());
            assert!(!store.exists("s1/files/picture.png").await.unwrap(), "nothing of it is there ({name})");
        }
    }
}

#[tokio::test]
async fn the_database_goes_with_the_session_while_others_write_it() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalFs::new(folder.path());
    write_session(&local, "s1").await;
    let database = LocalDatabase::new(local.clone(), "s1");
    Todos::of(&database).put(&todo("a", &[])).await.unwrap();
    database.query(Statement::exec("CREATE TABLE n (i); INSERT INTO n VALUES (0)")).await.unwrap();
    let writer = {
        let database = database.clone();
        tokio::spawn(async move {
            for _ in 0..50 {
                // Two rows at once: a copy has both or none.
                let twice = Statement::exec("INSERT INTO n VALUES (1); INSERT INTO n VALUES (2)");
                database.transaction(vec![twice]).await.unwrap();
            }
        })
    };
    let from = SessionFolder { store: &local, folder: "s1", database: Some(&database) };
    for number in 0..5 {
        let to = format!("fork-{number}");
        let copying = FolderCopy { from, to: place(&local, &to), purpose: CopyPurpose::Fork(fork(None)) };
        copying.run(&mut KeepAllLines).await.unwrap();
        let copy = LocalDatabase::new(local.clone(), &to);
        assert_eq!(Todos::of(&copy).list().await.unwrap(), [todo("a", &[])]);
        let odd = copy.query(Statement::query("SELECT count(*) % 2 FROM n")).await.unwrap();
        assert_eq!(odd.rows, [[Cell::Integer(1)]]);
    }
    writer.await.unwrap();
    // And through a store that is not a folder, and back.
    let memory = MemoryFs::default();
    FolderCopy { from, to: place(&memory, "s1"), purpose: CopyPurpose::Move }.run(&mut KeepAllLines).await.unwrap();
    let back = place(&local, "back");
    FolderCopy { from: place(&memory, "s1"), to: back, purpose: CopyPurpose::Move }
        .run(&mut KeepAllLines)
        .await
        .unwrap();
    for other in [place(&memory, "s1"), back] {
        assert!(matches!(compare(&from, &other).await.unwrap(), Comparison::Same { .. }), "{}", other.folder);
    }
    Todos::of(&LocalDatabase::new(local.clone(), "back")).put(&todo("b", &[])).await.unwrap();
    let different = compare(&from, &back).await.unwrap();
    assert!(
        matches!(&different, Comparison::Different(Difference::Bytes { path, .. }) if path == "session.db"),
        "{different:?}"
    );
}

#[tokio::test]
async fn no_link_is_followed_by_a_copy() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let local = LocalFs::new(folder.path());
    write_session(&local, "s1").await;
    std::fs::write(outside.path().join("secret"), "somebody's").unwrap();
    let session: &Path = &folder.path().join("s1");
    for (to, link) in [
        (outside.path(), "files/outside"),
        (&outside.path().join("secret"), "files/secret"),
        (&session.join("files"), "files/again"),
        (&session.join("nowhere"), "research/nowhere"),
    ] {
        std::os::unix::fs::symlink(to, session.join(link)).unwrap();
    }
    for (purpose, count, folder) in [(CopyPurpose::Move, 14, "s2"), (CopyPurpose::Fork(fork(None)), 11, "s3")] {
        let (from, to) = (place(&local, "s1"), place(&local, folder));
        let copied = FolderCopy { from, to, purpose: purpose.clone() }.run(&mut KeepAllLines).await.unwrap();
        assert_eq!(copied.not_files, ["files/again", "files/outside", "files/secret", "research/nowhere"]);
        assert_eq!(copied.files, count);
        if purpose == CopyPurpose::Move {
            assert!(matches!(compare(&from, &to).await.unwrap(), Comparison::Same { files: 14, .. }));
        }
        assert!(files(&local, folder).await.values().all(|bytes| bytes != b"somebody's"));
    }
    // Nor one in the place of the session itself.
    std::os::unix::fs::symlink(outside.path(), folder.path().join("s4")).unwrap();
    let copying = FolderCopy { from: place(&local, "s4"), to: place(&local, "s5"), purpose: CopyPurpose::Move };
    let link = FsError::Link { path: "s4".to_owned() };
    assert_eq!(copying.run(&mut KeepAllLines).await.unwrap_err(), CopyError::Fs(link));
}
