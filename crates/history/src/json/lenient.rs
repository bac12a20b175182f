//! Reads JSON with small defects: invalid UTF-8, and lone surrogates, which JavaScript writes when it cuts a text in
//! two.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// The read value.
#[derive(Debug)]
pub(crate) struct LenientValue<T> {
    pub value: T,
    /// True if some bytes were invalid UTF-8. A lone surrogate is not damage: its writer wrote just that.
    pub has_bad_bytes: bool,
}

/// Reads JSON. Invalid characters become U+FFFD.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<LenientValue<T>, serde_json::Error> {
    let error = match serde_json::from_slice(bytes) {
        Ok(value) => return Ok(LenientValue { value, has_bad_bytes: false }),
        Err(error) => error,
    };
    let text = String::from_utf8_lossy(bytes);
    let has_bad_bytes = matches!(text, Cow::Owned(_));
    let repaired = replace_lone_surrogates(&text);
    if !has_bad_bytes && matches!(repaired, Cow::Borrowed(_)) {
        return Err(error);
    }
    // The first error is the one to report.
    serde_json::from_str(&repaired).map(|value| LenientValue { value, has_bad_bytes }).map_err(|_| error)
}

/// The text with lone surrogate escapes replaced.
fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let mut repaired = String::new();
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = text.as_bytes().get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        at += match (escape_at(text, at), escape_at(text, at + 6)) {
            (None, _) => 2,
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                repaired.push_str(&text[done..at]);
                repaired.push_str("\\ufffd");
                done = at + 6;
                6
            }
            (Some(_), _) => 6,
        };
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    repaired.push_str(&text[done..]);
    Cow::Owned(repaired)
}

/// The number of an escape `\uXXXX`.
fn escape_at(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) { u32::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn value(bytes: &[u8]) -> Option<(Value, bool)> {
        read(bytes).ok().map(|read| (read.value, read.has_bad_bytes))
    }

    #[test]
    fn half_a_character_is_shown_as_none() {
        for (text, expected) in [
            (r#"["\ud83d"]"#, "\u{fffd}"),
            (r#"["a\ude00b"]"#, "a\u{fffd}b"),
            (r#"["\ud83d\ude00\ud83d"]"#, "😀\u{fffd}"),
            (r#"["\ud83d\ud83d\ude00"]"#, "\u{fffd}😀"),
            (r#"["\\ud83d \ud83d\n"]"#, "\\ud83d \u{fffd}\n"),
        ] {
            assert_eq!(value(text.as_bytes()), Some((json!([expected]), false)), "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_told() {
        assert_eq!(value(b"[\"a\xffb\"]"), Some((json!(["a\u{fffd}b"]), true)));
        assert_eq!(value(b"[\xff]"), None);
        assert_eq!(value(br#"["\u12"]"#), None);
        assert_eq!(value(b"[\"\\"), None);
    }
}
