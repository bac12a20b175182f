//! Times in the protocol's format: RFC 3339, in milliseconds, in UTC.

use grove_core as core;
use jiff::Timestamp;

/// A time as text. A time out of range is written as the last possible one.
pub fn text(at: core::Timestamp) -> String {
    let at = i64::try_from(at.0).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", at.unwrap_or(Timestamp::MAX))
}

/// Reads a time. Times before 1970 count as 1970.
pub fn parse(text: &str) -> Result<core::Timestamp, String> {
    let at: Timestamp = text.parse().map_err(|error| format!("{text:?} is no RFC 3339 time: {error}"))?;
    Ok(core::Timestamp(u64::try_from(at.as_millisecond()).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_milliseconds_and_read_in_any_zone() {
        assert_eq!(text(core::Timestamp(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(core::Timestamp(1_700_000_000_123)), "2023-11-14T22:13:20.123Z");
        assert_eq!(parse("2023-11-14T23:13:20.123+01:00"), Ok(core::Timestamp(1_700_000_000_123)));
        assert_eq!(parse("1960-01-01T00:00:00Z"), Ok(core::Timestamp(0)));
        assert!(parse("yesterday").is_err());
        assert!(parse("2023-11-14").is_err());
        assert_eq!(text(core::Timestamp(u64::MAX)), "9999-12-30T22:00:00.999Z");
    }
}
