//! Changes of files: where they are allowed, and what they leave.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use grove_work::limits::CHANGED_DEPTH;
use grove_work::{ChangePolicy, FileError, FileWrite, Policy, Roots, SymlinkMode, WriteGrants, WriteMode, resolve};

use crate::test_folder::TestFolder;

/// The right to change everything that the policy of a test folder lets be changed.
fn all(folder: &TestFolder) -> ChangePolicy {
    granted(folder.policy(), &[folder.path("")])
}

fn granted(policy: Policy, paths: &[std::path::PathBuf]) -> ChangePolicy {
    let mut grants = WriteGrants::default();
    paths.iter().for_each(|path| grants.add(path.clone()).unwrap());
    ChangePolicy::new(policy, grants)
}

fn text(data: &str) -> FileWrite {
    FileWrite {
        data: data.into(),
        mode: WriteMode::Truncate,
        position: 0,
        create_only: false,
        if_match: None,
        most: 1 << 20,
    }
}

fn content(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn a_file_is_replaced_in_one_step_and_keeps_its_mode() {
    let folder = TestFolder::new();
    let script = folder.write("work/run", "old");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).unwrap();
    let number = fs::metadata(&script).unwrap().ino();
    let policy = all(&folder);
    policy.write(&script, text("new")).await.unwrap();
    let found = fs::metadata(&script).unwrap();
    assert_eq!((content(&script).as_str(), found.mode() & 0o777), ("new", 0o751));
    assert_ne!(found.ino(), number, "a reader of the old file has all of it");
    policy.write(&folder.path("work/new"), text("x")).await.unwrap();
    let names: Vec<_> = fs::read_dir(folder.path("work")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let error = policy.write(&folder.path("work/none/x"), text("x")).await.unwrap_err();
    assert!(matches!(error, FileError::NotFound { .. }), "{error}");
    let error = policy.write(&folder.folder("work/sub"), text("x")).await.unwrap_err();
    assert!(matches!(error, FileError::NotAFile { .. }), "{error}");
    let error = policy.write(&script, FileWrite { most: 2, ..text("abc") }).await.unwrap_err();
    assert!(matches!(error, FileError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn content_is_placed_as_its_mode_says() {
    let folder = TestFolder::new();
    let file = folder.path("work/a");
    folder.folder("work");
    let policy = all(&folder);
    for (mode, position, expected) in [
        (WriteMode::Truncate, 0, "+"),
        (WriteMode::Truncate, 2, "ab+"),
        (WriteMode::Append, 0, "abcd+"),
        (WriteMode::Append, 1, "abc+d"),
        (WriteMode::Insert, 0, "+abcd"),
        (WriteMode::Insert, 3, "abc+d"),
    ] {
        fs::write(&file, "abcd").unwrap();
        policy.write(&file, FileWrite { mode, position, ..text("+") }).await.unwrap();
        assert_eq!(content(&file), expected, "{mode:?} {position}");
        let error = policy.write(&file, FileWrite { mode, position: 9, ..text("+") }).await.unwrap_err();
        assert!(matches!(error, FileError::PastEnd { size: 1..=5, .. }), "{error}");
    }
    policy.write(&folder.path("work/new"), FileWrite { mode: WriteMode::Append, ..text("n") }).await.unwrap();
    assert_eq!(content(folder.path("work/new")), "n");
}

#[tokio::test]
async fn a_version_that_is_not_the_expected_one_is_not_replaced() {
    let folder = TestFolder::new();
    let file = folder.write("work/a", "1");
    let policy = all(&folder);
    let etag = async || Some(resolve(&folder.policy(), &file, SymlinkMode::Follow).await.unwrap().etag);
    let first = etag().await;
    policy.write(&file, FileWrite { if_match: first.clone(), ..text("2") }).await.unwrap();
    let error = policy.write(&file, FileWrite { if_match: first.clone(), ..text("3") }).await.unwrap_err();
    assert!(matches!(error, FileError::Conflict { .. }), "{error}");
    assert_eq!(content(&file), "2");
    let none = folder.path("work/none");
    let error = policy.write(&none, FileWrite { if_match: first, ..text("3") }).await.unwrap_err();
    assert!(matches!(error, FileError::Conflict { .. }), "{error}");
    let error = policy.write(&file, FileWrite { create_only: true, ..text("3") }).await.unwrap_err();
    assert!(matches!(error, FileError::Exists { .. }), "{error}");
    policy.write(&none, FileWrite { create_only: true, ..text("3") }).await.unwrap();
    // Of many writers with the same version, one wins.
    let expected = etag().await;
    let writers = (0..8).map(|number| {
        let (policy, file, if_match) = (policy.clone(), file.clone(), expected.clone());
        tokio::spawn(async move { policy.write(&file, FileWrite { if_match, ..text(&number.to_string()) }).await })
    });
    let mut won = 0;
    for writer in writers.collect::<Vec<_>>() {
        won += usize::from(writer.await.unwrap().is_ok());
    }
    assert_eq!(won, 1);
}

#[tokio::test]
async fn a_path_is_changed_only_after_it_was_granted() {
    let folder = TestFolder::new();
    let (file, other) = (folder.write("work/a", "1"), folder.write("work/b", "1"));
    let policy = granted(folder.policy(), std::slice::from_ref(&file));
    policy.write(&file, text("2")).await.unwrap();
    let refused = [
        policy.write(&other, text("2")).await,
        policy.delete(&other, false).await,
        policy.rename(&file, &other, false).await,
        policy.rename(&other, &file, false).await,
        policy.copy(&file, &other, false).await,
        policy.create_folder(&folder.path("work/c")).await,
    ];
    for refused in refused {
        assert!(matches!(refused, Err(FileError::NotGranted { .. })), "{refused:?}");
    }
    // The granted path is a real one: a link that takes its place leads elsewhere.
    fs::remove_file(&file).unwrap();
    symlink(&other, &file).unwrap();
    let refused = policy.write(&file, text("3")).await;
    assert!(matches!(refused, Err(FileError::NotGranted { .. })), "{refused:?}");
    assert_eq!(policy.grantable(&file).await.unwrap(), other);
    assert_eq!(content(&other), "1");
}

#[tokio::test]
async fn only_working_directories_are_changed_and_nothing_outside_is_revealed() {
    let folder = TestFolder::new();
    folder.write("work/a", "1");
    folder.write("work/private/token", "secret");
    folder.write("shown/a", "1");
    folder.write("outside/a", "1");
    symlink(folder.path("outside"), folder.path("work/out")).unwrap();
    symlink(folder.path("outside/none"), folder.path("work/dangling")).unwrap();
    let roots = Roots {
        read: vec![folder.path("shown")],
        browse: vec![folder.path("shown")],
        private: vec![folder.path("work/private")],
    };
    let policy = granted(Policy::new(roots, vec![folder.path("work")]), &[folder.path("")]);
    for path in ["shown/a", "shown/new"] {
        let error = policy.write(&folder.path(path), text("2")).await.unwrap_err();
        assert!(matches!(error, FileError::ReadOnly { .. }), "{path}: {error}");
    }
    let hidden = [
        "outside/a",
        "outside/none",
        "work/out/a",
        "work/out/new",
        "work/dangling",
        "work/private/token",
        "work/private/new",
    ];
    for path in hidden {
        let path = folder.path(path);
        let errors = [
            policy.write(&path, text("2")).await,
            policy.create_folder(&path).await,
            policy.grantable(&path).await.map(drop),
            policy.copy(&path, &folder.path("work/copy"), false).await,
        ];
        for error in errors {
            assert!(matches!(error, Err(FileError::Outside { .. })), "{}: {error:?}", path.display());
        }
    }
    let dots = folder.path("work/none/../../outside/b");
    assert!(matches!(policy.write(&dots, text("2")).await, Err(FileError::Outside { .. })));
    assert_eq!((content(folder.path("outside/a")), folder.path("outside/none").exists()), ("1".into(), false));
    // A link goes itself, and its target stays.
    policy.delete(&folder.path("work/out"), true).await.unwrap();
    assert!(folder.path("outside/a").exists() && !folder.path("work/out").exists());
}

#[tokio::test]
async fn roots_private_folders_and_what_is_above_them_stay_in_their_place() {
    let folder = TestFolder::new();
    folder.write("work/sub/deep/a", "1");
    folder.write("work/private/token", "secret");
    folder.write("work/home/private/key", "secret");
    let roots =
        Roots { private: vec![folder.path("work/private"), folder.path("work/home/private")], ..Roots::default() };
    let folders = vec![folder.path("work"), folder.path("work/sub/deep")];
    let policy = granted(Policy::new(roots, folders), &[folder.path("")]);
    for path in ["work/sub/deep", "work/sub", "work/home"] {
        let path = folder.path(path);
        let errors =
            [policy.delete(&path, true).await, policy.rename(&path, &folder.path("work/elsewhere"), false).await];
        for error in errors {
            assert!(matches!(error, Err(FileError::Landmark { .. })), "{}: {error:?}", path.display());
        }
    }
    let error = policy.copy(&folder.path("work/home"), &folder.path("work/copy"), false).await.unwrap_err();
    assert!(matches!(error, FileError::Landmark { .. }), "{error}");
    assert!(folder.path("work/home/private/key").exists() && folder.path("work/sub/deep/a").exists());
    for path in ["work", ""] {
        assert!(policy.delete(&folder.path(path), true).await.is_err(), "{path}");
    }
}

#[tokio::test]
async fn protected_files_are_changed_by_holders_of_that_right_alone() {
    let folder = TestFolder::new();
    folder.write("work/project/.git/hooks/old", "x");
    folder.write("work/prepared/hooks/pre-commit", "x");
    let policy = all(&folder);
    let git = folder.path("work/project/.git");
    let refused = [
        policy.write(&git.join("hooks/pre-commit"), text("x")).await,
        policy.write(&folder.path("work/.mcp.json"), text("x")).await,
        policy.create_folder(&folder.path("work/.claude/commands")).await,
        policy.delete(&folder.path("work/project"), true).await,
        policy.rename(&folder.path("work/project"), &folder.path("work/moved"), false).await,
        policy.copy(&folder.path("work/project"), &folder.path("work/copy"), false).await,
        policy.rename(&folder.path("work/prepared"), &folder.path("work/.git"), false).await,
    ];
    for refused in refused {
        assert!(matches!(refused, Err(FileError::Protected { .. })), "{refused:?}");
    }
    symlink(git.join("hooks"), folder.path("work/hooks")).unwrap();
    let refused = policy.write(&folder.path("work/hooks/pre-commit"), text("x")).await;
    assert!(matches!(refused, Err(FileError::Protected { .. })), "through a link: {refused:?}");
    let policy = policy.with_protected();
    policy.write(&git.join("hooks/pre-commit"), text("x")).await.unwrap();
    policy.delete(&folder.path("work/project"), true).await.unwrap();
}

#[tokio::test]
async fn folders_are_created_copied_moved_and_deleted_with_what_is_in_them() {
    let folder = TestFolder::new();
    let policy = all(&folder);
    let path = |name: &str| folder.path(format!("work/{name}"));
    folder.folder("work");
    policy.create_folder(&path("a/b/c")).await.unwrap();
    policy.create_folder(&path("a/b/c")).await.unwrap();
    policy.write(&path("a/b/file"), text("1")).await.unwrap();
    for existing in ["a/b/file", "a/b/file/below"] {
        let error = policy.create_folder(&path(existing)).await.unwrap_err();
        assert!(matches!(error, FileError::Exists { .. }), "{error}");
    }
    symlink("file", path("a/b/link")).unwrap();
    policy.copy(&path("a"), &path("copy"), true).await.unwrap();
    assert_eq!((content(path("copy/b/link")), path("copy/b/c").is_dir()), ("1".into(), true));
    assert_eq!(fs::read_link(path("copy/b/link")).unwrap(), Path::new("file"));
    policy.rename(&path("copy"), &path("moved"), true).await.unwrap();
    assert!(!path("copy").exists() && path("moved/b/file").exists());

    policy.write(&path("other"), text("2")).await.unwrap();
    for change in [
        policy.copy(&path("other"), &path("a/b/file"), true).await,
        policy.rename(&path("other"), &path("a/b/file"), true).await,
    ] {
        assert!(matches!(change, Err(FileError::Exists { .. })), "{change:?}");
    }
    policy.copy(&path("other"), &path("a/b/file"), false).await.unwrap();
    assert_eq!(content(path("a/b/file")), "2");
    policy.rename(&path("other"), &path("a/b/link"), false).await.unwrap();
    assert!(fs::symlink_metadata(path("a/b/link")).unwrap().is_file() && !path("other").exists());
    for change in
        [policy.copy(&path("a"), &path("moved"), false).await, policy.rename(&path("a"), &path("moved"), false).await]
    {
        assert!(matches!(change, Err(FileError::Exists { .. })), "a folder is never replaced: {change:?}");
    }
    for change in
        [policy.copy(&path("a"), &path("a/b/a"), false).await, policy.rename(&path("a"), &path("a/b/a"), false).await]
    {
        assert!(matches!(change, Err(FileError::InsideItself { .. })), "{change:?}");
    }
    let error = policy.delete(&path("a"), false).await.unwrap_err();
    assert!(matches!(error, FileError::NotEmpty { .. }), "{error}");
    policy.delete(&path("a"), true).await.unwrap();
    policy.delete(&path("moved/b/c"), false).await.unwrap();
    assert!(!path("a").exists() && !path("moved/b/c").exists());
    let error = policy.delete(&path("a"), true).await.unwrap_err();
    assert!(matches!(error, FileError::NotFound { .. }), "{error}");
    let left: Vec<_> = fs::read_dir(path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["moved"]);
}

#[tokio::test]
async fn a_folder_that_is_too_deep_or_too_large_is_not_changed_at_all() {
    let folder = TestFolder::new();
    let policy = all(&folder);
    let deep = folder.path("work/deep");
    let deepest = (0..=CHANGED_DEPTH).fold(deep.clone(), |path, _| path.join("d"));
    fs::create_dir_all(&deepest).unwrap();
    for change in [policy.delete(&deep, true).await, policy.copy(&deep, &folder.path("work/copy"), false).await] {
        assert!(matches!(change, Err(FileError::TooDeep { .. })), "{change:?}");
    }
    assert!(deepest.exists() && !folder.path("work/copy").exists());
    fs::remove_dir(&deepest).unwrap();
    policy.delete(&deep, true).await.unwrap();
}

#[tokio::test]
async fn a_hard_link_to_a_private_file_is_neither_copied_nor_read_by_a_change() {
    let folder = TestFolder::new();
    let token = folder.write("work/private/token", "secret");
    folder.folder("work/sub");
    fs::hard_link(&token, folder.path("work/sub/a")).unwrap();
    let policy = all(&folder);
    let appended = FileWrite { mode: WriteMode::Append, ..text("x") };
    assert!(policy.write(&folder.path("work/sub/a"), appended).await.is_err());
    assert!(policy.copy(&folder.path("work/sub"), &folder.path("work/copy"), false).await.is_err());
    assert!(policy.copy(&folder.path("work/sub/a"), &folder.path("work/copy"), false).await.is_err());
    assert!(!folder.path("work/copy").exists());
    assert_eq!(content(&token), "secret");
}
