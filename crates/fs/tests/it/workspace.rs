//! The workspace of a session, on every backend, and beside what the Copilot CLI writes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use grove_fixtures::{both, own};
use grove_fs::workspace::{
    Checkpoint, CheckpointIndex, Field, FilesFolder, ForkIdentity, Manifest, ManifestError, PASTE_LIMIT, PasteLocation,
    Value, Workspace, WorkspaceError,
};
use grove_fs::{BadName, FsError, LocalFs, MemoryFs, SessionFs};
use jiff::Timestamp;
use proptest::prelude::*;
use saphyr::{LoadableYamlNode, YamlOwned};

use crate::support::{Files, StoreUnderTest, every_backend};

/// The folders of sessions as the Copilot CLI writes them.
pub(crate) fn real_sessions() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = both("copilot-cli");
    while let Some(folder) = folders.pop() {
        if folder.join("workspace.yaml").is_file() {
            found.push(folder);
            continue;
        }
        folders
            .extend(std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
    }
    found.sort();
    assert!(found.len() >= 5, "only {} sessions were found", found.len());
    found
}

pub(crate) fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap()
}

/// The text that an independent YAML reader finds under a key.
fn yaml_text(document: &str, key: &str) -> Option<String> {
    let documents = YamlOwned::load_from_str(document).unwrap();
    Some(documents.first()?.as_mapping_get(key)?.as_str()?.to_owned())
}

const STRANGE: &str = "# made by hand\n---\nid: s1\n\nlabels:\n  - one\n\n  - two\nname: 'it''s # mine' # a comment\n\
    note: |\n  text\n  name: not this one\nmc_task_id: t1\nmc_nested:\n- a\nremote_steerable: true\nlast: \"\\u00e9\\t\"\r\n";

#[test]
fn the_manifests_of_real_sessions_are_written_as_they_were_read() {
    for folder in real_sessions() {
        let text = std::fs::read_to_string(folder.join("workspace.yaml")).unwrap();
        let manifest = Manifest::parse(&text).unwrap();
        assert_eq!(manifest.to_string(), text);
        for field in [Field::Id, Field::Cwd, Field::ClientName] {
            assert_eq!(manifest.text(field).unwrap().map(str::to_owned), yaml_text(&text, field.key()));
        }
        assert!(manifest.time(Field::CreatedAt).unwrap() <= manifest.time(Field::UpdatedAt).unwrap());
        assert!(manifest.flag(Field::UserNamed).unwrap().is_some());
        // Setting every field to its own value changes nothing: we write values as the Copilot CLI does.
        let mut same = manifest.clone();
        for field in [Field::Id, Field::Cwd, Field::GitRoot, Field::Branch, Field::ClientName, Field::Name] {
            if let Some(value) = manifest.text(field).unwrap() {
                same.set(field, Value::Text(value));
            }
        }
        for field in [Field::SummaryCount, Field::ForkCount] {
            same.set(field, Value::Number(manifest.number(field).unwrap().unwrap()));
        }
        same.set(Field::UserNamed, Value::Flag(manifest.flag(Field::UserNamed).unwrap().unwrap()));
        for field in [Field::CreatedAt, Field::UpdatedAt] {
            same.set(field, Value::Time(manifest.time(field).unwrap().unwrap()));
        }
        assert_eq!(same.to_string(), text);
    }
}

#[test]
fn a_manifest_keeps_what_it_does_not_know() {
    let mut manifest = Manifest::parse(STRANGE).unwrap();
    assert_eq!(manifest.to_string(), STRANGE);
    assert_eq!(manifest.text(Field::Name).unwrap(), Some("it's # mine"));
    assert_eq!(manifest.remote_keys().collect::<Vec<_>>(), ["mc_task_id", "mc_nested", "remote_steerable"]);
    manifest.set(Field::Name, Value::Text("other"));
    manifest.set(Field::Cwd, Value::Text("/w"));
    let expected = STRANGE.replace("id: s1\n", "id: s1\ncwd: /w\n").replace("'it''s # mine' # a comment", "other");
    assert_eq!(manifest.to_string(), expected);
    manifest.remove(Field::Cwd);
    manifest.set(Field::Name, Value::Text("it's # mine"));
    assert_eq!(manifest.to_string(), STRANGE.replace("'it''s # mine' # a comment", "\"it's # mine\""));
}

