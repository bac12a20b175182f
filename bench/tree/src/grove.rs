//! Grove's measurements, in their own process.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use grove_core::Timestamp;
use grove_fs::FsError;
use grove_tree::{Context, Indexer, LogIndex, LogSource, NewHeader, Outline, RowFilter, RowsRequest, Rules, rows};

use crate::job::{Measured, TreeContent};

/// The number of rows per page, and of the newest messages.
pub(crate) const PAGE: usize = 200;

/// A log that is read by ranges.
struct FromFile(File);

impl LogSource for FromFile {
    fn read(&self, offset: u64, length: usize) -> Result<Cow<'_, [u8]>, FsError> {
        let failed = |error: std::io::Error| FsError::Other { path: "log".to_owned(), reason: error.to_string() };
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, offset).map_err(failed)?;
        Ok(Cow::Owned(bytes))
    }
}

pub(crate) fn index_of(bytes: &[u8]) -> Result<LogIndex> {
    let mut indexer = Indexer::new();
    indexer.feed(bytes);
    Ok(indexer.finish()?)
}

pub(crate) fn measure(log: &Path, deepest: &str, folder: &Path, from_file: bool) -> Result<Measured> {
    let bytes = std::fs::read(log)?;
    let index = index_of(&bytes)?;
    if from_file {
        drop(bytes);
        run(&index, &FromFile(File::open(log)?), deepest, folder)
    } else {
        run(&index, bytes.as_slice(), deepest, folder)
    }
}

fn timed<T>(what: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let began = Instant::now();
    let found = what()?;
    Ok((began.elapsed().as_secs_f64() * 1e3, found))
}

fn run(index: &LogIndex, source: &(impl LogSource + ?Sized), deepest: &str, folder: &Path) -> Result<Measured> {
    let leaf = index.leaf();
    let (rows_milliseconds, outline) = timed(|| Ok(Outline::of(index, RowFilter::All, leaf)))?;
    let request = RowsRequest { filter: RowFilter::Default, search: "", leaf, after: None, limit: PAGE };
    let (page, shown) = timed(|| Ok(rows(index, source, &request)?))?;
    ensure!(shown.rows.len() == PAGE, "the page has {} rows", shown.rows.len());
    let entry = index.find(deepest).context("there is no such entry")?;
    let (branch, path) = timed(|| Ok(index.branch(entry)))?;
    let (tail, newest) = timed(|| Ok(Context::tail(index, source, Rules::Grove, leaf, PAGE)?))?;
    ensure!(newest.messages.len() + 4 > PAGE, "the tail has {} messages", newest.messages.len());
    let (context, built) = timed(|| Ok(Context::at(index, source, Rules::Pi, leaf)?))?;
    let messages = built.messages.len();
    drop(built);
    let (own, _) = timed(|| Ok(Context::at(index, source, Rules::Grove, leaf)?))?;
    let path_of_new = folder.join("grove.jsonl");
    let header = NewHeader {
        id: "019b7ca9-8c88-71d5-ab6b-941b1e5f1371",
        at: Timestamp(1_767_322_800_000),
        cwd: "/",
        parent_session: Some("/session.jsonl"),
        title: None,
    };
    let (planned, new) =
        timed(|| Ok(grove_tree::branch_log(index, source, deepest, &header, &mut || "unused".to_owned())?))?;
    let (written, ()) = timed(|| {
        let mut file = File::create(&path_of_new)?;
        let mut failed = None;
        let outcome = new.write(index, source, |part| {
            file.write_all(part).map_err(|error| {
                let reason = error.to_string();
                failed = Some(error);
                FsError::Other { path: "grove.jsonl".to_owned(), reason }
            })
        });
        failed.map_or(Ok(()), Err)?;
        Ok(outcome?)
    })?;
    let (rows_with_text, all) = timed(|| Ok(outline.render(index, source, 0..outline.len())?))?;
    ensure!(all.len() == outline.len(), "some rows are missing");
    let found = TreeContent {
        rows: outline.len(),
        branch: path.len(),
        messages,
        branched_bytes: std::fs::metadata(&path_of_new)?.len(),
    };
    Ok(Measured {
        rows: rows_milliseconds,
        page: Some(page),
        rows_with_text: Some(rows_with_text),
        branch,
        context,
        context_by_own_rules: Some(own),
        tail: Some(tail),
        branched: planned + written,
        planned: Some(planned),
        found,
    })
}
