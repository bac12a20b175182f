//! Each rule is a function over any store; [`every_backend_keeps_the_rules`] runs them all on every backend.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use grove_fs::{BadPath, Confined, DirEntry, FileKind, FsError, MemoryFs, Removal, SessionFs};

use crate::support::{Files, StoreUnderTest, every_backend};

type Store = Arc<dyn SessionFs>;
type Rule = (&'static str, fn(StoreUnderTest) -> Pin<Box<dyn Future<Output = ()>>>);

macro_rules! rules {
    ($($name:ident),* $(,)?) => {
        const RULES: &[Rule] = &[$((stringify!($name), |subject| Box::pin($name(subject)))),*];
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
    text_is_read_and_written_as_text,
    what_is_no_text_is_refused_or_kept_exactly,
    lines_come_one_by_one,
    a_line_that_is_too_long_is_passed_over,
    times_are_told,
    a_place_is_spelled_by_the_store,
    one_file_has_one_lock_key,
    temporary_files_lie_apart,
    appends_happen_in_order,
    a_confined_view_shows_its_folder_only,
    the_longest_name_can_be_used,
];

#[tokio::test]
async fn every_backend_keeps_the_rules() {
    for (name, rule) in RULES {
        for subject in every_backend() {
            println!("{name} ({})", subject.name);
            rule(subject).await;
        }
    }
}

#[tokio::test]
async fn a_clone_of_a_memory_store_is_the_same_store() {
    let store = MemoryFs::default();
    store.clone().write_file("a", b"x").await.unwrap();
    assert_eq!(store.read_file("a").await.unwrap(), b"x");
}

async fn what_was_written_is_read(subject: StoreUnderTest) {
    let store = &subject.store;
    store.write_file("a/b/c", b"one").await.unwrap();
    assert_eq!(store.read_file("a/b/c").await.unwrap(), b"one");
    store.write_file("a/b/c", b"").await.unwrap();
    assert_eq!(store.read_file("a/b/c").await.unwrap(), b"");
    let text = "ä\u{0}\r\n🌲".repeat(100);
    store.write_file("a/b/c", text.as_bytes()).await.unwrap();
    assert_eq!(store.read_file("a/b/c").await.unwrap(), text.as_bytes());
    assert_eq!(store.stat("a/b/c").await.unwrap().size, text.len() as u64);
    assert_eq!(store.readdir("a/b").await.unwrap(), ["c"]);
}

async fn a_range_ends_where_the_file_ends(subject: StoreUnderTest) {
    let store = &subject.store;
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

async fn appending_makes_the_file(subject: StoreUnderTest) {
    let store = &subject.store;
    store.append_file("a/log", b"one\n").await.unwrap();
    store.append_file("a/log", b"two\n").await.unwrap();
    store.sync("a/log").await.unwrap();
    assert_eq!(store.read_file("a/log").await.unwrap(), b"one\ntwo\n");
}

async fn truncating_only_shortens(subject: StoreUnderTest) {
    let store = &subject.store;
    store.write_file("a", b"12345").await.unwrap();
    store.truncate("a", 9).await.unwrap();
    assert_eq!(store.read_file("a").await.unwrap(), b"12345");
    store.truncate("a", 2).await.unwrap();
    assert_eq!(store.read_file("a").await.unwrap(), b"12");
    store.append_file("a", b"x").await.unwrap();
    assert_eq!(store.read_file("a").await.unwrap(), b"12x");
}

async fn a_missing_file_is_not_found(subject: StoreUnderTest) {
    let store = &subject.store;
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

async fn a_folder_is_not_a_file(subject: StoreUnderTest) {
    let store = &subject.store;
    store.mkdir("a").await.unwrap();
    let is_folder = FsError::IsADirectory { path: "a".to_owned() };
    assert_eq!(store.read_file("a").await.unwrap_err(), is_folder);
    assert_eq!(store.write_file("a", b"x").await.unwrap_err(), is_folder);
    assert_eq!(store.append_file("a", b"x").await.unwrap_err(), is_folder);
    assert_eq!(store.truncate("a", 0).await.unwrap_err(), is_folder);
    store.write_file("f", b"x").await.unwrap();
    store.rename("f", "a").await.unwrap_err();
    assert_eq!(store.stat("a").await.unwrap().kind, FileKind::Folder);
    store.mkdir("a").await.unwrap();
}

async fn a_file_is_not_a_folder(subject: StoreUnderTest) {
    let store = &subject.store;
    store.write_file("a", b"x").await.unwrap();
    let no_folder = FsError::NotADirectory { path: "a/b".to_owned() };
    assert_eq!(store.read_file("a/b").await.unwrap_err(), no_folder);
    assert_eq!(store.append_file("a/b", b"x").await.unwrap_err(), no_folder);
    assert_eq!(store.mkdir("a/b").await.unwrap_err(), no_folder);
    assert_eq!(store.readdir("a").await.unwrap_err(), FsError::NotADirectory { path: "a".to_owned() });
    assert_eq!(store.mkdir("a").await.unwrap_err(), FsError::AlreadyExists { path: "a".to_owned() });
    assert!(!store.exists("a/b").await.unwrap());
}

async fn a_path_never_leads_out(subject: StoreUnderTest) {
    let store = &subject.store;
    let long_part = "p".repeat(256);
    let long_path = "p/".repeat(2048) + "p";
    for (path, reason) in [
        (long_part.as_str(), BadPath::LongPart),
        (long_path.as_str(), BadPath::LongPath),
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

async fn folders_are_listed_by_name(subject: StoreUnderTest) {
    let store = &subject.store;
    store.mkdir("a").await.unwrap();
    assert_eq!(store.readdir("a").await.unwrap(), [""; 0]);
    for path in ["a/z", "a/b.txt", "a/b/inside", "ab"] {
        store.write_file(path, b"x").await.unwrap();
    }
    let entry = |name: &str, kind| DirEntry { name: name.to_owned(), kind };
    let expected = [entry("b", FileKind::Folder), entry("b.txt", FileKind::File), entry("z", FileKind::File)];
    assert_eq!(store.readdir_with_types("a").await.unwrap(), expected);
    assert_eq!(store.readdir("").await.unwrap(), ["a", "ab"]);
}

async fn removing_takes_what_was_asked(subject: StoreUnderTest) {
    let store = &subject.store;
    for path in ["a/b/c", "a/d", "ab", "e"] {
        store.write_file(path, b"x").await.unwrap();
    }
    assert_eq!(store.rm("a", Removal::One).await.unwrap_err(), FsError::NotEmpty { path: "a".to_owned() });
    assert!(store.exists("a/d").await.unwrap());
    store.rm("a", Removal::Everything).await.unwrap();
    store.rm("e", Removal::Everything).await.unwrap();
    assert_eq!(store.readdir("").await.unwrap(), ["ab"]);
    store.mkdir("empty").await.unwrap();
    store.rm("empty", Removal::One).await.unwrap();
    store.rm("ab", Removal::One).await.unwrap();
    assert_eq!(store.readdir("").await.unwrap(), [""; 0]);
}

async fn renaming_replaces_a_file(subject: StoreUnderTest) {
    let store = &subject.store;
    store.write_file("a", b"new").await.unwrap();
    store.write_file("d/b", b"old").await.unwrap();
    store.rename("a", "d/b").await.unwrap();
    assert_eq!(store.read_file("d/b").await.unwrap(), b"new");
    assert!(!store.exists("a").await.unwrap());
    store.rename("d/b", "gone/b").await.unwrap_err();
    assert_eq!(store.read_file("d/b").await.unwrap(), b"new");
}

async fn renaming_moves_a_folder(subject: StoreUnderTest) {
    let store = &subject.store;
    store.write_file("a/b/c", b"x").await.unwrap();
    store.write_file("ab", b"beside").await.unwrap();
    store.rename("a", "n").await.unwrap();
    assert_eq!(store.read_file("n/b/c").await.unwrap(), b"x");
    assert_eq!(store.readdir("").await.unwrap(), ["ab", "n"]);
    store.rename("n", "n/inside").await.unwrap_err();
    store.write_file("m/full", b"x").await.unwrap();
    assert_eq!(store.rename("n", "m").await.unwrap_err(), FsError::NotEmpty { path: "n".to_owned() });
    assert_eq!(store.rename("n", "ab").await.unwrap_err(), FsError::NotADirectory { path: "n".to_owned() });
    assert_eq!(store.rename("ab", "n").await.unwrap_err(), FsError::IsADirectory { path: "ab".to_owned() });
    assert_eq!(store.read_file("n/b/c").await.unwrap(), b"x");
}

async fn what_is_there_exists(subject: StoreUnderTest) {
    let store = &subject.store;
    store.write_file("a/b", b"x").await.unwrap();
    for (path, there) in [("a", true), ("a/b", true), ("a/c", false), ("b/c", false)] {
        assert_eq!(store.exists(path).await.unwrap(), there, "{path}");
    }
}

async fn text_is_read_and_written_as_text(subject: StoreUnderTest) {
    let store = &subject.store;
    store.write_text("a", "Bäume\n").await.unwrap();
    store.append_text("a", "🌲\n").await.unwrap();
    assert_eq!(store.read_text("a").await.unwrap(), "Bäume\n🌲\n");
    assert_eq!(store.read_text("gone").await.unwrap_err().code(), "ENOENT");
}

async fn what_is_no_text_is_refused_or_kept_exactly(subject: StoreUnderTest) {
    let store = &subject.store;
    let bytes: Vec<u8> = (0..=255).collect();
    let not_text = |path: &str| FsError::NotText { path: path.to_owned() };
    match subject.files {
        Files::Bytes => {
            store.write_file("a/b", &bytes).await.unwrap();
            store.append_file("a/b", &bytes[128..]).await.unwrap();
            store.append_file("a/new", &bytes[128..]).await.unwrap();
            assert_eq!(store.read_file("a/b").await.unwrap(), [&bytes, &bytes[128..]].concat());
            assert_eq!(store.read_file("a/new").await.unwrap(), bytes[128..]);
            assert_eq!(store.read_text("a/b").await.unwrap_err(), not_text("a/b"));
            store.truncate("a/b", 200).await.unwrap();
            assert_eq!(store.read_file("a/b").await.unwrap(), bytes[..200]);
        }
        Files::Text => {
            store.write_file("a/b", b"text").await.unwrap();
            assert_eq!(store.write_file("a/b", &bytes).await.unwrap_err(), not_text("a/b"));
            assert_eq!(store.append_file("a/b", &bytes).await.unwrap_err(), not_text("a/b"));
            assert_eq!(store.read_file("a/b").await.unwrap(), b"text");
        }
    }
}

async fn lines_come_one_by_one(subject: StoreUnderTest) {
    let store = &subject.store;
    let long = "x".repeat(200_000);
    for (text, expected) in [
        ("", &[][..]),
        ("\n", &[("", true)]),
        ("one\ntwo\n", &[("one", true), ("two", true)]),
        ("one\n\ntwo", &[("one", true), ("", true), ("two", false)]),
        (&format!("{long}\nshort\r\n"), &[(long.as_str(), true), ("short\r", true)]),
    ] {
        store.write_text("a", text).await.unwrap();
        let mut lines = store.read_lines("a", 1_000_000).await.unwrap();
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push((String::from_utf8(line.bytes).unwrap(), line.ended));
        }
        let read: Vec<_> = read.iter().map(|(text, ended)| (text.as_str(), *ended)).collect();
        assert_eq!(read, expected);
    }
    assert_eq!(store.read_lines("gone", 10).await.unwrap_err(), FsError::NotFound { path: "gone".to_owned() });
}

async fn a_line_that_is_too_long_is_passed_over(subject: StoreUnderTest) {
    let store = &subject.store;
    let text = format!("ok\n{}\n12345\n{}", "x".repeat(150_000), "y".repeat(6));
    store.write_text("a", &text).await.unwrap();
    let mut lines = store.read_lines("a", 5).await.unwrap();
    let long = |line| FsError::LongLine { path: "a".to_owned(), line, limit: 5 };
    assert_eq!(lines.next().await.unwrap().unwrap().bytes, b"ok");
    assert_eq!(lines.next().await.unwrap_err(), long(2));
    assert_eq!(lines.next().await.unwrap().unwrap().bytes, b"12345");
    assert_eq!(lines.next().await.unwrap_err(), long(4));
    assert_eq!(lines.next().await.unwrap(), None);
}

async fn times_are_told(subject: StoreUnderTest) {
    let store = &subject.store;
    let before = SystemTime::now() - Duration::from_secs(2);
    store.write_file("a", b"x").await.unwrap();
    let stat = store.stat("a").await.unwrap();
    for time in [stat.modified, stat.created] {
        assert!(time > before && time < SystemTime::now() + Duration::from_secs(2), "{time:?}");
    }
    assert_eq!(store.stat("").await.unwrap().kind, FileKind::Folder);
}

async fn a_place_is_spelled_by_the_store(subject: StoreUnderTest) {
    let store = &subject.store;
    let root = store.location("").unwrap();
    assert!(store.conventions().is_absolute(&root), "{root}");
    assert_eq!(store.location("a/b.md").unwrap(), store.join(&[&root, "a", "b.md"]));
    assert_eq!(store.location("..").unwrap_err().code(), "EINVAL");
    assert!(store.session_state_path().is_none_or(|path| path == root));
    assert!(store.initial_cwd().is_none_or(|path| store.conventions().is_absolute(&path)));
}

async fn one_file_has_one_lock_key(subject: StoreUnderTest) {
    let store = &subject.store;
    assert_eq!(store.lock_key("a/b").unwrap(), store.without_links().lock_key("a/b").unwrap());
    assert_ne!(store.lock_key("a/b").unwrap(), store.lock_key("a/c").unwrap());
    assert_ne!(store.lock_key("a/b").unwrap(), MemoryFs::default().lock_key("a/b").unwrap());
    assert!(store.lock_key("a/b").unwrap().ends_with(&store.location("a/b").unwrap()));
}

async fn temporary_files_lie_apart(subject: StoreUnderTest) {
    let store = &subject.store;
    let temp = store.tmpdir().unwrap();
    temp.write_file("spill-1.txt", b"output").await.unwrap();
    assert_eq!(store.tmpdir().unwrap().read_file("spill-1.txt").await.unwrap(), b"output");
    assert!(temp.location("spill-1.txt").unwrap().ends_with("spill-1.txt"));
    assert_eq!(temp.backend(), store.backend());
    assert_eq!(temp.session_state_path(), None);
    temp.rm("spill-1.txt", Removal::One).await.unwrap();
}

async fn appends_happen_in_order(subject: StoreUnderTest) {
    let store = &subject.store;
    let mut expected = String::new();
    let mut appends = Vec::new();
    for number in 0..50 {
        let line = format!("{number}\n");
        expected += &line;
        store.append_text("a/one", &line).await.unwrap();
        let store = Arc::clone(store);
        appends.push(tokio::spawn(async move { store.append_text("a/many", &line).await }));
    }
    for append in appends {
        append.await.unwrap().unwrap();
    }
    assert_eq!(store.read_text("a/one").await.unwrap(), expected);
    // Begun at once by many, each append is there once and complete.
    let mut many: Vec<u32> =
        (store.read_text("a/many").await.unwrap().lines()).map(|line| line.parse().unwrap()).collect();
    many.sort_unstable();
    assert_eq!(many, (0..50).collect::<Vec<_>>());
}

async fn a_confined_view_shows_its_folder_only(subject: StoreUnderTest) {
    let store: &Store = &subject.store;
    store.write_text("s/files/a.md", "in").await.unwrap();
    store.write_text("s/secret", "out").await.unwrap();
    let view = Confined::new(store.as_ref(), "s/files").unwrap();
    assert_eq!(view.read_text("a.md").await.unwrap(), "in");
    view.write_text("b/c.md", "new").await.unwrap();
    assert_eq!(view.readdir("").await.unwrap(), ["a.md", "b"]);
    assert_eq!(store.read_text("s/files/b/c.md").await.unwrap(), "new");
    assert_eq!(view.read_text("gone").await.unwrap_err(), FsError::NotFound { path: "gone".to_owned() });
    assert_eq!(view.location("a.md").unwrap(), store.location("s/files/a.md").unwrap());
    assert_eq!(view.lock_key("a.md").unwrap(), store.lock_key("s/files/a.md").unwrap());
    let mut lines = view.read_lines("a.md", 1).await.unwrap();
    assert_eq!(lines.next().await.unwrap_err().path(), "a.md");
    assert_eq!(view.read_text("../secret").await.unwrap_err().code(), "EINVAL");
}

async fn the_longest_name_can_be_used(subject: StoreUnderTest) {
    let name = "p".repeat(255);
    subject.store.write_text(&name, "x").await.unwrap();
    subject.store.append_text(&name, "y").await.unwrap();
    assert_eq!(subject.store.read_text(&name).await.unwrap(), "xy");
}
