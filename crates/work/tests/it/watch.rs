//! Watching, with the system's real watcher.
//!
//! Silence is checked with a mark: events come in order, so once the mark is reported, all earlier events would have
//! been.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::time::Duration;

use grove_work::PathChangeKind::{Added, Changed, Deleted};
use grove_work::{
    FileError, PathChangeKind, Policy, Roots, Watch, WatchError, WatchEvent, WatchLimits, WatchRequest, Watcher,
};
use tokio::time::timeout;

use crate::test_folder::TestFolder;

const DEADLINE: Duration = Duration::from_secs(20);

fn watcher(limits: WatchLimits) -> Watcher {
    let (watcher, reader) = Watcher::start(limits).unwrap();
    tokio::spawn(reader.run());
    watcher
}

fn request(path: impl AsRef<Path>) -> WatchRequest {
    WatchRequest { path: path.as_ref().to_owned(), recursive: false, includes: Vec::new(), excludes: Vec::new() }
}

fn recursive(path: impl AsRef<Path>) -> WatchRequest {
    WatchRequest { recursive: true, ..request(path) }
}

/// A watch on `work`, and all its notices, as paths relative to it.
struct WatchFixture {
    watch: Watch,
    told: Vec<(String, PathChangeKind)>,
}

impl WatchFixture {
    async fn new(place: &TestFolder, request: WatchRequest) -> Self {
        place.folder("work");
        let watch = watcher(WatchLimits::default()).watch(&place.policy(), request).await.unwrap();
        Self::from(watch)
    }

    fn from(watch: Watch) -> Self {
        Self { watch, told: Vec::new() }
    }

    async fn notice(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        let told = &self.told;
        timeout(DEADLINE, self.watch.next()).await.unwrap_or_else(|_| panic!("nothing more than {told:?}"))
    }

    /// Takes notices until a change is reported, and returns all changes since the last call.
    async fn until(&mut self, path: &str, kind: PathChangeKind) -> Vec<(String, PathChangeKind)> {
        while !self.told.contains(&(path.to_owned(), kind)) {
            match self.notice().await {
                Some(Ok(WatchEvent::Changes(changes))) => {
                    let root = self.watch.path().to_owned();
                    self.told.extend(changes.into_iter().map(|change| {
                        (change.path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(), change.kind)
                    }));
                }
                other => panic!("{other:?} after {:?}", self.told),
            }
        }
        std::mem::take(&mut self.told)
    }
}

fn told(changes: &[(&str, PathChangeKind)]) -> Vec<(String, PathChangeKind)> {
    changes.iter().map(|(path, kind)| ((*path).to_owned(), *kind)).collect()
}

fn append(path: &Path) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(b"more").unwrap();
}

#[tokio::test]
async fn a_folder_tells_what_is_made_changed_and_removed_in_it() {
    let place = TestFolder::new();
    let mut watched = WatchFixture::new(&place, request(place.path("work"))).await;
    let file = place.write("work/file", "f");
    assert_eq!(watched.until("file", Added).await, told(&[("file", Added)]));
    append(&file);
    assert_eq!(watched.until("file", Changed).await, told(&[("file", Changed)]));
    fs::rename(&file, place.path("work/renamed")).unwrap();
    assert_eq!(watched.until("renamed", Added).await, told(&[("file", Deleted), ("renamed", Added)]));
    fs::remove_file(place.path("work/renamed")).unwrap();
    assert_eq!(watched.until("renamed", Deleted).await, told(&[("renamed", Deleted)]));
    fs::create_dir(place.path("work/folder")).unwrap();
    assert_eq!(watched.until("folder", Added).await, told(&[("folder", Added)]));
}

#[tokio::test]
async fn what_happens_at_once_is_told_at_once_and_added_up() {
    let place = TestFolder::new();
    let kept = place.write("work/kept", "k");
    let mut watched = WatchFixture::new(&place, request(place.path("work"))).await;
    for _ in 0..50 {
        append(&kept);
    }
    let passing = place.write("work/passing", "p");
    fs::remove_file(passing).unwrap();
    place.write("work/mark", "m");
    // The system may be slow enough for several notices, but never for one per event.
    let changes = watched.until("mark", Added).await;
    assert!(changes.len() < 20, "{changes:?}");
    assert_eq!(changes.first().map(|(path, kind)| (path.as_str(), *kind)), Some(("kept", Changed)), "{changes:?}");
}

