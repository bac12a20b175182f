//! Quiet hours: a daily span of time in which nobody is told.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

/// The longest text of quiet hours, in bytes.
pub const MAX_QUIET_BYTES: usize = 80;

/// A daily span, from a time of day to another one, which may be on the next day.
#[derive(Clone, PartialEq)]
pub struct QuietHours {
    from: Time,
    to: Time,
    zone: TimeZone,
    /// The name of the zone as it was written; none is the zone of the host.
    zone_name: Option<String>,
}

/// The text is no quiet hours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuietHoursError {
    #[error("quiet hours are written as 22:00-07:00 or 22:00-07:00 Europe/Berlin")]
    Form,
    #[error("quiet hours from a time to the same time mean nothing: leave them out, or choose two times")]
    Empty,
    #[error("the time zone {0:?} is not known on the host: write one as Europe/Berlin, or leave it out")]
    Zone(String),
}

impl QuietHours {
    /// The end of the quiet time, in milliseconds since 1970, if that time is quiet.
    pub fn end_of(&self, now_ms: u64) -> Option<u64> {
        let now = Timestamp::from_millisecond(i64::try_from(now_ms).ok()?).ok()?.to_zoned(self.zone.clone());
        let time = now.time();
        let is_quiet = match self.from < self.to {
            true => self.from <= time && time < self.to,
            false => self.from <= time || time < self.to,
        };
        if !is_quiet {
            return None;
        }
        let day = if time < self.to { now.date() } else { now.date().checked_add(1.day()).ok()? };
        // A time that the change to summer time leaves out is the one after the gap.
        let end = day.to_datetime(self.to).to_zoned(self.zone.clone()).ok()?;
        let end = u64::try_from(end.timestamp().as_millisecond()).ok()?;
        // In the hour that is repeated when summer time ends, the end may be in the past: then it is quiet no more.
        (end > now_ms).then_some(end)
    }
}

impl FromStr for QuietHours {
    type Err = QuietHoursError;

    fn from_str(text: &str) -> Result<Self, QuietHoursError> {
        if text.len() > MAX_QUIET_BYTES {
            return Err(QuietHoursError::Form);
        }
        let (span, zone_name) = match text.trim().split_once(' ') {
            Some((span, zone)) => (span, Some(zone.trim())),
            None => (text.trim(), None),
        };
        let (from, to) = span.split_once('-').ok_or(QuietHoursError::Form)?;
        let (from, to) = (time_of_day(from)?, time_of_day(to)?);
        if from == to {
            return Err(QuietHoursError::Empty);
        }
        let zone = match zone_name {
            Some(name) => TimeZone::get(name).map_err(|_| QuietHoursError::Zone(name.to_owned()))?,
            None => Zoned::now().time_zone().clone(),
        };
        Ok(Self { from, to, zone, zone_name: zone_name.map(ToOwned::to_owned) })
    }
}

/// Reads `HH:MM`.
fn time_of_day(text: &str) -> Result<Time, QuietHoursError> {
    let number = |digits: &str| match digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit()) {
        true => digits.parse::<i8>().map_err(|_| QuietHoursError::Form),
        false => Err(QuietHoursError::Form),
    };
    let (hour, minute) = text.split_once(':').ok_or(QuietHoursError::Form)?;
    Time::new(number(hour)?, number(minute)?, 0, 0).map_err(|_| QuietHoursError::Form)
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, zone: _, zone_name } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from.hour(), from.minute(), to.hour(), to.minute())?;
        zone_name.iter().try_for_each(|zone| write!(f, " {zone}"))
    }
}

impl fmt::Debug for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuietHours({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> u64 {
        u64::try_from(text.parse::<Timestamp>().unwrap().as_millisecond()).unwrap()
    }

    fn end(quiet: &str, now: &str) -> Option<String> {
        let end = quiet.parse::<QuietHours>().unwrap().end_of(at(now))?;
        Some(Timestamp::from_millisecond(end as i64).unwrap().to_string())
    }

    #[test]
    fn a_night_is_quiet_until_its_morning() {
        let night = "22:00-07:00 UTC";
        assert_eq!(end(night, "2026-03-01T21:59:59Z"), None);
        assert_eq!(end(night, "2026-03-01T22:00:00Z").as_deref(), Some("2026-03-02T07:00:00Z"));
        assert_eq!(end(night, "2026-03-02T06:59:59Z").as_deref(), Some("2026-03-02T07:00:00Z"));
        assert_eq!(end(night, "2026-03-02T07:00:00Z"), None);
        assert_eq!(end("12:00-13:30 UTC", "2026-03-01T13:00:00Z").as_deref(), Some("2026-03-01T13:30:00Z"));
        assert_eq!(end("12:00-13:30 UTC", "2026-03-01T23:00:00Z"), None);
    }

    #[test]
    fn the_zone_counts_and_so_does_its_summer_time() {
        // Summer time begins there on 2026-03-29 at 01:00 UTC.
        let night = "22:00-07:00 Europe/Berlin";
        assert_eq!(end(night, "2026-03-28T21:30:00Z").as_deref(), Some("2026-03-29T05:00:00Z"));
        assert_eq!(end(night, "2026-03-27T21:30:00Z").as_deref(), Some("2026-03-28T06:00:00Z"));
        // 02:30 does not exist in that night, and is 03:30 there.
        assert_eq!(end("22:00-02:30 Europe/Berlin", "2026-03-29T00:30:00Z").as_deref(), Some("2026-03-29T01:30:00Z"));
    }

    #[test]
    fn a_wrong_text_is_refused_and_a_right_one_is_written_as_it_was() {
        for wrong in
            ["", "22-7", "22:00", "22:00-24:00", "22:00-07:0", "1:00-2:00", "22:00-07:00 Nowhere/Land", "+2:00-07:00"]
        {
            wrong.parse::<QuietHours>().unwrap_err();
        }
        assert_eq!("07:00-07:00".parse::<QuietHours>(), Err(QuietHoursError::Empty));
        "22:00-07:00".repeat(10).parse::<QuietHours>().unwrap_err();
        for text in ["22:00-07:00", "00:00-06:30 America/New_York"] {
            assert_eq!(text.parse::<QuietHours>().unwrap().to_string(), text);
        }
    }
}