#[test]
fn a_manifest_that_cannot_be_read_says_where() {
    for (text, expected) in [
        ("id: a\nnonsense\n", ManifestError::NotAField { line: 2 }),
        ("  id: a\n", ManifestError::NotAField { line: 1 }),
        ("id:a\n", ManifestError::NotAField { line: 1 }),
        ("id: a\nid: b\n", ManifestError::Twice { line: 2, key: "id".into() }),
    ] {
        assert_eq!(Manifest::parse(text).unwrap_err(), expected, "{text:?}");
    }
    let manifest = Manifest::parse("id: [a]\nname:\n  nested\nsummary_count: many\ncwd: \"open\nbranch:\n").unwrap();
    let unexpected = |line, key: &str, wanted| ManifestError::Unexpected { line, key: key.into(), wanted };
    assert_eq!(manifest.text(Field::Id).unwrap_err(), unexpected(1, "id", "a text"));
    assert_eq!(manifest.text(Field::Name).unwrap_err(), unexpected(2, "name", "a text"));
    assert_eq!(manifest.number(Field::SummaryCount).unwrap_err(), unexpected(4, "summary_count", "a number"));
    assert_eq!(manifest.text(Field::Cwd).unwrap_err(), unexpected(5, "cwd", "a text"));
    assert_eq!(manifest.text(Field::Branch).unwrap(), None);
}

#[test]
fn a_fork_has_an_identity_of_its_own_and_nothing_remote() {
    let manifest = Manifest::parse(STRANGE).unwrap();
    let fork = ForkIdentity { id: "s2", name: None, at: at(1_800_000_000_123), checkpoints: 3 };
    let forked = manifest.forked(fork).unwrap();
    assert_eq!(forked.remote_keys().count(), 0);
    assert_eq!(forked.text(Field::Id).unwrap(), Some("s2"));
    assert_eq!(forked.text(Field::Name).unwrap(), Some("it's # mine (fork)"));
    assert_eq!(forked.flag(Field::UserNamed).unwrap(), Some(false));
    assert_eq!(forked.number(Field::SummaryCount).unwrap(), Some(3));
    assert_eq!(forked.time(Field::CreatedAt).unwrap(), Some(at(1_800_000_000_123)));
    assert!(forked.to_string().contains("created_at: 2027-01-15T08:00:00.123Z\n"));
    assert!(forked.to_string().contains("labels:\n  - one\n\n  - two\n"), "what is not known goes with it");
    let named = manifest.forked(ForkIdentity { name: Some("mine"), ..fork }).unwrap();
    assert_eq!(named.text(Field::Name).unwrap(), Some("mine"));
    assert_eq!(named.flag(Field::UserNamed).unwrap(), Some(true));
}

#[test]
fn our_fork_is_the_one_that_the_copilot_cli_makes() {
    let folder = own("copilot-cli").join("local-sdk-full-and-forks");
    let read = |id: &str| std::fs::read_to_string(folder.join(id).join("workspace.yaml")).unwrap();
    let source = Manifest::parse(&read("11111111-1111-4111-8111-111111111111")).unwrap();
    let real = Manifest::parse(&read("6cb6932b-3068-4c32-bd32-3822bce457ac")).unwrap();
    let forked_at = real.time(Field::CreatedAt).unwrap().unwrap();
    let id = "6cb6932b-3068-4c32-bd32-3822bce457ac";
    let mut ours = source.forked(ForkIdentity { id, name: None, at: forked_at, checkpoints: 0 }).unwrap();
    // The real one was updated once more, a millisecond later.
    ours.set(Field::UpdatedAt, Value::Time(real.time(Field::UpdatedAt).unwrap().unwrap()));
    assert_eq!(ours.to_string(), real.to_string());
}

