//! The speed of the disk.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use anyhow::Result;

/// The number of syncs.
const TIMES: usize = 20;
/// About the size of a journal write.
const BYTES: usize = 512;

/// Milliseconds to sync a few bytes to the disk of the servers' folders.
///
/// Grove waits for that twice per prompt, so other load on the disk affects its figures.
pub(crate) fn syncs() -> Result<Vec<f64>> {
    let folder = tempfile::tempdir()?;
    let mut file = File::create(folder.path().join("synced"))?;
    let mut found = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let began = Instant::now();
        file.write_all(&[b'x'; BYTES])?;
        file.sync_data()?;
        found.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(found)
}