#[tokio::test]
async fn only_a_recursive_watch_tells_of_folders_below() {
    let place = TestFolder::new();
    place.write("work/deep/er/file", "f");
    let mut flat = WatchFixture::new(&place, request(place.path("work"))).await;
    let mut deep = WatchFixture::new(&place, recursive(place.path("work"))).await;
    append(&place.path("work/deep/er/file"));
    place.write("work/mark", "m");
    assert_eq!(flat.until("mark", Added).await, told(&[("mark", Added)]));
    let mut changes = deep.until("mark", Added).await;
    changes.sort();
    assert_eq!(changes, told(&[("deep/er/file", Changed), ("mark", Added)]));
}

#[tokio::test]
async fn new_folders_are_told_with_what_is_in_them_and_watched() {
    let place = TestFolder::new();
    let mut watched = WatchFixture::new(&place, recursive(place.path("work"))).await;
    place.write("work/a/b/c/file", "f");
    let changes = watched.until("a/b/c/file", Added).await;
    for folder in ["a", "a/b", "a/b/c"] {
        assert!(changes.contains(&(folder.to_owned(), Added)), "{changes:?}");
    }
    append(&place.path("work/a/b/c/file"));
    watched.until("a/b/c/file", Changed).await;
    place.write("work/a/b/other", "o");
    watched.until("a/b/other", Added).await;
    // A folder that was filled elsewhere.
    place.write("elsewhere/deep/file", "f");
    fs::rename(place.path("elsewhere"), place.path("work/moved-in")).unwrap();
    watched.until("moved-in/deep/file", Added).await;
    place.write("work/moved-in/deep/another", "a");
    watched.until("moved-in/deep/another", Added).await;
}

#[tokio::test]
async fn a_renamed_folder_is_watched_under_its_new_name_by_every_watch() {
    let place = TestFolder::new();
    place.write("work/old/deep/file", "f");
    let watcher = watcher(WatchLimits::default());
    let mut watches = Vec::new();
    for _ in 0..2 {
        watches.push(WatchFixture::from(watcher.watch(&place.policy(), recursive(place.path("work"))).await.unwrap()));
    }
    fs::rename(place.path("work/old"), place.path("work/new")).unwrap();
    // Each does its part after the other, so that the second one unsubscribes what the first has subscribed again.
    for watched in &mut watches {
        let changes = watched.until("new/deep/file", Added).await;
        assert_eq!(changes[..2], told(&[("new", Added), ("new/deep", Added)])[..]);
        assert!(changes.contains(&("old".into(), Deleted)), "{changes:?}");
    }
    append(&place.path("work/new/deep/file"));
    for watched in &mut watches {
        assert_eq!(watched.until("new/deep/file", Changed).await, told(&[("new/deep/file", Changed)]));
    }
    // And a new one of the old name.
    place.write("work/old/deep/file", "f");
    for watched in &mut watches {
        watched.until("old/deep/file", Added).await;
    }
    append(&place.path("work/old/deep/file"));
    for watched in &mut watches {
        assert_eq!(watched.until("old/deep/file", Changed).await, told(&[("old/deep/file", Changed)]));
    }
}

#[tokio::test]
async fn a_folder_that_goes_is_told_once_for_all_that_was_in_it() {
    let place = TestFolder::new();
    place.write("work/folder/a", "a");
    place.write("work/folder/deep/b", "b");
    let limits = WatchLimits { debounce: Duration::from_millis(500), ..WatchLimits::default() };
    let watch = watcher(limits).watch(&place.policy(), recursive(place.path("work"))).await.unwrap();
    let mut watched = WatchFixture::from(watch);
    fs::rename(place.path("work/folder"), place.path("elsewhere")).unwrap();
    assert_eq!(watched.until("folder", Deleted).await, told(&[("folder", Deleted)]));
    // Changes to it elsewhere do not matter any more.
    append(&place.path("elsewhere/deep/b"));
    place.write("work/mark", "m");
    assert_eq!(watched.until("mark", Added).await, told(&[("mark", Added)]));
}

#[tokio::test]
async fn a_watched_file_is_followed_through_its_replacements() {
    let place = TestFolder::new();
    let file = place.write("work/file", "f");
    place.write("work/beside", "b");
    let mut watched = WatchFixture::new(&place, request(&file)).await;
    append(&place.path("work/beside"));
    append(&file);
    assert_eq!(watched.until("", Changed).await, told(&[("", Changed)]));
    // As editors save.
    fs::rename(place.write("work/file.new", "n"), &file).unwrap();
    assert_eq!(watched.until("", Changed).await, told(&[("", Changed)]));
    fs::remove_file(&file).unwrap();
    assert_eq!(watched.until("", Deleted).await, told(&[("", Deleted)]));
    fs::write(&file, "again").unwrap();
    assert_eq!(watched.until("", Added).await, told(&[("", Added)]));
    append(&file);
    assert_eq!(watched.until("", Changed).await, told(&[("", Changed)]));
}

