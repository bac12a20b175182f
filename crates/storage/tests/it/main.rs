//! Tests of journals in folders. Each is named after its rule.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod records;
mod segments;

use std::sync::Arc;

use grove_fs::MemoryFs;
use grove_storage::{JournalContents, JournalStorage, SegmentFiles, Stores, SyncMode, recover};
use grove_tree::turns::TurnLimit;

/// The line of a record.
fn line(text: &str) -> Vec<u8> {
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes())).into_bytes()
}

fn event(seq: u64) -> Vec<u8> {
    line(&format!(
        r#"{{"event":{{"seq":{seq},"event":{{"at":1,"change":{{"root":{{"activeSessionsChanged":0}}}}}}}}}}"#
    ))
}

async fn written(folder: &std::path::Path, seqs: std::ops::Range<u64>) {
    let (mut journal, _) = SegmentFiles::open(folder).unwrap();
    for seq in seqs {
        journal.append(event(seq), SyncMode::Now, seq).await.unwrap();
    }
}

/// The damage that a start with this journal reports.
async fn damage_at_start(contents: JournalContents) -> Vec<String> {
    let stores = Stores::new(Arc::new(MemoryFs::default()));
    recover(contents, &stores, TurnLimit { turns: 1_000, bytes: 8 << 20 }).await.unwrap().damage
}
