//! Times in the format of logs.

/// Milliseconds since 1970 of an entry's `timestamp`: ISO 8601 in text, or a number of milliseconds. Without an offset
/// a time counts as UTC.
pub(crate) fn milliseconds(value: &[u8]) -> Option<i64> {
    let Some(text) = crate::scan::text_of(value) else {
        let number: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
        // Values out of range are not times.
        return (number.abs() <= 8.64e15).then_some(number as i64);
    };
    let text = text.as_ref();
    let (date, rest) = match text {
        [b'+' | b'-', ..] => return None,
        _ => (text.get(..10)?, &text[10..]),
    };
    let day = days(digits(&date[..4])?, part(date, 4, b'-')?, part(date, 7, b'-')?)?;
    let (clock, offset) = match rest {
        [] => (0, 0),
        [b'T' | b't' | b' ', clock @ ..] => time_of_day(clock)?,
        _ => return None,
    };
    Some(day * 86_400_000 + clock - offset)
}

/// A time in the format of logs: ISO 8601, milliseconds, UTC.
pub(crate) fn iso(at: grove_core::Timestamp) -> String {
    let (seconds, milliseconds) = (at.0 / 1_000, at.0 % 1_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// The date from days since 1970. Years are counted from March, so that the leap day is the last of a year, and in eras
/// of 400 years, which are all alike.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Milliseconds since midnight and the offset from UTC.
fn time_of_day(text: &[u8]) -> Option<(i64, i64)> {
    let hours = digits(text.get(..2)?)?;
    let minutes = part(text, 2, b':')?;
    let mut rest = &text[5..];
    let mut milliseconds = 0;
    let mut seconds = 0;
    if rest.first() == Some(&b':') {
        seconds = digits(rest.get(1..3)?)?;
        rest = &rest[3..];
        if rest.first() == Some(&b'.') {
            let count = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if count == 0 {
                return None;
            }
            let fraction = &rest[1..=count];
            milliseconds = digits(&fraction[..count.min(3)])?;
            for _ in count.min(3)..3 {
                milliseconds *= 10;
            }
            rest = &rest[1 + count..];
        }
    }
    if hours > 24 || minutes > 59 || seconds > 59 {
        return None;
    }
    let offset = match rest {
        [] | b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), clock @ ..] => {
            let minutes = if clock.len() == 5 { part(clock, 2, b':')? } else { digits(clock.get(2..4)?)? };
            let offset = (digits(clock.get(..2)?)? * 60 + minutes) * 60_000;
            if *sign == b'-' { -offset } else { offset }
        }
        _ => return None,
    };
    Some((((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds, offset))
}

/// Two digits after a separator.
fn part(text: &[u8], at: usize, separator: u8) -> Option<i64> {
    if *text.get(at)? != separator {
        return None;
    }
    digits(text.get(at + 1..at + 3)?)
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))
}

/// Days since 1970, by the calendar of ISO 8601.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is their last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::{iso, milliseconds};

    #[test]
    fn what_is_written_is_read_as_the_same_time() {
        for at in [0, 1, 951_782_400_000, 951_868_799_999, 1_794_716_281_428, 4_102_444_800_000, 253_402_300_799_999] {
            let written = iso(grove_core::Timestamp(at));
            assert_eq!(milliseconds(format!("\"{written}\"").as_bytes()), Some(at as i64), "{written}");
        }
        assert_eq!(iso(grove_core::Timestamp(1_767_323_045_678)), "2026-01-02T03:04:05.678Z");
    }

    #[test]
    fn times_are_read_in_every_spelling() {
        for (text, expected) in [
            (r#""1970-01-01T00:00:00.000Z""#, Some(0)),
            (r#""2025-01-01T00:00:05.000Z""#, Some(1_735_689_605_000)),
            (r#""2024-02-29T23:59:59.9Z""#, Some(1_709_251_199_900)),
            (r#""2025-01-01T02:00:05+02:00""#, Some(1_735_689_605_000)),
            (r#""2025-01-01""#, Some(1_735_689_600_000)),
            (r#""1969-12-31T23:59:59.999999Z""#, Some(-1)),
            ("1735689605000", Some(1_735_689_605_000)),
            (r#""yesterday""#, None),
            (r#""2025-13-01T00:00:00Z""#, None),
            (r#""2025-01-01T00:00:00.Z""#, None),
            (r#""""#, None),
            ("null", None),
            ("1e300", None),
        ] {
            assert_eq!(milliseconds(text.as_bytes()), expected, "{text}");
        }
    }
}