#[tokio::test]
async fn a_watched_folder_may_go_and_come_back() {
    let place = TestFolder::new();
    place.write("work/folder/file", "f");
    let mut watched = WatchFixture::new(&place, recursive(place.path("work/folder"))).await;
    fs::remove_dir_all(place.path("work/folder")).unwrap();
    watched.until("", Deleted).await;
    place.write("work/folder/deep/file", "f");
    watched.until("deep/file", Added).await;
    append(&place.path("work/folder/deep/file"));
    watched.until("deep/file", Changed).await;
}

#[tokio::test]
async fn excluded_paths_are_silent_and_only_included_ones_are_told() {
    let place = TestFolder::new();
    place.folder("work/node_modules/deep");
    place.folder("work/src");
    let excludes = vec!["**/node_modules/**".to_owned(), "*.log".to_owned()];
    let mut all =
        WatchFixture::new(&place, WatchRequest { excludes: excludes.clone(), ..recursive(place.path("work")) }).await;
    let includes = vec!["**/*.rs".to_owned(), "mark".to_owned()];
    let mut some =
        WatchFixture::new(&place, WatchRequest { includes, excludes, ..recursive(place.path("work")) }).await;
    place.write("work/node_modules/deep/a.rs", "a");
    place.write("work/sub/node_modules/b/b.rs", "b");
    place.write("work/x.log", "x");
    place.write("work/src/x.log", "x");
    place.write("work/src/a.rs", "a");
    place.write("work/mark", "m");
    let paths = |changes: Vec<(String, PathChangeKind)>| {
        let mut paths: Vec<String> = changes.into_iter().map(|(path, _)| path).collect();
        paths.sort();
        paths.dedup();
        paths
    };
    assert_eq!(
        paths(all.until("mark", Added).await),
        ["mark", "src/a.rs", "src/x.log", "sub", "sub/node_modules"],
        "a folder itself is not in it"
    );
    assert_eq!(paths(some.until("mark", Added).await), ["mark", "src/a.rs"]);
}

#[tokio::test]
async fn excluded_folders_do_not_count() {
    let place = TestFolder::new();
    for n in 0..20 {
        place.folder(&format!("work/node_modules/{n}"));
    }
    let watcher = watcher(WatchLimits { folders: 2, ..WatchLimits::default() });
    let excludes = vec!["**/node_modules/**".to_owned()];
    watcher.watch(&place.policy(), WatchRequest { excludes, ..recursive(place.path("work")) }).await.unwrap();
}

#[tokio::test]
async fn what_is_private_is_silent_even_when_it_is_made_later() {
    let place = TestFolder::new();
    place.folder("work");
    let mut watched = WatchFixture::new(&place, recursive(place.path("work"))).await;
    place.write("work/private/deep/token", "t");
    place.write("work/mark", "m");
    assert_eq!(watched.until("mark", Added).await, told(&[("mark", Added)]));
    append(&place.path("work/private/deep/token"));
    fs::remove_dir_all(place.path("work/private")).unwrap();
    place.write("work/mark2", "m");
    assert_eq!(watched.until("mark2", Added).await, told(&[("mark2", Added)]));
}

#[tokio::test]
async fn links_that_lead_out_are_silent_and_none_is_followed() {
    let place = TestFolder::new();
    let outside = place.write("outside/file", "o");
    let inside = place.write("work/inside/file", "i");
    symlink(place.path("outside"), place.path("work/before")).unwrap();
    let mut watched = WatchFixture::new(&place, recursive(place.path("work"))).await;
    symlink(place.path("outside"), place.path("work/after")).unwrap();
    symlink(place.path("outside/missing"), place.path("work/dangling")).unwrap();
    symlink("inside", place.path("work/link")).unwrap();
    append(&outside);
    place.write("outside/new", "n");
    append(&inside);
    place.write("work/mark", "m");
    let mut changes = watched.until("mark", Added).await;
    changes.sort();
    assert_eq!(changes, told(&[("inside/file", Changed), ("link", Added), ("mark", Added)]));
}

