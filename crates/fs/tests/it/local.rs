//! Behavior of local folders only.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use grove_fs::{FsError, LocalFs, Removal, SessionFs};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn files_and_folders_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let store = LocalFs::new(&root);
    store.write_file("a/replaced", b"x").await.unwrap();
    store.append_file("b/appended", b"x").await.unwrap();
    store.mkdir("c/d").await.unwrap();
    for path in ["a/replaced", "b/appended"] {
        assert_eq!(mode(&root.join(path)), 0o600, "{path}");
    }
    for path in ["", "a", "b", "c", "c/d"] {
        assert_eq!(mode(&root.join(path)), 0o700, "{path}");
    }
}

#[tokio::test]
async fn replacing_leaves_nothing_beside_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalFs::new(folder.path());
    store.write_file("a", b"one").await.unwrap();
    store.write_file("a", b"two").await.unwrap();
    store.mkdir("b").await.unwrap();
    store.write_file("b", b"not over a folder").await.unwrap_err();
    assert_eq!(store.readdir("").await.unwrap(), ["a", "b"]);
}

#[tokio::test]
async fn the_temporary_folder_goes_when_nothing_is_left_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalFs::of_session(folder.path(), None);
    let temp = store.tmpdir().unwrap();
    let place = temp.location("").unwrap();
    assert!(Path::new(&place).starts_with(std::env::temp_dir()));
    temp.write_text("a", "x").await.unwrap();
    assert_eq!(mode(Path::new(&place)), 0o700);
    temp.rm("a", grove_fs::Removal::One).await.unwrap();
    drop(temp);
    assert!(Path::new(&place).is_dir());
    drop(store);
    assert!(!Path::new(&place).exists());
}

#[tokio::test]
async fn the_temporary_folder_stays_with_what_was_kept_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let temp = LocalFs::of_session(folder.path(), None).tmpdir().unwrap();
    temp.write_text("kept", "x").await.unwrap();
    let place = temp.location("").unwrap();
    drop(temp);
    assert!(Path::new(&place).join("kept").is_file());
    std::fs::remove_dir_all(place).unwrap();
}

#[tokio::test]
async fn temporary_folders_that_were_left_are_told_to_their_own_store_alone() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let killed = LocalFs::new(folder.path());
    let temp = killed.tmpdir().unwrap();
    temp.write_text("session-s/a", "x").await.unwrap();
    assert!(killed.leftover_tmpdirs().await.unwrap().is_empty(), "its own is in use");
    assert!(LocalFs::new(other.path()).leftover_tmpdirs().await.unwrap().is_empty());

    let store = LocalFs::new(folder.path());
    let own = store.tmpdir().unwrap();
    own.write_text("b", "y").await.unwrap();
    let left = store.leftover_tmpdirs().await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].location("").unwrap(), temp.location("").unwrap());
    assert_eq!(left[0].read_text("session-s/a").await.unwrap(), "x");
    left[0].rm("session-s", Removal::Everything).await.unwrap();
    drop(left);
    assert!(!Path::new(&temp.location("").unwrap()).exists(), "it goes when nothing is left in it");
    own.rm("b", Removal::One).await.unwrap();
}

#[tokio::test]
async fn what_somebody_else_put_beside_the_temporary_folders_is_not_ours() {
    let folder = tempfile::tempdir().unwrap();
    let place = LocalFs::new(folder.path()).tmpdir().unwrap().location("").unwrap();
    let prefix = place.rsplit_once('-').unwrap().0;
    let odd =
        [format!("{prefix}-short"), format!("{prefix}-{}", "z".repeat(32)), format!("{prefix}-{}", "0".repeat(32))];
    std::fs::create_dir(&odd[0]).unwrap();
    std::fs::create_dir(&odd[1]).unwrap();
    std::os::unix::fs::symlink(folder.path(), &odd[2]).unwrap();
    assert!(LocalFs::new(folder.path()).leftover_tmpdirs().await.unwrap().is_empty());
    std::fs::remove_dir(&odd[0]).unwrap();
    std::fs::remove_dir(&odd[1]).unwrap();
    std::fs::remove_file(&odd[2]).unwrap();
}

#[tokio::test]
async fn a_container_that_was_deleted_is_not_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let container = folder.path().join("data");
    std::fs::create_dir(&container).unwrap();
    let store = LocalFs::inside(&container, container.join("session-state"));
    store.write_file("s/events.jsonl", b"x").await.unwrap();
    std::fs::remove_dir_all(&container).unwrap();
    for refused in [store.write_file("s/events.jsonl", b"y").await, store.mkdir("").await, store.mkdir("t").await] {
        assert!(matches!(refused, Err(FsError::NotFound { .. })), "{refused:?}");
    }
    assert!(!container.exists());
}
