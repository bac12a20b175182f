//! `grove audit`

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use grove_core::Timestamp;
use grove_host::audit::AuditRecord;
use grove_host::{Clock, SystemClock};
use grove_wire::ahp::time;
use serde_json::{Value, json};

use super::{Failure, print_line};
use crate::audit::{self, AuditFilter, AuditReader};
use crate::cli::{AuditArgs, Common, ServeArgs};
use crate::settings::Settings;

/// The most records that are printed.
const MAX_RECORDS: usize = 100_000;

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
    let limit = args.limit.min(MAX_RECORDS);
    let mut newest = VecDeque::new();
    for record in AuditReader::open(&audit::folder(&settings.data_dir.value), filter) {
        newest.push_back(record);
        if newest.len() > limit {
            newest.pop_front();
        }
    }
    for record in &newest {
        match args.json {
            true => print_line(in_json(record)?).context("cannot print")?,
            false => print_line(in_words(record)).context("cannot print")?,
        }
    }
    if newest.is_empty() && !args.json {
        anstream::eprintln!("no such records in {}", audit::folder(&settings.data_dir.value).display());
    }
    Ok(())
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
