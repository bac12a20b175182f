//! Records of a journal that are whole and cannot be true.

use grove_storage::{JournalStorage, SegmentFiles, SyncMode};

use crate::{damage_at_start, event, line, written};

#[tokio::test]
async fn a_mark_that_no_agent_comes_to_is_not_taken_from_the_journal() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("journal");
    written(&folder, 1..4).await;
    for odd in ["18446744073709551615", "9007199254740993"] {
        for mark in
            [format!(r#"{{"process":7,"frame":{odd}}}"#), format!(r#"{{"process":7,"frame":3,"open":[{odd}]}}"#)]
        {
            let (mut journal, _) = SegmentFiles::open(&folder).unwrap();
            let record = line(&format!(r#"{{"mark":{{"session":"s","chat":"main","mark":{mark}}}}}"#));
            journal.append([record, event(9)].concat(), SyncMode::Now, 9).await.unwrap();
            drop(journal);
            let (_, contents) = SegmentFiles::open(&folder).unwrap();
            let damage = damage_at_start(contents).await;
            let damage = damage.last().unwrap();
            assert!(damage.contains("a frame that no agent comes to"), "{damage:?}");
        }
    }
}
