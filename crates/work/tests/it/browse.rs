//! Listing, reading, resolving.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use grove_work::{FileContent, FileError, FileKind, FileMetadata, FolderEntry, SymlinkMode, list, read, resolve};

use crate::test_folder::TestFolder;

#[tokio::test]
async fn a_folder_is_listed_by_name_and_links_count_as_what_they_lead_to() {
    let place = TestFolder::new();
    place.write("work/notes.txt", "n");
    place.write("work/project/main.rs", "m");
    symlink("project", place.path("work/shortcut")).unwrap();
    symlink("nowhere", place.path("work/dangling")).unwrap();
    symlink("notes.txt", place.path("work/alias")).unwrap();
    let entries = list(&place.policy(), &place.path("work"), 5).await.unwrap();
    let entry = |name: &str, kind| FolderEntry { name: name.into(), kind };
    let expected = [
        entry("alias", FileKind::File),
        entry("dangling", FileKind::File),
        entry("notes.txt", FileKind::File),
        entry("project", FileKind::Folder),
        entry("shortcut", FileKind::Folder),
    ];
    assert_eq!(entries, expected);
}

#[tokio::test]
async fn a_folder_that_cannot_be_listed_is_refused_with_the_reason() {
    let place = TestFolder::new();
    let file = place.write("work/file", "f");
    place.write("work/other", "o");
    let policy = place.policy();
    let refused = list(&policy, &file, 10).await.unwrap_err();
    assert!(matches!(refused, FileError::NotAFolder { .. }), "{refused}");
    let refused = list(&policy, &place.path("work"), 1).await.unwrap_err();
    assert!(matches!(refused, FileError::TooManyEntries { limit: 1, .. }), "{refused}");
    let refused = list(&policy, &place.path("work/missing"), 10).await.unwrap_err();
    assert!(matches!(refused, FileError::NotFound { .. }), "{refused}");
    let refused = list(&policy, Path::new("/etc"), 10).await.unwrap_err();
    assert!(matches!(refused, FileError::Outside { .. }), "{refused}");
}

#[tokio::test]
async fn a_file_is_read_whole_with_the_type_that_its_name_says() {
    let place = TestFolder::new();
    let picture = place.write("work/picture.PNG", [0xff, 0x00]);
    let text = place.write("work/text", "grün");
    let policy = place.policy();
    let content = read(&policy, &picture, 2).await.unwrap();
    assert_eq!(content, FileContent { bytes: vec![0xff, 0x00], content_type: Some("image/png") });
    assert_eq!(content.into_text(), Err(vec![0xff, 0x00]));
    let content = read(&policy, &text, 100).await.unwrap();
    assert_eq!(content.content_type, None);
    assert_eq!(content.into_text().unwrap(), "grün");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_refused_with_the_reason() {
    let place = TestFolder::new();
    let file = place.write("work/file", "12345");
    let policy = place.policy();
    let refused = read(&policy, &file, 4).await.unwrap_err();
    assert!(matches!(refused, FileError::TooLarge { limit: 4, .. }), "{refused}");
    let refused = read(&policy, &place.path("work"), 4).await.unwrap_err();
    assert!(matches!(refused, FileError::NotAFile { .. }), "{refused}");
    let refused = read(&policy, &place.path("work/missing"), 4).await.unwrap_err();
    assert!(matches!(refused, FileError::NotFound { .. }), "{refused}");
    let refused = read(&policy, &place.path("work/../elsewhere"), 4).await.unwrap_err();
    assert!(matches!(refused, FileError::Outside { .. }), "{refused}");
}

#[tokio::test]
async fn a_pipe_is_no_file_and_nobody_waits_for_it() {
    let place = TestFolder::new();
    let pipe = place.folder("work").join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = read(&place.policy(), &pipe, 10).await.unwrap_err();
    assert!(matches!(refused, FileError::NotAFile { .. }), "{refused}");
}

#[tokio::test]
async fn a_path_resolves_to_what_it_leads_to() {
    let place = TestFolder::new();
    let file = place.write("work/deep/page.html", "12345");
    symlink("deep", place.path("work/link")).unwrap();
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
    let policy = place.policy();
    let through = place.path("work/link/page.html");
    let FileMetadata { path, kind, size, modified: told, content_type, etag, .. } =
        resolve(&policy, &through, SymlinkMode::Follow).await.unwrap();
    assert_eq!((path, kind, size), (file.clone(), FileKind::File, Some(5)));
    assert_eq!((told, content_type), (Some(modified), Some("text/html")));
    let kept = resolve(&policy, &through, SymlinkMode::NoFollow).await.unwrap();
    assert_eq!((kept.path, kept.kind, kept.etag), (through, FileKind::File, etag), "a link on the way is followed");
    let folder = resolve(&policy, &place.path("work/link"), SymlinkMode::Follow).await.unwrap();
    assert_eq!((folder.path, folder.kind), (place.path("work/deep"), FileKind::Folder));
    assert_eq!((folder.size, folder.content_type), (None, None));
}

#[tokio::test]
async fn a_link_that_is_kept_is_described_itself() {
    let place = TestFolder::new();
    place.write("outside/page.html", "secret");
    place.write("work/private/token", "t");
    let link = place.path("work/way-out");
    symlink(place.path("outside/page.html"), &link).unwrap();
    symlink("/anywhere", place.path("work/private/link")).unwrap();
    symlink(&link, place.path("outside/link")).unwrap();
    let policy = place.policy();
    let kept = resolve(&policy, &link, SymlinkMode::NoFollow).await.unwrap();
    assert_eq!((&kept.path, kept.kind, kept.content_type), (&link, FileKind::Link, None));
    assert!(matches!(resolve(&policy, &link, SymlinkMode::Follow).await, Err(FileError::Outside { .. })));
    for hidden in ["work/private/link", "work/private/token", "outside/link"] {
        let refused = resolve(&policy, &place.path(hidden), SymlinkMode::NoFollow).await.unwrap_err();
        assert!(matches!(refused, FileError::Outside { .. }), "{refused}");
    }
}

#[tokio::test]
async fn a_missing_path_does_not_resolve() {
    let place = TestFolder::new();
    place.folder("work");
    for links in [SymlinkMode::Follow, SymlinkMode::NoFollow] {
        let refused = resolve(&place.policy(), &place.path("work/missing"), links).await.unwrap_err();
        assert!(matches!(refused, FileError::NotFound { .. }), "{refused}");
    }
}

#[tokio::test]
async fn the_etag_is_another_after_a_change_and_after_a_replacement() {
    let place = TestFolder::new();
    let file = place.write("work/file", "one");
    let policy = place.policy();
    let etag = async || resolve(&policy, &file, SymlinkMode::Follow).await.unwrap().etag;
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    let first = etag().await;
    assert_eq!(etag().await, first);
    // The same size and the same time, but another file.
    let other = place.write("work/other", "two");
    File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
    fs::rename(&other, &file).unwrap();
    let second = etag().await;
    assert_ne!(second, first);
    File::options().write(true).open(&file).unwrap().set_modified(modified + Duration::from_nanos(1000)).unwrap();
    assert_ne!(etag().await, second);
}
