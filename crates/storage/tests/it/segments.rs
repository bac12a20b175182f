//! Files of a journal that are cut off or missing.

use std::sync::Arc;

use grove_fs::SessionFs;
use grove_storage::{JournalStorage, SegmentFiles, SyncMode, verify_all};

use crate::{damage_at_start, event, written};

/// The newest segments of a journal, oldest first.
fn segments(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

async fn found(folder: &std::path::Path) -> Vec<String> {
    let stores: Vec<Arc<dyn SessionFs>> = Vec::new();
    let checked = verify_all(folder, &stores).await;
    let (_, contents) = SegmentFiles::open(folder).unwrap();
    assert_eq!(checked, damage_at_start(contents).await, "check finds before a start what the start finds");
    checked
}

#[tokio::test]
async fn a_journal_that_is_cleanly_cut_off_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("journal");
    written(&folder, 1..4).await;
    written(&folder, 4..7).await;
    assert_eq!(found(&folder).await, Vec::<String>::new());
    written(&folder, 7..10).await;
    // Whole lines are missing at the end of the newest segment.
    let newest = segments(&folder).pop().unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    let keep = bytes.split_inclusive(|byte| *byte == b'\n').take(2).map(<[u8]>::len).sum::<usize>();
    std::fs::write(&newest, &bytes[..keep]).unwrap();
    let damage = found(&folder).await;
    assert!(damage.len() == 1 && damage[0].contains("the rest is lost"), "{damage:?}");
    // At the end of an older one.
    written(&folder, 20..23).await;
    let older = segments(&folder).into_iter().find(|path| std::fs::metadata(path).unwrap().len() > 100).unwrap();
    let bytes = std::fs::read(&older).unwrap();
    let keep = bytes.split_inclusive(|byte| *byte == b'\n').take(2).map(<[u8]>::len).sum::<usize>();
    std::fs::write(&older, &bytes[..keep]).unwrap();
    let damage = found(&folder).await;
    assert!(damage.len() == 1 && damage[0].contains("the rest is lost"), "{damage:?}");
}

#[tokio::test]
async fn segments_that_are_missing_are_noticed() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("journal");
    for run in 0..4 {
        written(&folder, run * 10 + 1..run * 10 + 3).await;
    }
    std::fs::remove_file(&segments(&folder)[1]).unwrap();
    let damage = found(&folder).await;
    assert!(damage.len() == 1 && damage[0].contains("are missing"), "{damage:?}");
    written(&folder, 50..53).await;
    std::fs::remove_dir_all(&folder).unwrap();
    let damage = found(&folder).await;
    assert!(damage.len() == 1 && damage[0].contains("newest segment"), "{damage:?}");
}

#[tokio::test]
async fn nothing_is_confirmed_that_is_on_no_disk_under_a_name() {
    let place = tempfile::tempdir().unwrap();
    let (folder, away) = (place.path().join("journal"), place.path().join("away"));
    let (mut journal, _) = SegmentFiles::open(&folder).unwrap();
    journal.append(event(1), SyncMode::Now, 1).await.unwrap();
    std::fs::rename(&folder, &away).unwrap();
    let error = journal.append(event(2), SyncMode::Now, 2).await.unwrap_err().to_string();
    assert!(error.contains("was removed or replaced while the host runs"), "{error}");
    // Another host's journal in its place is not ours.
    written(&folder, 1..2).await;
    assert!(journal.append(event(2), SyncMode::Later, 2).await.is_err());
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::rename(&away, &folder).unwrap();
    journal.append(event(3), SyncMode::Now, 3).await.unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(journal.append(event(4), SyncMode::Now, 4).await.is_err());
}