#[tokio::test]
async fn changes_are_told_under_the_path_that_was_asked_for() {
    let place = TestFolder::new();
    place.write("work/real/file", "f");
    symlink("real", place.path("work/link")).unwrap();
    let watch = watcher(WatchLimits::default()).watch(&place.policy(), request(place.path("work/link"))).await.unwrap();
    let mut watched = WatchFixture::from(watch);
    append(&place.path("work/real/file"));
    let Some(Ok(WatchEvent::Changes(changes))) = watched.notice().await else { panic!() };
    assert_eq!(changes[0].path, place.path("work/link/file"));
}

#[tokio::test]
async fn beyond_the_bound_there_is_one_overflow_and_the_watch_goes_on() {
    let place = TestFolder::new();
    place.folder("work/slow");
    place.folder("work/other");
    let watcher = watcher(WatchLimits { changes: 8, ..WatchLimits::default() });
    let policy = place.policy();
    let mut slow = WatchFixture::from(watcher.watch(&policy, recursive(place.path("work/slow"))).await.unwrap());
    let mut other = WatchFixture::from(watcher.watch(&policy, request(place.path("work/other"))).await.unwrap());
    for n in 0..100 {
        place.write(&format!("work/slow/new/{n}"), "x");
        place.write(&format!("work/slow/{n}"), "x");
    }
    // The system's events come in one order for all: after this one, all the others have been delivered.
    place.write("work/other/mark", "m");
    other.until("mark", Added).await;
    assert_eq!(slow.notice().await.unwrap().unwrap(), WatchEvent::Overflow);
    // Folders created meanwhile are watched, and nothing is left over.
    append(&place.path("work/slow/new/1"));
    assert_eq!(slow.until("new/1", Changed).await, told(&[("new/1", Changed)]));
}

#[tokio::test]
async fn what_the_system_lost_is_an_overflow_too() {
    let place = TestFolder::new();
    let files = [place.write("work/a", "a"), place.write("work/b", "b")];
    let (watcher, reader) = Watcher::start(WatchLimits::default()).unwrap();
    let watch = watcher.watch(&place.policy(), request(place.path("work"))).await.unwrap();
    let mut watched = WatchFixture::from(watch);
    // Nobody reads yet. Equal events in a row are one to the system, so they alternate.
    let queue: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    let mut files = files.map(|file| OpenOptions::new().append(true).open(file).unwrap());
    for _ in 0..=queue / 2 {
        for file in &mut files {
            file.write_all(b"x").unwrap();
        }
    }
    tokio::spawn(reader.run());
    // It is the queue's last event, so changes may be reported before it.
    while watched.notice().await.unwrap().unwrap() != WatchEvent::Overflow {}
    append(&place.path("work/a"));
    assert_eq!(watched.until("a", Changed).await, told(&[("a", Changed)]));
}

#[tokio::test]
async fn a_new_folder_with_more_in_it_than_can_be_told_is_an_overflow() {
    let place = TestFolder::new();
    place.folder("work");
    for n in 0..20 {
        place.write(&format!("full/{n}"), "x");
    }
    let watcher = watcher(WatchLimits { changes: 8, ..WatchLimits::default() });
    let watch = watcher.watch(&place.policy(), recursive(place.path("work"))).await.unwrap();
    let mut watched = WatchFixture::from(watch);
    fs::rename(place.path("full"), place.path("work/full")).unwrap();
    assert_eq!(watched.notice().await.unwrap().unwrap(), WatchEvent::Overflow);
    append(&place.path("work/full/1"));
    assert_eq!(watched.until("full/1", Changed).await, told(&[("full/1", Changed)]));
}

