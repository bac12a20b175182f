//! The page of limits, in Markdown.

use std::fmt::Write;
use std::time::Duration;

use crate::{Limit, LimitGroup, LimitValue};

const HEAD: &str = "\
# Limits

Every queue, buffer, message and list of a host has a bound. This page lists them, with the behaviour beyond each.
It is made from the code (`crates/limits`), and a test compares it: change the code, then run `make limits`.

A request beyond a limit of its connection or token is answered with error -32029 and
`data: {\"limit\": \"<name>\", \"retryAfterMs\": <milliseconds>}`; `retryAfterMs` is absent where waiting does not help.
\"Reading pauses\" means that the host reads nothing from that connection for a moment: nothing is lost, and the client's
writes wait. Rates have a burst: so many at once after a pause, then so many each second. A connection within its own
rates never uses the pool of its token, so a connection that misbehaves costs only itself.

Connections inside the host's own process (the session hub) have no limits of use. The owner's socket has those of a token.

The last column names the setting in `grove.toml`. `limits.NAME` is a key of the table `[limits]`, and of `[limits.tokens.TOKEN]` for the
connections of one named token (`host` is the host's own). `connections` is in `[limits]` alone:

```toml
[limits]
subscriptions = 2000
requests = { per-second = 1000, burst = 10000 }

[limits.tokens.phone]
requests = { per-second = 20, burst = 200 }
token-bytes = { per-second = 1048576, burst = 8388608 }
```

Numbers are from 1 to 1,000,000; rates and bursts are from 1, those of bytes from 16,384. Settings are read when the host starts. Those of
`[limits]` are read again on SIGHUP: the limits of tokens change at once, those of connections for the next connection. With fewer
`connections` than are open, the open ones stay.
";

/// The seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// The text of `docs/limits.md`.
pub fn page(groups: &[LimitGroup]) -> String {
    let mut text = HEAD.to_owned();
    for group in groups {
        write!(text, "\n## {}\n\n", group.subject).ok();
        if !group.about.is_empty() {
            write!(text, "{}\n\n", group.about).ok();
        }
        text.push_str("| limit | value | per | beyond it | setting |\n|---|---|---|---|---|\n");
        for limit in &group.limits {
            let Limit { name, value, per, beyond, setting } = limit;
            let setting = setting.map(|setting| format!("`{setting}`")).unwrap_or_default();
            writeln!(text, "| `{name}` | {} | {per} | {beyond} | {setting} |", value_text(*value)).ok();
        }
    }
    text
}

fn value_text(value: LimitValue) -> String {
    match value {
        LimitValue::Count(number) => grouped(number),
        LimitValue::Bytes(number) => bytes_text(number),
        LimitValue::Time(time) => time_text(time),
        LimitValue::CountRate(rate) => format!("{} / s, burst {}", grouped(rate.per_second), grouped(rate.burst)),
        LimitValue::ByteRate(rate) => format!("{} / s, burst {}", bytes_text(rate.per_second), bytes_text(rate.burst)),
    }
}

fn bytes_text(number: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| number >= 1 << shift && number.is_multiple_of(1 << shift));
    match unit {
        Some((shift, name)) => format!("{} {name}", number >> shift),
        None => format!("{} B", grouped(number)),
    }
}

fn time_text(time: Duration) -> String {
    match (time.as_millis(), time.as_secs()) {
        (millis, _) if millis % 1_000 != 0 => format!("{millis} ms"),
        (_, seconds) if seconds >= DAY && seconds.is_multiple_of(DAY) => format!("{} d", seconds / DAY),
        (_, seconds) if seconds >= 60 && seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        (_, seconds) => format!("{seconds} s"),
    }
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_with_their_largest_whole_unit() {
        assert_eq!([grouped(7), grouped(1_000), grouped(1_234_567)], ["7", "1,000", "1,234,567"]);
        assert_eq!([bytes_text(1_500), bytes_text(64 << 10), bytes_text(2 << 30)], ["1,500 B", "64 KiB", "2 GiB"]);
        let times = [Duration::from_millis(1_500), Duration::from_secs(90), Duration::from_secs(600)];
        assert_eq!(times.map(time_text), ["1500 ms", "90 s", "10 min"]);
        assert_eq!(time_text(Duration::from_secs(90 * DAY)), "90 d");
    }
}