proptest! {
    #[test]
    fn any_text_is_read_back_also_by_others(text in any::<String>(), key in 0..3_usize) {
        let field = [Field::Name, Field::Cwd, Field::Branch][key];
        let mut manifest = Manifest::new("s1", Some("/w"), at(1_800_000_000_000));
        manifest.set(field, Value::Text(&text));
        let written = manifest.to_string();
        let again = Manifest::parse(&written).unwrap();
        prop_assert_eq!(again.text(field).unwrap(), Some(text.as_str()));
        prop_assert_eq!(yaml_text(&written, field.key()), Some(text));
    }

    #[test]
    fn words_and_numbers_stay_texts(text in "(yes|No|NULL|true|~|off|[-+.0-9_eExo:]{1,8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|[a-z: #]{1,6})") {
        let mut manifest = Manifest::new("s1", None, at(0));
        manifest.set(Field::Name, Value::Text(&text));
        let written = manifest.to_string();
        let again = Manifest::parse(&written).unwrap();
        prop_assert_eq!(again.text(Field::Name).unwrap(), Some(text.as_str()));
        prop_assert_eq!(yaml_text(&written, "name"), Some(text));
    }

    #[test]
    fn a_manifest_that_is_read_is_written_the_same(text in "([a-z#'\"\\\\:|\\- \t\r\n\u{e9}]{0,4}(id|name|b): ?)*[^\u{0}]{0,20}") {
        if let Ok(manifest) = Manifest::parse(&text) {
            prop_assert_eq!(manifest.to_string(), text);
            manifest.text(Field::Name).ok();
        }
    }
}

#[tokio::test]
async fn a_session_without_a_folder_has_no_workspace() {
    let store = MemoryFs::default();
    let error = Workspace::of(&store, None).unwrap_err();
    assert_eq!(error, WorkspaceError::NoWorkspace);
    assert!(error.to_string().contains("create it with a storage"), "{error}");
}

#[tokio::test]
async fn a_new_workspace_has_what_every_workspace_has() {
    for StoreUnderTest { name, store, .. } in every_backend() {
        let workspace = Workspace::of(&*store, Some("session-state/s1")).unwrap();
        assert_eq!(workspace.manifest().await.unwrap(), None, "{name}");
        let manifest = Manifest::new("s1", Some("/w"), at(1_800_000_000_000));
        workspace.create(&manifest).await.unwrap();
        workspace.add_checkpoint("One", "text", at(1_800_000_000_500)).await.unwrap();
        workspace.create(&Manifest::new("other", None, at(0))).await.unwrap();
        let kept = workspace.manifest().await.unwrap().unwrap();
        assert_eq!(kept.text(Field::Id).unwrap(), Some("s1"), "what is there stays");
        assert_eq!(kept.number(Field::SummaryCount).unwrap(), Some(1));
        assert_eq!(kept.time(Field::UpdatedAt).unwrap(), Some(at(1_800_000_000_500)));
        let names = store.readdir("session-state/s1").await.unwrap();
        assert_eq!(names, ["checkpoints", "files", "research", "workspace.yaml"], "{name}");
    }
}

#[tokio::test]
async fn a_plan_is_written_read_and_deleted() {
    for StoreUnderTest { name, store, files: keeps, .. } in every_backend() {
        let workspace = Workspace::of(&*store, Some("s1")).unwrap();
        assert_eq!(workspace.plan().await.unwrap(), None, "{name}");
        assert!(!workspace.delete_plan().await.unwrap());
        workspace.set_plan("# Plan\n- é").await.unwrap();
        assert_eq!(workspace.plan().await.unwrap().as_deref(), Some("# Plan\n- é"));
        assert!(workspace.delete_plan().await.unwrap());
        assert_eq!(workspace.plan().await.unwrap(), None);
        let broken = store.write_file("s1/plan.md", b"\xff").await;
        if keeps == Files::Bytes {
            broken.unwrap();
            assert_eq!(workspace.plan().await.unwrap_err(), WorkspaceError::NotText { path: "s1/plan.md".into() });
        } else {
            assert_eq!(broken.unwrap_err(), FsError::NotText { path: "s1/plan.md".into() }, "{name}");
        }
        let large = "x".repeat(16 * 1024 * 1024 + 1);
        let too_large = WorkspaceError::TooLarge { path: "s1/plan.md".into(), limit: 16 * 1024 * 1024 };
        assert_eq!(workspace.set_plan(&large).await.unwrap_err(), too_large);
        store.write_file("s1/plan.md", large.as_bytes()).await.unwrap();
        assert_eq!(workspace.plan().await.unwrap_err(), too_large);
    }
}

