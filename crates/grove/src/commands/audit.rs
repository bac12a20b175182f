//! `grove audit`

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use grove_core::Timestamp;
use grove_host::audit::AuditRecord;
use grove_host::{Clock, SystemClock};
use grove_wire::ahp::time;
use serde_json::{Value, json};

use super::{Failure, print_line_if_open};
use crate::audit::{self, AuditFilter, AuditFollower, AuditReader};
use crate::cli::{AuditArgs, Common, ServeArgs};
use crate::settings::Settings;

/// The most records that are printed.
const MAX_RECORDS: usize = 100_000;
/// The pause between two reads of a log that is followed.
const FOLLOW_PAUSE: Duration = Duration::from_millis(200);

pub(crate) fn run(common: &Common, args: &AuditArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let now = SystemClock.now();
    let parsed = |text: &Option<String>| text.as_deref().map(|text| parse_time(text, now)).transpose();
    let filter = AuditFilter {
        since: parsed(&args.since)?,
        until: parsed(&args.until)?,
        token: args.token.clone(),
        client: args.client.clone(),
        session: args.session.clone(),
        action: args.action,
        outcome: args.outcome,
    };
    let folder = audit::folder(&settings.data_dir.value);
    if args.follow {
        return follow(&folder, filter, args);
    }
    let mut newest = NewestRecords::new(args.limit);
    AuditReader::open(&folder, filter).for_each(|record| newest.push(record));
    newest.print(args)?;
    if newest.0.is_empty() && !args.json {
        anstream::eprintln!("no such records in {}", folder.display());
    }
    Ok(())
}

/// The newest records so far, oldest first, and their largest number.
struct NewestRecords(VecDeque<AuditRecord>, usize);

impl NewestRecords {
    fn new(limit: usize) -> Self {
        Self(VecDeque::new(), limit.min(MAX_RECORDS))
    }

    fn push(&mut self, record: AuditRecord) {
        self.0.push_back(record);
        if self.0.len() > self.1 {
            self.0.pop_front();
        }
    }

    fn print(&self, args: &AuditArgs) -> Result<bool, Failure> {
        print(self.0.iter(), args)
    }
}

/// Prints the newest records, and then each that the host writes, until the reader of the output is gone.
fn follow(folder: &Path, filter: AuditFilter, args: &AuditArgs) -> Result<(), Failure> {
    let unreadable = || format!("the audit log in {} cannot be read", folder.display());
    let mut follower = AuditFollower::new(folder, filter);
    let mut newest = NewestRecords::new(args.limit);
    loop {
        let records = follower.read().with_context(unreadable)?;
        if records.is_empty() {
            break;
        }
        records.into_iter().for_each(|record| newest.push(record));
    }
    let mut is_open = newest.print(args)?;
    drop(newest);
    while is_open {
        let records = follower.read().with_context(unreadable)?;
        is_open = print(records.iter(), args)?;
        if records.is_empty() {
            std::thread::sleep(FOLLOW_PAUSE);
        }
    }
    Ok(())
}

/// Prints records, and says whether stdout is still open.
fn print<'a>(mut records: impl Iterator<Item = &'a AuditRecord>, args: &AuditArgs) -> Result<bool, Failure> {
    let printed = records.try_fold(true, |is_open, record| {
        let line = if args.json { in_json(record)?.to_string() } else { in_words(record) };
        Ok::<_, anyhow::Error>(is_open && print_line_if_open(line).context("cannot print")?)
    });
    Ok(printed?)
}

fn in_json(record: &AuditRecord) -> Result<Value> {
    let mut value = serde_json::to_value(record)?;
    value["time"] = json!(time::text(record.time));
    Ok(value)
}

/// A line for people: time, outcome, action, token and client, session, subject, reason.
fn in_words(record: &AuditRecord) -> String {
    let AuditRecord { token, client, address, action, operation, outcome, .. } = record;
    let at = time::text(record.time);
    let who = match client {
        Some(client) => format!("{token} ({client}, {address})"),
        None => format!("{token} ({address})"),
    };
    let mut line = format!("{at}  {action:<13} {outcome:<10} {operation}  by {who}");
    for (word, text) in [("in", &record.session), ("about", &record.detail), ("because:", &record.reason)] {
        if let Some(text) = text {
            line.push_str(&format!("  {word} {text}"));
        }
    }
    line
}

/// Parses a time: so long ago (`30m`, `12h`, `7d`), or ISO 8601.
fn parse_time(text: &str, now: Timestamp) -> Result<Timestamp> {
    let (number, unit) = text.split_at(text.char_indices().next_back().map_or(0, |(at, _)| at));
    let seconds = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(60 * 60),
        "d" => Some(24 * 60 * 60),
        _ => None,
    };
    if let (Some(seconds), Ok(number)) = (seconds, number.parse::<u32>()) {
        let ago = Duration::from_secs(u64::from(number) * seconds);
        return Ok(Timestamp(now.0.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX))));
    }
    let whole = if text.len() == "2026-01-31".len() { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let wrong = |_| anyhow!("{text:?} is not a time: write 30m, 12h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z");
    time::parse(&whole).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_age_or_a_date() {
        let now = Timestamp(1_800_000_000_000);
        assert_eq!(parse_time("30m", now).unwrap(), Timestamp(now.0 - 1_800_000));
        assert_eq!(parse_time("7d", now).unwrap(), Timestamp(now.0 - 7 * 86_400_000));
        assert_eq!(parse_time("1970-01-02", now).unwrap(), Timestamp(86_400_000));
        assert_eq!(parse_time("1970-01-01T00:00:01Z", now).unwrap(), Timestamp(1_000));
        for wrong in ["", "d", "7", "7w", "yesterday", "é"] {
            assert!(parse_time(wrong, now).is_err(), "{wrong}");
        }
    }
}
