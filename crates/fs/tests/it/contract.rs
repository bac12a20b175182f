//! Each rule is a function over any store; [`every_backend_keeps_the_rules`] runs them all on every backend.

use std::pin::Pin;
use std::sync::Arc;

use grove_fs::{BadPath, DirEntry, FsError, Kind, LocalFs, MemoryFs, Removal, SessionFs};

type Store = Arc<dyn SessionFs>;
type Rule = (&'static str, fn(Store) -> Pin<Box<dyn Future<Output = ()>>>);

macro_rules! rules {
    ($($name:ident),* $(,)?) => {
        const RULES: &[Rule] = &[$((stringify!($name), |store| Box::pin($name(store)))),*];
    };
}

rules![
    what_was_written_is_read,
    a_range_ends_where_the_file_ends,
    appending_makes_the_file,
    truncating_only_shortens,
    a_missing_file_is_not_found,
    a_folder_is_not_a_file,
    a_file_is_not_a_folder,
    a_path_never_leads_out,
    folders_are_listed_by_name,
    removing_takes_what_was_asked,
    renaming_replaces_a_file,
    renaming_moves_a_folder,
    what_is_there_exists,
];

#[tokio::test]
async fn every_backend_keeps_the_rules() {
    for (name, rule) in RULES {
        println!("{name} (local)");
        let folder = tempfile::tempdir().unwrap();
        rule(Arc::new(LocalFs::new(folder.path().join("root")))).await;
        println!("{name} (memory)");
        rule(Arc::new(MemoryFs::default())).await;
    }
}

#[tokio::test]
async fn a_clone_of_a_memory_store_is_the_same_store() {
    let store = MemoryFs::default();
    store.clone().write_file("a", b"x").await.unwrap();
    assert_eq!(store.read_file("a").await.unwrap(), b"x");
}

async fn what_was_written_is_read(store: Store) {
    store.write_file("a/b/c", b"one").await.unwrap();
    assert_eq!(store.read_file("a/b/c").await.unwrap(), b"one");
    store.write_file("a/b/c", b"").await.unwrap();
    assert_eq!(store.read_file("a/b/c").await.unwrap(), b"");
    let every_byte: Vec<u8> = (0..=255).collect();
    store.write_file("a/b/c", &every_byte).await.unwrap();
    assert_eq!(store.read_file("a/b/c").await.unwrap(), every_byte);
    assert_eq!(store.stat("a/b/c").await.unwrap().size, 256);
}

async fn a_range_ends_where_the_file_ends(store: Store) {
    store.write_file("a", b"0123456789").await.unwrap();
    for (offset, length, expected) in [
        (0, 4, "0123"),
        (4, 3, "456"),
        (8, 100, "89"),
        (10, 1, ""),
        (u64::MAX, 1, ""),
        (3, usize::MAX, "3456789"),
        (5, 0, ""),
    ] {
        assert_eq!(store.read_range("a", offset, length).await.unwrap(), expected.as_bytes(), "{offset} {length}");
    }
}

async fn appending_makes_the_file(store: Store) {
    store.append_file("a/log", b"one\n").await.unwrap();
    store.append_file("a/log", b"two\n").await.unwrap();
    store.sync("a/log").await.unwrap();
    assert_eq!(store.read_file("a/log").await.unwrap(), b"one\ntwo\n");
}

async fn truncating_only_shortens(store: Store) {
    store.write_file("a", b"12345").await.unwrap();
    store.truncate("a", 9).await.unwrap();
    assert_eq!(store.read_file("a").await.unwrap(), b"12345");
    store.truncate("a", 2).await.unwrap();
    assert_eq!(store.read_file("a").await.unwrap(), b"12");
    store.append_file("a", b"x").await.unwrap();
    assert_eq!(store.read_file("a").await.unwrap(), b"12x");
}

async fn a_missing_file_is_not_found(store: Store) {
    store.mkdir("there").await.unwrap();
    for path in ["gone", "there/gone", "gone/gone"] {
        let not_found = FsError::NotFound { path: path.to_owned() };
        assert_eq!(store.read_file(path).await.unwrap_err(), not_found);
        assert_eq!(store.read_range(path, 0, 1).await.unwrap_err(), not_found);
        assert_eq!(store.truncate(path, 0).await.unwrap_err(), not_found);
        assert_eq!(store.sync(path).await.unwrap_err(), not_found);
        assert_eq!(store.stat(path).await.unwrap_err(), not_found);
        assert_eq!(store.readdir(path).await.unwrap_err(), not_found);
        assert_eq!(store.rm(path, Removal::Everything).await.unwrap_err(), not_found);
        assert_eq!(store.rename(path, "else").await.unwrap_err(), not_found);
        assert_eq!(not_found.to_string(), format!("{path}: no such file or folder (ENOENT)"));
    }
}

async fn a_folder_is_not_a_file(store: Store) {
    store.mkdir("a").await.unwrap();
    let is_folder = FsError::IsADirectory { path: "a".to_owned() };
    assert_eq!(store.read_file("a").await.unwrap_err(), is_folder);
    assert_eq!(store.write_file("a", b"x").await.unwrap_err(), is_folder);
    assert_eq!(store.append_file("a", b"x").await.unwrap_err(), is_folder);
    assert_eq!(store.truncate("a", 0).await.unwrap_err(), is_folder);
    store.write_file("f", b"x").await.unwrap();
    store.rename("f", "a").await.unwrap_err();
    assert_eq!(store.stat("a").await.unwrap().kind, Kind::Folder);
    store.mkdir("a").await.unwrap();
}

async fn a_file_is_not_a_folder(store: Store) {
    store.write_file("a", b"x").await.unwrap();
    let no_folder = FsError::NotADirectory { path: "a/b".to_owned() };
    assert_eq!(store.read_file("a/b").await.unwrap_err(), no_folder);
    assert_eq!(store.append_file("a/b", b"x").await.unwrap_err(), no_folder);
    assert_eq!(store.mkdir("a/b").await.unwrap_err(), no_folder);
    assert_eq!(store.readdir("a").await.unwrap_err(), FsError::NotADirectory { path: "a".to_owned() });
    assert_eq!(store.mkdir("a").await.unwrap_err(), FsError::AlreadyExists { path: "a".to_owned() });
    assert!(!store.exists("a/b").await.unwrap());
}

async fn a_path_never_leads_out(store: Store) {
    for (path, reason) in [
        ("/etc/passwd", BadPath::Absolute),
        ("..", BadPath::DotPart),
        ("a/../../b", BadPath::DotPart),
        ("./a", BadPath::DotPart),
        ("a//b", BadPath::EmptyPart),
        ("a/", BadPath::EmptyPart),
        ("a\0b", BadPath::Nul),
    ] {
        let bad = FsError::BadPath { path: path.to_owned(), reason };
        assert_eq!(store.read_file(path).await.unwrap_err(), bad);
        assert_eq!(store.write_file(path, b"x").await.unwrap_err(), bad);
        assert_eq!(store.append_file(path, b"x").await.unwrap_err(), bad);
        assert_eq!(store.mkdir(path).await.unwrap_err(), bad);
        assert_eq!(store.exists(path).await.unwrap_err(), bad);
        assert_eq!(store.readdir_with_types(path).await.unwrap_err(), bad);
        assert_eq!(store.rm(path, Removal::Everything).await.unwrap_err(), bad);
        store.write_file("there", b"x").await.unwrap();
        assert_eq!(store.rename("there", path).await.unwrap_err(), bad);
    }
    let root = FsError::BadPath { path: String::new(), reason: BadPath::Root };
    assert_eq!(store.rm("", Removal::Everything).await.unwrap_err(), root);
    assert_eq!(store.write_file("", b"").await.unwrap_err(), root);
}

async fn folders_are_listed_by_name(store: Store) {
    store.mkdir("a").await.unwrap();
    assert_eq!(store.readdir("a").await.unwrap(), [""; 0]);
    for path in ["a/z", "a/b.txt", "a/b/inside", "ab"] {
        store.write_file(path, b"x").await.unwrap();
    }
    let entry = |name: &str, kind| DirEntry { name: name.to_owned(), kind };
    let expected = [entry("b", Kind::Folder), entry("b.txt", Kind::File), entry("z", Kind::File)];
    assert_eq!(store.readdir_with_types("a").await.unwrap(), expected);
    assert_eq!(store.readdir("").await.unwrap(), ["a", "ab"]);
}

async fn removing_takes_what_was_asked(store: Store) {
    for path in ["a/b/c", "a/d", "ab", "e"] {
        store.write_file(path, b"x").await.unwrap();
    }
    store.rm("a", Removal::One).await.unwrap_err();
    assert!(store.exists("a/d").await.unwrap());
    store.rm("a", Removal::Everything).await.unwrap();
    store.rm("e", Removal::Everything).await.unwrap();
    assert_eq!(store.readdir("").await.unwrap(), ["ab"]);
    store.mkdir("empty").await.unwrap();
    store.rm("empty", Removal::One).await.unwrap();
    store.rm("ab", Removal::One).await.unwrap();
    assert_eq!(store.readdir("").await.unwrap(), [""; 0]);
}

async fn renaming_replaces_a_file(store: Store) {
    store.write_file("a", b"new").await.unwrap();
    store.write_file("d/b", b"old").await.unwrap();
    store.rename("a", "d/b").await.unwrap();
    assert_eq!(store.read_file("d/b").await.unwrap(), b"new");
    assert!(!store.exists("a").await.unwrap());
    store.rename("d/b", "gone/b").await.unwrap_err();
    assert_eq!(store.read_file("d/b").await.unwrap(), b"new");
}

async fn renaming_moves_a_folder(store: Store) {
    store.write_file("a/b/c", b"x").await.unwrap();
    store.write_file("ab", b"beside").await.unwrap();
    store.rename("a", "n").await.unwrap();
    assert_eq!(store.read_file("n/b/c").await.unwrap(), b"x");
    assert_eq!(store.readdir("").await.unwrap(), ["ab", "n"]);
    store.rename("n", "n/inside").await.unwrap_err();
    assert_eq!(store.read_file("n/b/c").await.unwrap(), b"x");
}

async fn what_is_there_exists(store: Store) {
    store.write_file("a/b", b"x").await.unwrap();
    for (path, there) in [("a", true), ("a/b", true), ("a/c", false), ("b/c", false)] {
        assert_eq!(store.exists(path).await.unwrap(), there, "{path}");
    }
}