#[tokio::test]
async fn a_watch_has_a_bound_of_folders() {
    let place = TestFolder::new();
    place.folder("work/a/b");
    let limited = |folders| watcher(WatchLimits { folders, ..WatchLimits::default() });
    let refused = limited(2).watch(&place.policy(), recursive(place.path("work"))).await.unwrap_err();
    assert!(matches!(refused, WatchError::TooManyFolders { limit: 2, .. }), "{refused}");
    // A watch that grows past the limit ends, since it would miss changes.
    let watch = limited(3).watch(&place.policy(), recursive(place.path("work"))).await.unwrap();
    let mut watched = WatchFixture::from(watch);
    place.folder("work/c");
    let ended = watched.notice().await.unwrap().unwrap_err();
    assert!(matches!(ended, WatchError::TooManyFolders { limit: 3, .. }), "{ended}");
    assert!(watched.notice().await.is_none());
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused_with_the_reason() {
    let place = TestFolder::new();
    let file = place.write("work/file", "f");
    place.write("work/private/token", "t");
    let readable = place.write("readable/file", "r");
    let roots =
        Roots { read: vec![place.path("readable")], private: vec![place.path("work/private")], ..Roots::default() };
    let policy = Policy::new(roots, vec![place.path("work")]);
    let watcher = watcher(WatchLimits { patterns: 1, ..WatchLimits::default() });
    let refused = async |request| watcher.watch(&policy, request).await.unwrap_err();
    let missing = refused(request(place.path("work/missing"))).await;
    assert!(matches!(missing, WatchError::File(FileError::NotFound { .. })), "{missing}");
    for hidden in [place.path("outside"), place.path("work/private"), "/etc".into()] {
        let hidden = refused(request(hidden)).await;
        assert!(matches!(hidden, WatchError::File(FileError::Outside { .. })), "{hidden}");
    }
    // Readable folders can be watched file by file, but not for their names.
    watcher.watch(&policy, request(&readable)).await.unwrap();
    let names = refused(request(place.path("readable"))).await;
    assert!(matches!(names, WatchError::File(FileError::Outside { .. })), "{names}");
    let pattern = refused(WatchRequest { includes: vec!["a[".into()], ..request(&file) }).await;
    assert!(matches!(pattern, WatchError::BadPattern { .. }), "{pattern}");
    let patterns = refused(WatchRequest { includes: vec!["a".into(), "b".into()], ..request(&file) }).await;
    assert!(matches!(patterns, WatchError::TooManyPatterns { patterns: 2, limit: 1 }), "{patterns}");
}

#[tokio::test]
async fn a_dropped_watch_is_watched_by_nobody() {
    let place = TestFolder::new();
    let deep = place.folder("work/deep");
    let inode = format!("ino:{:x} ", fs::metadata(&deep).unwrap().ino());
    let is_watched = || {
        let watchers = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
        watchers.filter_map(|entry| fs::read_to_string(entry.path()).ok()).any(|info| info.contains(&inode))
    };
    let watcher = watcher(WatchLimits::default());
    let one = watcher.watch(&place.policy(), recursive(place.path("work"))).await.unwrap();
    let two = watcher.watch(&place.policy(), request(&deep)).await.unwrap();
    drop(one);
    assert!(is_watched());
    let mut two = WatchFixture::from(two);
    place.write("work/deep/file", "f");
    two.until("file", Added).await;
    drop(two);
    let gone = async {
        while is_watched() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, gone).await.expect("the folder is still watched");
}

#[tokio::test]
async fn a_call_that_is_given_up_loses_nothing() {
    let place = TestFolder::new();
    let mut watched = WatchFixture::new(&place, recursive(place.path("work"))).await;
    place.write("work/a/b/file", "f");
    // At any stage: gathering, or at work.
    for milliseconds in (0..200).step_by(7) {
        if let Ok(notice) = timeout(Duration::from_millis(milliseconds), watched.watch.next()).await {
            let Some(Ok(WatchEvent::Changes(changes))) = notice else { panic!("{notice:?}") };
            assert!(changes.iter().any(|change| change.path.ends_with("a/b/file")), "{changes:?}");
            return;
        }
    }
    watched.until("a/b/file", Added).await;
}

#[tokio::test]
async fn without_its_reader_a_watch_ends() {
    let place = TestFolder::new();
    place.folder("work");
    let (watcher, reader) = Watcher::start(WatchLimits::default()).unwrap();
    let watch = watcher.watch(&place.policy(), request(place.path("work"))).await.unwrap();
    let mut watched = WatchFixture::from(watch);
    drop(reader);
    assert!(matches!(watched.notice().await, Some(Err(WatchError::Stopped))));
    assert!(watched.notice().await.is_none());
    let refused = watcher.watch(&place.policy(), request(place.path("work"))).await.unwrap_err();
    assert!(matches!(refused, WatchError::Stopped), "{refused}");
}

#[tokio::test]
async fn the_reader_ends_with_the_last_watch() {
    let place = TestFolder::new();
    place.folder("work");
    let (watcher, reader) = Watcher::start(WatchLimits::default()).unwrap();
    let reader = tokio::spawn(reader.run());
    let watch = watcher.watch(&place.policy(), request(place.path("work"))).await.unwrap();
    drop(watcher);
    let mut watched = WatchFixture::from(watch);
    place.write("work/file", "f");
    watched.until("file", Added).await;
    drop(watched);
    timeout(DEADLINE, reader).await.expect("the reader still runs").unwrap();
}
