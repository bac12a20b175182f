//! Reads a log of JSON values, one per line, in whatever condition.

use std::io::{self, BufRead};

use grove_transcript::{Damage, DamageKind, DamageLocation};
use serde_json::Value;

use crate::limits::MAX_JSON_ITEM;
use crate::line_reader::LineReader;

/// The values of a log. Anything else is reported as damage and skipped.
#[derive(Debug)]
pub(crate) struct JsonlReader<R> {
    lines: LineReader<R>,
    /// An unreadable line without an end: the last one is torn, any other is damaged.
    torn: Option<DamageLocation>,
    is_empty: bool,
}

/// A value with its position.
#[derive(Debug)]
pub(crate) struct JsonlRecord {
    pub value: Value,
    pub offset: u64,
    pub line: u64,
    /// The length of its text in bytes.
    pub length: usize,
}

impl JsonlRecord {
    pub(crate) fn place(&self, what: impl Into<String>) -> DamageLocation {
        DamageLocation { offset: self.offset, line: Some(self.line), what: what.into() }
    }
}

impl<R: BufRead> JsonlReader<R> {
    /// The source begins at `offset` of its file, before line `line`.
    pub(crate) fn new(source: R, offset: u64, line: u64) -> Self {
        Self { lines: LineReader::new(source, MAX_JSON_ITEM, offset, line), torn: None, is_empty: offset == 0 }
    }

    /// Searches the remaining lines, which are not parsed. A line that is too long counts as a hit.
    pub(crate) fn any_line(&mut self, mut is_it: impl FnMut(&[u8]) -> bool) -> io::Result<bool> {
        while let Some(line) = self.lines.next()? {
            if line.bytes.is_none_or(&mut is_it) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next value; `None` at the end.
    pub(crate) fn next(&mut self, damage: &mut Damage) -> io::Result<Option<JsonlRecord>> {
        while let Some(line) = self.lines.next()? {
            let (offset, number, ended) = (line.offset, line.number, line.ended);
            let place = |what: String| DamageLocation { offset, line: Some(number), what };
            let Some(bytes) = line.bytes else {
                self.is_empty = false;
                damage.add(DamageKind::TooLarge, place(format!("a line of more than {MAX_JSON_ITEM} bytes")));
                continue;
            };
            let text = without_zeros(bytes.trim_ascii());
            if text.is_empty() {
                if bytes.contains(&0) {
                    damage.add(DamageKind::TornTail, place("zeros".to_owned()));
                }
                continue;
            }
            self.is_empty = false;
            if let Some(bad) = self.torn.take() {
                damage.add(DamageKind::Damaged, bad);
            }
            match value_of(text) {
                Ok(value) => return Ok(Some(JsonlRecord { value, offset, line: number, length: text.len() })),
                Err(error) if ended => damage.add(DamageKind::Damaged, place(error.to_string())),
                Err(error) => self.torn = Some(place(error.to_string())),
            }
        }
        if let Some(torn) = self.torn.take() {
            damage.add(DamageKind::TornTail, torn);
        }
        if std::mem::take(&mut self.is_empty) {
            damage.mark(DamageKind::Empty);
        }
        Ok(None)
    }
}

/// A text without surrounding zeros, which a power loss leaves.
fn without_zeros(text: &[u8]) -> &[u8] {
    let text = &text[text.iter().take_while(|byte| **byte == 0).count()..];
    &text[..text.len() - text.iter().rev().take_while(|byte| **byte == 0).count()]
}

/// Parses JSON that JavaScript may have written: a lone surrogate, left by text that was cut inside a character, is
/// replaced.
pub(crate) fn value_of(text: &[u8]) -> serde_json::Result<Value> {
    let error = match serde_json::from_slice(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match replace_lone_surrogates(text) {
        Some(repaired) => serde_json::from_slice(&repaired),
        None => Err(error),
    }
}

/// The text with each lone surrogate escape replaced; `None` if there is none.
fn replace_lone_surrogates(text: &[u8]) -> Option<Vec<u8>> {
    let mut repaired: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &text[at..]) {
        let escape = at + found;
        at = escape + 2;
        match (surrogate(text, escape), surrogate(text, escape + 6)) {
            (None, _) => {}
            (Some(SurrogateHalf::High), Some(SurrogateHalf::Low)) => at = escape + 12,
            (Some(_), _) => {
                at = escape + 6;
                repaired.get_or_insert_with(|| text.to_vec())[escape + 2..at].copy_from_slice(b"fffd");
            }
        }
        if at >= text.len() {
            break;
        }
    }
    repaired
}

enum SurrogateHalf {
    High,
    Low,
}

/// The surrogate half of an escape at this position.
fn surrogate(text: &[u8], at: usize) -> Option<SurrogateHalf> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let code = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    match code {
        0xd800..=0xdbff => Some(SurrogateHalf::High),
        0xdc00..=0xdfff => Some(SurrogateHalf::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &[u8]) -> (Vec<Value>, Damage) {
        let mut damage = Damage::default();
        let mut records = JsonlReader::new(text, 0, 1);
        let mut values = Vec::new();
        while let Some(record) = records.next(&mut damage).unwrap() {
            values.push(record.value);
        }
        (values, damage)
    }

    #[test]
    fn half_a_character_is_shown_as_such_and_whole_ones_stay() {
        let (values, damage) = read(br#"["\ud83c\udf32 \ud83c", "\udf32\\ud83c", "\ud83c\ud83c\udf32"]"#);
        assert_eq!(values, [json!(["🌲 \u{fffd}", "\u{fffd}\\ud83c", "\u{fffd}🌲"])]);
        assert_eq!(damage, Damage::default());
    }

    #[test]
    fn a_bad_line_is_broken_inside_a_log_and_torn_at_its_end() {
        for (text, values, marks) in [
            (&b"1\n{\n2\n"[..], 2, &[DamageKind::Damaged][..]),
            (b"1\n{\n2", 2, &[DamageKind::Damaged]),
            (b"1\n2\n{\"a", 2, &[DamageKind::TornTail]),
            (b"1\n\0\0\0\n2\n", 2, &[DamageKind::TornTail]),
            (b"1\n\n  \n2\n\n", 2, &[]),
            (b"", 0, &[DamageKind::Empty]),
            (b"\n\n", 0, &[DamageKind::Empty]),
        ] {
            let (read, damage) = read(text);
            assert_eq!((read.len(), damage.marks.as_slice()), (values, marks), "{}", String::from_utf8_lossy(text));
        }
    }
}