#[tokio::test]
async fn checkpoints_are_written_as_the_copilot_cli_writes_them() {
    for folder in real_sessions() {
        let real = std::fs::read_to_string(folder.join("checkpoints/index.md")).unwrap();
        let index = CheckpointIndex::parse(&real);
        assert_eq!(index.to_string(), real);
        for StoreUnderTest { name, store, .. } in every_backend() {
            let workspace = Workspace::of(&*store, Some("s1")).unwrap();
            workspace.create(&Manifest::new("s1", None, at(0))).await.unwrap();
            for row in index.checkpoints() {
                let summary = std::fs::read_to_string(folder.join("checkpoints").join(&row.file)).unwrap();
                assert_eq!(&workspace.add_checkpoint(&row.title, &summary, at(1)).await.unwrap(), row);
                assert_eq!(workspace.checkpoint(row.number).await.unwrap(), summary);
            }
            assert_eq!(store.read_file("s1/checkpoints/index.md").await.unwrap(), real.as_bytes(), "{name}");
        }
    }
}

#[tokio::test]
async fn the_index_lists_the_checkpoints_of_the_branch_that_one_is_on() {
    for StoreUnderTest { store, .. } in every_backend() {
        let workspace = Workspace::of(&*store, Some("s1")).unwrap();
        workspace.create(&Manifest::new("s1", None, at(0))).await.unwrap();
        let mut all = Vec::new();
        for title in ["One", "Two", "Three"] {
            all.push(workspace.add_checkpoint(title, title, at(1)).await.unwrap());
        }
        let before = store.read_file("s1/checkpoints/index.md").await.unwrap();
        assert_eq!(workspace.relist_checkpoints(vec![all[2].clone()], &[1, 2], at(2)).await.unwrap(), 1);
        assert_eq!(workspace.checkpoints().await.unwrap(), [all[2].clone()]);
        assert_eq!(workspace.manifest().await.unwrap().unwrap().number(Field::SummaryCount).unwrap(), Some(1));
        assert_eq!(workspace.checkpoint(1).await.unwrap(), "One", "its file stays");
        assert_eq!(workspace.relist_checkpoints(all.clone(), &[], at(3)).await.unwrap(), 3);
        assert_eq!(store.read_file("s1/checkpoints/index.md").await.unwrap(), before, "each in its place again");
        assert_eq!(workspace.relist_checkpoints(Vec::new(), &[7], at(4)).await.unwrap(), 3);
    }
}

#[tokio::test]
async fn a_truncation_takes_later_checkpoints_out_of_the_index() {
    for StoreUnderTest { store, .. } in every_backend() {
        let workspace = Workspace::of(&*store, Some("s1")).unwrap();
        workspace.create(&Manifest::new("s1", None, at(0))).await.unwrap();
        for title in ["One", "Two", "Three"] {
            workspace.add_checkpoint(title, &format!("summary of {title}"), at(1)).await.unwrap();
        }
        let removed = workspace.remove_checkpoints_after(1, at(2)).await.unwrap();
        assert_eq!(removed.iter().map(|row| row.number).collect::<Vec<_>>(), [2, 3]);
        let numbers = |rows: Vec<Checkpoint>| rows.into_iter().map(|row| row.number).collect::<Vec<_>>();
        assert_eq!(numbers(workspace.checkpoints().await.unwrap()), [1]);
        let manifest = workspace.manifest().await.unwrap().unwrap();
        assert_eq!(manifest.number(Field::SummaryCount).unwrap(), Some(1));
        // The log still names them.
        assert_eq!(workspace.checkpoint(3).await.unwrap(), "summary of Three");
        let next = workspace.add_checkpoint("Four", "x", at(3)).await.unwrap();
        assert_eq!((next.number, next.file.as_str()), (4, "004-four.md"), "no number is given twice");
        assert_eq!(numbers(workspace.checkpoints().await.unwrap()), [1, 4]);
        assert_eq!(workspace.checkpoint(9).await.unwrap_err(), WorkspaceError::NoCheckpoint { number: 9 });
        assert_eq!(workspace.remove_checkpoints_after(4, at(4)).await.unwrap(), []);
    }
}

