//! The readers on a store.

use grove_fs::{MemoryFs, SessionFs};
use grove_tree::LogError;
use grove_tree::store::{IndexOrigin, open_log, open_log_with_side_index, read_lines, read_tail, write_side_index};

use crate::samples;
use crate::support::{branch, ids_from, log_of, opened, user};

const LOG: &str = "s/events.jsonl";
const SIDE: &str = "s/events.idx";

async fn store(bytes: impl AsRef<[u8]>) -> MemoryFs {
    let store = MemoryFs::default();
    store.write_file(LOG, bytes.as_ref()).await.unwrap();
    store
}

/// A chain of entries, each a few hundred bytes.
fn long(count: u32) -> String {
    let entry = |number: u32| {
        let parent = number.checked_sub(1).map(|number| number.to_string());
        let mut entry = user(&number.to_string(), parent.as_deref(), 1);
        entry["message"]["content"] = "x".repeat(300).into();
        entry
    };
    log_of(&(0..count).map(entry).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_log_on_a_store_is_the_log_of_its_bytes() {
    for (name, bytes) in samples::all() {
        let store = store(&bytes).await;
        let on_store = open_log(&store, LOG, &mut ids_from(1)).await.unwrap();
        let in_memory = opened(&bytes);
        assert_eq!(branch(&on_store.index), branch(in_memory.index()), "{name}");
        assert_eq!(on_store.migrated.map(|migration| migration.from), in_memory.migrated_from(), "{name}");
        assert_eq!(store.read_file(LOG).await.unwrap(), bytes, "{name}: reading changes nothing");
    }
    let missing = open_log(&MemoryFs::default(), LOG, &mut ids_from(1)).await.unwrap_err();
    assert!(matches!(missing, LogError::Fs(_)), "{missing}");
}

#[tokio::test]
async fn a_log_of_many_chunks_is_read_whole() {
    let text = long(9000);
    assert!(text.len() > 3 << 20);
    let opened = open_log(&store(&text).await, LOG, &mut ids_from(1)).await.unwrap();
    assert_eq!(opened.index.len(), 9000);
    assert_eq!(opened.index.damage().len(), 0);
}

#[tokio::test]
async fn with_a_side_index_only_what_was_appended_is_read() {
    let store = store(long(500)).await;
    let mut no_ids = || unreachable!();
    let first = open_log_with_side_index(&store, LOG, SIDE, &mut no_ids).await.unwrap();
    assert_eq!(first.origin, IndexOrigin::Log);
    assert!(write_side_index(&store, LOG, SIDE, &first.index).await.unwrap());
    let second = open_log_with_side_index(&store, LOG, SIDE, &mut no_ids).await.unwrap();
    assert_eq!(second.origin, IndexOrigin::SideIndex { read: 0 });
    assert_eq!(branch(&second.index), branch(&first.index));

    let more = format!("{}\n", user("more", Some("499"), 9));
    store.append_file(LOG, more.as_bytes()).await.unwrap();
    let third = open_log_with_side_index(&store, LOG, SIDE, &mut no_ids).await.unwrap();
    assert_eq!(third.origin, IndexOrigin::SideIndex { read: more.len() as u64 });
    assert_eq!(branch(&third.index).len(), 501);

    // With a replaced or cut log, or an invalid side index, the log is read.
    store.write_file(LOG, long(499).as_bytes()).await.unwrap();
    let cut = open_log_with_side_index(&store, LOG, SIDE, &mut no_ids).await.unwrap();
    assert_eq!((cut.origin, cut.index.len()), (IndexOrigin::Log, 499));
    store.write_file(SIDE, b"nonsense").await.unwrap();
    let again = open_log_with_side_index(&store, LOG, SIDE, &mut no_ids).await.unwrap();
    assert_eq!(again.origin, IndexOrigin::Log);
}

#[tokio::test]
async fn a_large_side_index_is_written_in_pieces_and_replaces_one_that_was_not_finished() {
    let store = store(long(10_000)).await;
    let mut no_ids = || unreachable!();
    let first = open_log(&store, LOG, &mut no_ids).await.unwrap();
    let unfinished = format!("{SIDE}.new");
    store.write_file(&unfinished, b"the beginning of another one").await.unwrap();
    for _ in 0..2 {
        assert!(write_side_index(&store, LOG, SIDE, &first.index).await.unwrap());
        let again = open_log_with_side_index(&store, LOG, SIDE, &mut no_ids).await.unwrap();
        assert_eq!(again.origin, IndexOrigin::SideIndex { read: 0 });
        assert_eq!(branch(&again.index), branch(&first.index));
        assert!(!store.exists(&unfinished).await.unwrap());
    }
}

#[tokio::test]
async fn a_log_that_does_not_end_whole_has_no_side_index() {
    let store = store(log_of(&[user("a", None, 1)]).trim_end()).await;
    let opened = open_log(&store, LOG, &mut ids_from(1)).await.unwrap();
    assert!(!write_side_index(&store, LOG, SIDE, &opened.index).await.unwrap());
    assert!(!store.exists(SIDE).await.unwrap());
}

#[tokio::test]
async fn the_newest_entries_are_read_by_their_places() {
    let text = long(3000);
    let store = store(&text).await;
    let log = opened(&text);
    let index = log.index();
    let tail = read_tail(&store, LOG, index, 5).await.unwrap();
    let shown: Vec<_> = tail.iter().map(|(entry, _)| index.id(*entry)).collect();
    assert_eq!(shown, ["2995", "2996", "2997", "2998", "2999"]);
    assert!(tail.iter().all(|(entry, line)| log.line(*entry) == line));
    // In any order, near and far.
    let some: Vec<_> = ["2000", "3", "2", "2999"].iter().map(|id| index.find(id).unwrap()).collect();
    let lines = read_lines(&store, LOG, index, &some).await.unwrap();
    assert!(some.iter().zip(&lines).all(|(entry, line)| log.line(*entry) == line));
    assert_eq!(read_tail(&store, LOG, index, 1_000_000).await.unwrap().len(), 3000);

    store.truncate(LOG, 5000).await.unwrap();
    let error = read_tail(&store, LOG, index, 5).await.unwrap_err();
    assert!(error.to_string().contains("shorter than its index says"), "{error}");
}

#[test]
fn opening_can_be_left_to_any_thread() {
    fn is_send<T: Send>(_: T) {}
    let store = MemoryFs::default();
    is_send(open_log_with_side_index(&store, LOG, SIDE, &mut ids_from(1)));
}
