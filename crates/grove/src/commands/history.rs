//! `grove history scan`, and the functions of it that other commands use.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::anyhow;
use grove_wire::x_grove::Method;
use grove_wire::x_grove::history::{
    self, HistoryListParams, HistoryListResult, HistoryListRow, ScanParams, ScanReport, ScanResult,
};

use super::{Failure, command_runtime, print_line};
use crate::chat_client::tree::AnyClient;
use crate::chat_client::{MAX_PAGES, endless_list};
use crate::cli::{Common, HistoryArgs};
use crate::connect::HostConnector;
use crate::show::style::sanitize;

/// The pause between questions for the progress.
const GLANCE: Duration = Duration::from_millis(50);
/// The number of sessions per request.
const PAGE: usize = 1_000;
/// The width of the progress bar.
const BAR: usize = 30;

pub(crate) fn scan(common: &Common, args: &HistoryArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let client = AnyClient::connect(&connector, args.connect.protocol).await?;
        let report = refresh(&client).await?;
        if args.json {
            return Ok(print_line(serde_json::to_string(&report)?)?);
        }
        print_line(in_words(&report))?;
        for problem in &report.problems {
            anstream::eprintln!("{}", sanitize(problem));
        }
        Ok(())
    })
}

/// Starts a scan of other tools' stores at the host, and waits for its end.
pub(super) async fn refresh(client: &AnyClient) -> Result<ScanReport, Failure> {
    let method = Method::History(history::HistoryMethod::Scan);
    // A host without this method has no sessions of other tools.
    if !client.offers(method) {
        return Ok(ScanReport::default());
    }
    let mut scan: ScanResult = client.ask(method, &ScanParams { start: true }).await?;
    let mut bar = ProgressBar::default();
    while scan.running {
        bar.show(&scan)?;
        tokio::time::sleep(GLANCE).await;
        scan = client.ask(method, &ScanParams::default()).await?;
    }
    bar.clear()?;
    match scan.error {
        Some(error) => Err(anyhow!(error).into()),
        None => Ok(scan.report.unwrap_or_default()),
    }
}

/// The matching sessions of other tools, newest first.
pub(super) async fn list(client: &AnyClient, wanted: HistoryListParams) -> Result<Vec<HistoryListRow>, Failure> {
    let method = Method::History(history::HistoryMethod::List);
    if !client.offers(method) {
        return Ok(Vec::new());
    }
    let mut params = HistoryListParams { limit: Some(PAGE), ..wanted };
    let mut rows = Vec::new();
    for _ in 0..MAX_PAGES {
        let page: HistoryListResult = client.ask(method, &params).await?;
        rows.extend(page.sessions);
        params.cursor = page.next_cursor;
        if params.cursor.is_none() {
            return Ok(rows);
        }
    }
    Err(endless_list().into())
}

fn in_words(report: &ScanReport) -> String {
    let mut words = vec![format!("{} sessions", report.sessions), format!("{} read", report.read)];
    for (count, what) in [
        (report.continued, "of them continued from their last position"),
        (report.removed, "gone"),
        (report.moved, "whose folder was moved"),
        (report.copied, "copied before their tool deletes them"),
        (report.gone, "of which only a copy is left"),
        (report.recovered, "with damage (`grove doctor`)"),
    ] {
        if count > 0 {
            words.push(format!("{count} {what}"));
        }
    }
    format!("{} in {} ms", words.join(", "), report.milliseconds)
}

/// A progress bar. It is only shown on a terminal.
#[derive(Debug, Default)]
struct ProgressBar {
    is_shown: bool,
}

impl ProgressBar {
    fn show(&mut self, scan: &ScanResult) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        if !stderr.is_terminal() {
            return Ok(());
        }
        self.is_shown = true;
        let done = (BAR * scan.read).checked_div(scan.of).unwrap_or(0).min(BAR);
        let (full, left) = ("#".repeat(done), "-".repeat(BAR - done));
        write!(stderr, "\r[{full}{left}] {} of {} sessions", scan.read, scan.of)?;
        stderr.flush()
    }

    fn clear(&self) -> io::Result<()> {
        if !self.is_shown {
            return Ok(());
        }
        let mut stderr = io::stderr().lock();
        write!(stderr, "\r\x1b[K")?;
        stderr.flush()
    }
}