#[tokio::test]
async fn no_checkpoint_takes_the_place_of_another_when_numbers_run_out() {
    for index in ["| 4294967295 | Last | x.md |\n", ""] {
        let store = MemoryFs::default();
        let workspace = Workspace::of(&store, Some("s1")).unwrap();
        store.write_file("s1/checkpoints/index.md", index.as_bytes()).await.unwrap();
        store.write_file("s1/checkpoints/4294967295-last.md", b"there").await.unwrap();
        let none_left = WorkspaceError::NoNumberLeft { path: "s1/checkpoints".into() };
        assert_eq!(workspace.add_checkpoint("Last", "new", at(0)).await.unwrap_err(), none_left);
        assert_eq!(store.read_file("s1/checkpoints/4294967295-last.md").await.unwrap(), b"there");
    }
}

#[tokio::test]
async fn a_title_that_is_cut_is_listed_as_it_was_given_back() {
    let store = MemoryFs::default();
    let workspace = Workspace::of(&store, Some("s1")).unwrap();
    let added = workspace.add_checkpoint(&"word ".repeat(60), "x", at(0)).await.unwrap();
    assert_eq!(workspace.checkpoints().await.unwrap(), [added]);
}

proptest! {
    #[test]
    fn any_title_is_one_row_and_a_name_that_every_system_takes(title in "(\\PC|[|\\\\\n])*") {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let store = MemoryFs::default();
            let workspace = Workspace::of(&store, Some("s1")).unwrap();
            let added = workspace.add_checkpoint(&title, "x", at(0)).await.unwrap();
            workspace.add_checkpoint("Next", "y", at(0)).await.unwrap();
            let listed = workspace.checkpoints().await.unwrap();
            assert_eq!(listed.len(), 2);
            assert_eq!(listed[0], added);
            let index = store.read_file("s1/checkpoints/index.md").await.unwrap();
            let rows = String::from_utf8(index).unwrap().lines().filter(|line| line.matches('|').count() == 4).count();
            assert_eq!(rows, 4, "head, line and a row for each, without a bar that others would take for a cell");
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
            assert!(added.file.bytes().all(plain) && added.file.len() <= 70, "{}", added.file);
            assert_eq!(workspace.checkpoint(1).await.unwrap(), "x");
        });
    }
}

#[tokio::test]
async fn files_are_listed_with_those_in_folders() {
    for StoreUnderTest { name, store, .. } in every_backend() {
        let workspace = Workspace::of(&*store, Some("s1")).unwrap();
        assert_eq!(workspace.files(FilesFolder::Files).await.unwrap().files, []);
        for file in ["b", "a/z", "a/b/c"] {
            workspace.write_file(FilesFolder::Files, file, file.as_bytes()).await.unwrap();
        }
        workspace.write_file(FilesFolder::Research, "r", b"x").await.unwrap();
        let listing = workspace.files(FilesFolder::Files).await.unwrap();
        let found: Vec<_> = listing.files.iter().map(|file| (file.name.as_str(), file.size)).collect();
        assert_eq!(found, [("a/b/c", 5), ("a/z", 3), ("b", 1)], "{name}");
        assert!(!listing.more);
        assert_eq!(workspace.read_file(FilesFolder::Files, "a/b/c", 2, 100).await.unwrap(), b"b/c");
        assert!(workspace.remove_file(FilesFolder::Files, "a/z").await.unwrap());
        assert!(!workspace.remove_file(FilesFolder::Files, "a/z").await.unwrap());
        assert_eq!(workspace.files(FilesFolder::Files).await.unwrap().files.len(), 2);
        assert_eq!(workspace.files(FilesFolder::Research).await.unwrap().files.len(), 1);
    }
}

#[tokio::test]
async fn no_name_leads_out_of_its_shelf() {
    let long = "x/".repeat(600) + "x";
    for StoreUnderTest { store, .. } in every_backend() {
        let workspace = Workspace::of(&*store, Some("s1")).unwrap();
        store.write_file("s1/secret", b"x").await.unwrap();
        for (name, reason) in [
            ("", BadName::Empty),
            ("..", BadName::Dots),
            ("../secret", BadName::Dots),
            ("nested/../../secret", BadName::Dots),
            ("./a", BadName::Dots),
            ("/etc/passwd", BadName::Absolute),
            ("C:/x", BadName::Drive),
            ("..\\secret", BadName::Backslash),
            ("a//b", BadName::EmptyPart),
            ("a/", BadName::EmptyPart),
            ("a\0b", BadName::Nul),
            ("a\nb", BadName::Control),
            (&long, BadName::LongName),
        ] {
            let bad = WorkspaceError::Fs(FsError::BadName { path: name.to_owned(), reason });
            for folder in [FilesFolder::Files, FilesFolder::Research] {
                assert_eq!(workspace.read_file(folder, name, 0, 1).await.unwrap_err(), bad);
                assert_eq!(workspace.write_file(folder, name, b"").await.unwrap_err(), bad);
                assert_eq!(workspace.remove_file(folder, name).await.unwrap_err(), bad);
            }
        }
    }
}

