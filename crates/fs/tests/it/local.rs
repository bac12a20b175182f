//! What only a folder on this machine has.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use grove_fs::{LocalFs, SessionFs};

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
