//! What the disk itself takes.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use anyhow::Result;

/// How often it is asked.
const TIMES: usize = 20;
/// About as much as a journal gets at once.
const BYTES: usize = 512;

/// Milliseconds until a few bytes have reached the disk, where the servers have their folders. Grove waits for that twice
/// for each prompt, so its figures are those of the disk where others use it as well.
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
