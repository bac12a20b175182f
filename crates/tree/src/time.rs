//! Times in the format of logs.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time, date};
use jiff::fmt::temporal::Pieces;

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// Milliseconds since 1970 of an entry's `timestamp`: ISO 8601 in text, or a number of milliseconds. Without an offset
/// a time counts as UTC.
pub(crate) fn milliseconds(value: &[u8]) -> Option<i64> {
    // Every entry has a time, and almost all are written like this.
    usual_milliseconds(value).or_else(|| any_milliseconds(value))
}

/// Milliseconds of a time that is written as [`iso`] does: `"2026-01-02T03:04:05.678Z"`.
fn usual_milliseconds(value: &[u8]) -> Option<i64> {
    let [b'"', text @ .., b'Z', b'"'] = <&[u8; 26]>::try_from(value).ok()? else { return None };
    let [y1, y2, y3, y4, b'-', mo1, mo2, b'-', d1, d2, b'T', h1, h2, b':', mi1, mi2, b':', s1, s2, b'.', ms @ ..] =
        text
    else {
        return None;
    };
    let number = |digits: &[u8]| {
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0, |number, digit| number * 10 + i16::from(digit - b'0')))
    };
    let two = |tens: &u8, ones: &u8| number(&[*tens, *ones]);
    let small = |tens, ones| two(tens, ones).and_then(|number| i8::try_from(number).ok());
    let day = Date::new(number(&[*y1, *y2, *y3, *y4])?, small(mo1, mo2)?, small(d1, d2)?).ok()?;
    let (hour, minute, second) = (two(h1, h2)?, two(mi1, mi2)?, two(s1, s2)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    Some((day.duration_since(EPOCH.date()).as_secs() + seconds) * 1_000 + i64::from(number(ms)?))
}

fn any_milliseconds(value: &[u8]) -> Option<i64> {
    let Some(text) = crate::scan::text_of(value) else {
        let number: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
        // Values out of range are not times.
        return (number.abs() <= 8.64e15).then_some(number as i64);
    };
    let pieces = Pieces::parse(text.as_ref()).ok().filter(|pieces| pieces.time_zone_annotation().is_none())?;
    let at = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
    let offset = pieces.to_numeric_offset().map_or(0, |offset| offset.seconds());
    let since = at.duration_since(EPOCH) - SignedDuration::from_secs(offset.into());
    // Rounded down, before 1970 too.
    i64::try_from(since.as_nanos().div_euclid(1_000_000)).ok()
}

/// A time in the format of logs: ISO 8601, milliseconds, UTC. A time out of range is written as the last possible one.
pub(crate) fn iso(at: grove_core::Timestamp) -> String {
    let since = i64::try_from(at.0).ok().map(SignedDuration::from_millis);
    let at = since.and_then(|since| EPOCH.checked_add(since).ok()).unwrap_or(DateTime::MAX);
    format!("{at:.3}Z")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{any_milliseconds, iso, milliseconds, usual_milliseconds};

    proptest! {
        #[test]
        fn the_usual_spelling_is_read_like_any_other(
            at in -62_135_596_800_000..253_402_300_800_000_i64, place in 0..40_usize, byte in prop::sample::select(&b"0123569-:.TZ\"+ a"[..])
        ) {
            let since = jiff::SignedDuration::from_millis(at);
            let mut text = format!("\"{:.3}Z\"", super::EPOCH.checked_add(since).unwrap()).into_bytes();
            prop_assert_eq!(usual_milliseconds(&text), Some(at));
            prop_assert_eq!(any_milliseconds(&text), Some(at));
            if let Some(changed) = text.get_mut(place) {
                *changed = byte;
            }
            let usual = usual_milliseconds(&text);
            prop_assert!(usual.is_none() || usual == any_milliseconds(&text), "{}", String::from_utf8_lossy(&text));
        }
    }

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
