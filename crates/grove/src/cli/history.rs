//! Arguments of the commands about sessions of other tools on this machine.

use std::str::FromStr;

use clap::{Args, Subcommand};
use grove_core::Timestamp;

use super::ConnectArgs;

pub(super) const LS_HELP: &str = "\
Examples:
  grove ls
  grove ls --host dev-box
  grove ls --all --repo acme/site --since 7d
  grove ls --all --source copilot-cli --json

If other hosts are known (`grove hosts`), their sessions are in the list, too.
A host that does not answer in two seconds is named, and its sessions of the
last time are shown as cached. With --json each session has `host`.

With --all, sessions of other tools on this machine are listed after Grove's
own. With --json every row has `id`, `title`, `host`, `source`,
`sourceId` (the id that the tool itself uses), `agent`, `status`, `createdAt`,
`modifiedAt` and `cwd`.";

pub(super) const DOCTOR_HELP: &str = "\
Examples:
  grove doctor
  grove doctor --json | jq '.damaged[].path'

damaged: shown with less than its tool once wrote. orphaned: shown here, but
missing in the list of its own tool, which is how sessions seem to be lost.
lost: in its tool's list, but not on disk. unknown: named like a session, but
not shown. Nothing is changed.

VS Code, Claude Code, Codex (sessions with a name) and OpenCode keep lists of
their sessions. The other tools list the existing files, so their sessions
cannot be lost or orphaned.";

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// Scan for sessions of other tools, and read the new ones
    ///
    /// A host does this when it starts and while tools write. This command waits until the scan is done, and prints its
    /// result.
    Scan(HistoryArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// A point in time, absolute or relative to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    At(Timestamp),
    Ago { milliseconds: u64 },
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a time: use 2026-01-31, 2026-01-31T12:00:00Z, 36h, 7d or 2w");
        let unit = match text.chars().last() {
            Some('m') => Some(60),
            Some('h') => Some(60 * 60),
            Some('d') => Some(24 * 60 * 60),
            Some('w') => Some(7 * 24 * 60 * 60),
            Some(_) | None => None,
        };
        if let Some(unit) = unit
            && let Ok(count) = text[..text.len() - 1].parse::<u64>()
        {
            let milliseconds = count.checked_mul(unit).and_then(|seconds| seconds.checked_mul(1_000));
            return milliseconds.map(|milliseconds| Self::Ago { milliseconds }).ok_or_else(wrong);
        }
        let whole = text.parse::<jiff::Timestamp>().ok();
        let day = || {
            let day = text.parse::<jiff::civil::Date>().ok()?;
            Some(day.to_zoned(jiff::tz::TimeZone::system()).ok()?.timestamp())
        };
        let at = whole.or_else(day).ok_or_else(wrong)?;
        u64::try_from(at.as_millisecond()).map(|at| Self::At(Timestamp(at))).map_err(|_| wrong())
    }
}

impl Since {
    pub(crate) fn time(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago { milliseconds } => Timestamp(now.0.saturating_sub(milliseconds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_day_a_moment_or_how_long_ago_it_was() {
        let at = |text: &str| text.parse::<Since>().map(|since| since.time(Timestamp(1_000_000_000_000)).0);
        assert_eq!(at("2026-01-31T12:00:00Z"), Ok(1_769_860_800_000));
        assert_eq!(at("1d"), Ok(1_000_000_000_000 - 86_400_000));
        assert_eq!(at("2w"), Ok(1_000_000_000_000 - 14 * 86_400_000));
        assert!(at("2026-01-31").is_ok());
        for wrong in
            ["", "d", "yesterday", "é", "99999999999999999999d", "18446744073709551615w", "1969-01-01T00:00:00Z"]
        {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }
}