#[tokio::test]
async fn a_link_on_a_shelf_is_neither_listed_nor_followed() {
    let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = LocalFs::new(root.path());
    let workspace = Workspace::of(&store, Some("s1")).unwrap();
    workspace.write_file(FilesFolder::Files, "plain", b"x").await.unwrap();
    std::fs::write(outside.path().join("secret"), "x").unwrap();
    let files = root.path().join("s1/files");
    std::os::unix::fs::symlink(outside.path(), files.join("folder")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), files.join("file")).unwrap();
    std::os::unix::fs::symlink(&files, files.join("again")).unwrap();
    let listing = workspace.files(FilesFolder::Files).await.unwrap();
    assert_eq!(listing.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["plain"]);
    assert!(!listing.more);
    for name in ["file", "folder/secret", "again/plain"] {
        let link = WorkspaceError::Fs(FsError::Link { path: name.to_owned() });
        assert_eq!(workspace.read_file(FilesFolder::Files, name, 0, 9).await.unwrap_err(), link);
    }
    let link = WorkspaceError::Fs(FsError::Link { path: "folder/new".to_owned() });
    assert_eq!(workspace.write_file(FilesFolder::Files, "folder/new", b"y").await.unwrap_err(), link);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    // Nor if the folder itself is a link.
    std::os::unix::fs::symlink(outside.path(), root.path().join("s1/research")).unwrap();
    assert_eq!(workspace.files(FilesFolder::Research).await.unwrap().files, []);
    workspace.write_file(FilesFolder::Research, "new", b"y").await.unwrap_err();
}

#[tokio::test]
async fn what_is_named_too_long_to_be_asked_for_does_not_hide_the_rest() {
    let root = tempfile::tempdir().unwrap();
    let store = LocalFs::new(root.path());
    let workspace = Workspace::of(&store, Some("s1")).unwrap();
    workspace.write_file(FilesFolder::Files, "plain", b"x").await.unwrap();
    let part = "p".repeat(250);
    store.write_file(&format!("s1/files/{part}/{part}/{part}/{part}/{part}/deep"), b"x").await.unwrap();
    let listing = workspace.files(FilesFolder::Files).await.unwrap();
    assert_eq!((listing.files.len(), listing.more), (1, true));
}

#[tokio::test]
async fn what_is_pasted_is_stored_when_it_is_large() {
    for StoreUnderTest { name, store, .. } in every_backend() {
        let workspace = Workspace::of(&*store, Some("s1")).unwrap();
        let large = vec![b'p'; PASTE_LIMIT + 1];
        let now = at(1_794_704_903_050);
        let inline = workspace.paste(&large[1..], "txt", PASTE_LIMIT, now).await.unwrap();
        assert_eq!(inline, PasteLocation::Inline, "{name}");
        let (a, b) = tokio::join!(
            workspace.paste(&large, "txt", PASTE_LIMIT, now),
            workspace.paste(&large, ".png", PASTE_LIMIT, now)
        );
        let mut names = BTreeSet::new();
        for pasted in [a.unwrap(), b.unwrap(), workspace.paste(&large, "../x", PASTE_LIMIT, now).await.unwrap()] {
            let PasteLocation::Stored(stored) = pasted else { panic!("{pasted:?}") };
            assert_eq!(workspace.read_file(FilesFolder::Files, &stored.name, 0, usize::MAX).await.unwrap(), large);
            let stem = stored.name.strip_prefix("paste-").unwrap().split('.').next().unwrap();
            assert!(stem.parse::<u64>().unwrap() >= 1_794_704_903_050);
            assert!(stored.to_string().contains(&format!("files/{}", stored.name)), "{stored}");
            names.insert(stem.to_owned());
        }
        assert_eq!(names.len(), 3, "unique within one millisecond");
    }
}
