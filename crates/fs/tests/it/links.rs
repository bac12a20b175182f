//! Links that an agent puts into a folder do not lead Grove out of it.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use grove_fs::workspace::{PlanAtTime, PlanCheck, PlanTracker, Workspace};
use grove_fs::{Confined, DirEntry, FileKind, FsError, LocalFs, Removal, SessionFs};

struct LinkCase {
    _folder: tempfile::TempDir,
    outside: PathBuf,
    files: PathBuf,
    view: Confined,
}

/// A session's `files/` beside a private folder.
fn case() -> LinkCase {
    let folder = tempfile::tempdir().unwrap();
    let (outside, files) = (folder.path().join("outside"), folder.path().join("root/s1/files"));
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    let view = Confined::new(&LocalFs::new(folder.path().join("root")), "s1/files").unwrap();
    LinkCase { _folder: folder, outside, files, view }
}

fn link_error(path: &str) -> FsError {
    FsError::Link { path: path.to_owned() }
}

#[tokio::test]
async fn a_link_to_a_file_is_not_followed() {
    let case = case();
    let view = &case.view;
    symlink(case.outside.join("secret"), case.files.join("l")).unwrap();
    assert_eq!(view.read_file("l").await.unwrap_err(), link_error("l"));
    assert_eq!(view.read_range("l", 0, 1).await.unwrap_err(), link_error("l"));
    assert_eq!(view.read_lines("l", 10).await.unwrap_err(), link_error("l"));
    assert_eq!(view.append_file("l", b"x").await.unwrap_err(), link_error("l"));
    assert_eq!(view.write_file("l", b"x").await.unwrap_err(), link_error("l"));
    assert_eq!(view.truncate("l", 0).await.unwrap_err(), link_error("l"));
    assert_eq!(view.stat("l").await.unwrap_err(), link_error("l"));
    assert_eq!(view.mkdir("l").await.unwrap_err(), link_error("l"));
    assert_eq!(std::fs::read_to_string(case.outside.join("secret")).unwrap(), "secret");
    // It is listed as not a file, and can be removed without harm to its target.
    let listed = view.readdir_with_types("").await.unwrap();
    assert_eq!(listed, [DirEntry { name: "l".to_owned(), kind: FileKind::Other }]);
    view.rm("l", Removal::Everything).await.unwrap();
    assert_eq!(std::fs::read_to_string(case.outside.join("secret")).unwrap(), "secret");
}

#[tokio::test]
async fn a_link_to_a_folder_is_not_entered() {
    let case = case();
    let view = &case.view;
    symlink(&case.outside, case.files.join("d")).unwrap();
    view.write_text("ok", "x").await.unwrap();
    for path in ["d/secret", "d/new", "d/deep/new"] {
        assert_eq!(view.read_file(path).await.unwrap_err(), link_error(path));
        assert_eq!(view.write_file(path, b"x").await.unwrap_err(), link_error(path));
        assert_eq!(view.append_file(path, b"x").await.unwrap_err(), link_error(path));
        assert_eq!(view.mkdir(path).await.unwrap_err(), link_error(path));
        assert_eq!(view.stat(path).await.unwrap_err(), link_error(path));
        assert_eq!(view.rm(path, Removal::Everything).await.unwrap_err(), link_error(path));
        assert_eq!(view.rename("ok", path).await.unwrap_err(), link_error("ok"));
    }
    assert_eq!(view.readdir("d").await.unwrap_err(), link_error("d"));
    assert_eq!(std::fs::read_dir(&case.outside).unwrap().count(), 1);
    assert_eq!(view.read_text("ok").await.unwrap(), "x");
}

#[tokio::test]
async fn a_link_in_the_place_of_the_folder_itself_is_not_followed() {
    let case = case();
    std::fs::remove_dir(&case.files).unwrap();
    symlink(&case.outside, &case.files).unwrap();
    assert_eq!(case.view.read_file("secret").await.unwrap_err(), link_error("secret"));
    assert_eq!(case.view.write_file("new", b"x").await.unwrap_err(), link_error("new"));
    assert_eq!(case.view.readdir("").await.unwrap_err(), link_error(""));
}

#[tokio::test]
async fn removing_a_folder_leaves_alone_what_links_in_it_lead_to() {
    let case = case();
    case.view.write_text("d/a/b/c", "x").await.unwrap();
    symlink(&case.outside, case.files.join("d/a/out")).unwrap();
    symlink("nowhere", case.files.join("d/dangling")).unwrap();
    case.view.rm("d", Removal::Everything).await.unwrap();
    assert_eq!(case.view.readdir("").await.unwrap(), [""; 0]);
    assert_eq!(std::fs::read_to_string(case.outside.join("secret")).unwrap(), "secret");
}

#[tokio::test]
async fn what_is_no_file_is_never_waited_for() {
    let case = case();
    let pipe = case.files.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    for error in [
        case.view.read_file("pipe").await.map(drop).unwrap_err(),
        case.view.read_lines("pipe", 10).await.map(drop).unwrap_err(),
        case.view.append_file("pipe", b"x").await.unwrap_err(),
    ] {
        assert_eq!((error.code(), error.path()), ("UNKNOWN", "pipe"), "{error}");
    }
}

#[tokio::test]
async fn the_store_itself_follows_the_links_of_its_owner() {
    let case = case();
    symlink(&case.outside, case.files.join("d")).unwrap();
    let store = LocalFs::new(&case.files);
    assert_eq!(store.read_file("d/secret").await.unwrap(), b"secret");
    assert_eq!(store.stat("d").await.unwrap().kind, FileKind::Folder);
}

#[tokio::test]
async fn folders_that_lie_too_deep_are_refused_and_not_followed_for_ever() {
    let case = case();
    let deep = vec!["d"; 200].join("/");
    let store = LocalFs::new(&case.files);
    store.mkdir(&deep).await.unwrap();
    store.rm("d", Removal::Everything).await.unwrap_err();
    // Its inner half can be removed, then the rest.
    store.rm(&vec!["d"; 100].join("/"), Removal::Everything).await.unwrap();
    store.rm("d", Removal::Everything).await.unwrap();
}

#[tokio::test]
async fn a_plan_that_is_a_link_is_no_plan_and_its_history_none() {
    let case = case();
    let root = LocalFs::new(case.files.parent().unwrap().parent().unwrap()).without_links();
    let session = case.files.parent().unwrap();
    let workspace = Workspace::of(root.as_ref(), Some("s1")).unwrap();
    let mut watch = PlanTracker::default();
    symlink(case.outside.join("secret"), session.join("plan.md")).unwrap();
    assert!(!watch.note(&workspace, PlanCheck::Perhaps, 1).await.unwrap());
    assert_eq!(workspace.plan_at(2).await.unwrap(), PlanAtTime::None);
    symlink(case.outside.join("secret"), session.join("plan-history.jsonl")).unwrap();
    assert_eq!(workspace.plan_at(2).await.unwrap(), PlanAtTime::None);
    std::fs::remove_file(session.join("plan.md")).unwrap();
    workspace.set_plan("mine").await.unwrap();
    assert!(watch.note(&workspace, PlanCheck::Written, 3).await.is_err());
    assert_eq!(std::fs::read_to_string(case.outside.join("secret")).unwrap(), "secret");
}
