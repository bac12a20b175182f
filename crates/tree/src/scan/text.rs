//! The texts of a line, decoded.

use std::borrow::Cow;

/// The bytes of a JSON text, if a value is one: borrowed if it has no escapes. A lone surrogate becomes the three bytes
/// that UTF-8 would have for it.
pub fn text_of(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    // Most texts are names and ids: too short for memchr's setup.
    let has_escapes = if inner.len() <= 32 {
        inner.iter().fold(false, |found, byte| found | (*byte == b'\\'))
    } else {
        memchr::memchr(b'\\', inner).is_some()
    };
    Some(if has_escapes { Cow::Owned(unescape(inner)) } else { Cow::Borrowed(inner) })
}

/// A text of a log for people: invalid Unicode is replaced.
pub fn lossy(value: &[u8]) -> Option<String> {
    text_of(value).map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// Decodes the inside of a scanned text.
fn unescape(inner: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'\\', &inner[at..]) {
        out.extend_from_slice(&inner[at..at + next]);
        at += next + 1;
        let Some(kind) = inner.get(at) else { return out };
        at += 1;
        match kind {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => {
                let mut unit = hex(inner, at);
                at = (at + 4).min(inner.len());
                if (0xd800..0xdc00).contains(&unit) && inner.get(at..at + 2) == Some(b"\\u") {
                    let low = hex(inner, at + 2);
                    if (0xdc00..0xe000).contains(&low) {
                        unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                        at = (at + 6).min(inner.len());
                    }
                }
                match char::from_u32(unit) {
                    Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => {
                        out.extend([0xe0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 63) as u8, 0x80 | (unit & 63) as u8])
                    }
                }
            }
            itself => out.push(*itself),
        }
    }
    out.extend_from_slice(&inner[at..]);
    out
}

fn hex(inner: &[u8], at: usize) -> u32 {
    let digits = inner.get(at..at + 4).unwrap_or_default();
    digits.iter().fold(0, |value, digit| value << 4 | (*digit as char).to_digit(16).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_keeps_its_value() {
        assert_eq!(text_of(br#""\ud83c\udf32""#).unwrap().as_ref(), "🌲".as_bytes());
        assert_eq!(text_of(br#""\ud83c""#).unwrap().as_ref(), [0xed, 0xa0, 0xbc]);
        assert_eq!(text_of(br#""a\n\/""#).unwrap().as_ref(), b"a\n/");
        assert_eq!(text_of(b"12"), None);
    }
}
