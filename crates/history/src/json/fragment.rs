//! Reads incomplete JSON as far as it goes.

use serde_json::Value;

use super::lenient;

/// The deepest nesting of containers, as for complete JSON.
const MAX_DEPTH: usize = 120;

/// The value at the start of a text. Containers that are open at the end, or at the first invalid place, are closed
/// there: a string is kept up to there, an incomplete number or word is left out. `None` if nothing is left.
pub(crate) fn value_of(bytes: &[u8]) -> Option<Value> {
    let mut walk = FragmentParser { bytes, at: 0, open: Vec::new(), good: 0, is_in_text: false };
    walk.run();
    if walk.good == 0 {
        return None;
    }
    let mut text = bytes[..walk.good].to_vec();
    if walk.is_in_text {
        text.push(b'"');
    }
    text.extend(walk.open.iter().rev().map(|open| if *open == b'{' { b'}' } else { b']' }));
    lenient::read(&text).ok().map(|read| read.value)
}

struct FragmentParser<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The open brackets.
    open: Vec<u8>,
    /// The position at which the text can be closed.
    good: usize,
    /// True if that position is inside a string.
    is_in_text: bool,
}

/// The tokens that may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpectedToken {
    Value,
    /// A value or the end of a list.
    ValueOrEnd,
    Key,
    /// A key or the end of an object.
    KeyOrEnd,
    CommaOrEnd,
}

impl FragmentParser<'_> {
    /// Scans as far as the text is JSON.
    fn run(&mut self) -> Option<()> {
        let mut expected = ExpectedToken::Value;
        loop {
            let byte = self.next_byte()?;
            expected = match (expected, byte) {
                (ExpectedToken::Value | ExpectedToken::ValueOrEnd, b'"') => {
                    self.text(true)?;
                    self.closed()?
                }
                (ExpectedToken::Value | ExpectedToken::ValueOrEnd, b'{' | b'[') => {
                    if self.open.len() >= MAX_DEPTH {
                        return None;
                    }
                    self.open.push(byte);
                    self.at += 1;
                    self.good = self.at;
                    if byte == b'{' { ExpectedToken::KeyOrEnd } else { ExpectedToken::ValueOrEnd }
                }
                (ExpectedToken::Key | ExpectedToken::KeyOrEnd, b'"') => {
                    self.text(false)?;
                    if self.next_byte()? != b':' {
                        return None;
                    }
                    self.at += 1;
                    ExpectedToken::Value
                }
                (ExpectedToken::CommaOrEnd, b',') => {
                    self.at += 1;
                    if self.open.last() == Some(&b'{') { ExpectedToken::Key } else { ExpectedToken::Value }
                }
                (ExpectedToken::CommaOrEnd | ExpectedToken::KeyOrEnd, b'}') if self.open.last() == Some(&b'{') => {
                    self.end()?
                }
                (ExpectedToken::CommaOrEnd | ExpectedToken::ValueOrEnd, b']') if self.open.last() == Some(&b'[') => {
                    self.end()?
                }
                (ExpectedToken::Value | ExpectedToken::ValueOrEnd, _) => {
                    self.word()?;
                    self.closed()?
                }
                _ => return None,
            };
        }
    }

    fn next_byte(&mut self) -> Option<u8> {
        while self.bytes.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Closes a bracket.
    fn end(&mut self) -> Option<ExpectedToken> {
        self.open.pop();
        self.at += 1;
        self.closed()
    }

    /// A value is complete: the next expected token, if any.
    fn closed(&mut self) -> Option<ExpectedToken> {
        self.good = self.at;
        (!self.open.is_empty()).then_some(ExpectedToken::CommaOrEnd)
    }

    /// Scans a string up to its closing quote. An incomplete one ends the scan; as a value it is kept as far as it
    /// goes.
    fn text(&mut self, is_value: bool) -> Option<()> {
        let begin = self.at + 1;
        let mut at = begin;
        loop {
            match self.bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Some(());
                }
                Some(b'\\') => match self.escape(at) {
                    Some(length) => at += length,
                    None => break,
                },
                Some(byte) if *byte >= 0x20 => at += 1,
                Some(_) | None => break,
            }
        }
        if is_value {
            // A character that is cut in two is left out.
            let text = &self.bytes[begin..at];
            let cut = std::str::from_utf8(text).err().filter(|error| error.error_len().is_none());
            self.good = cut.map_or(at, |cut| begin + cut.valid_up_to());
            self.is_in_text = true;
        }
        None
    }

    /// The length of a complete escape at this position.
    fn escape(&self, at: usize) -> Option<usize> {
        match self.bytes.get(at + 1)? {
            b'u' => self.bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
            _ => None,
        }
    }

    /// Scans a number, or one of JSON's words.
    fn word(&mut self) -> Option<()> {
        let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
        let length = self.bytes[self.at..].iter().position(is_end)?;
        let word = &self.bytes[self.at..self.at + length];
        serde_json::from_slice::<Value>(word).ok()?;
        self.at += length;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_breaks_off_is_closed_where_it_breaks() {
        for (text, expected) in [
            (r#"{"a":{"b":"whole"},"c":[{"d":"cut of"#, json!({"a": {"b": "whole"}, "c": [{"d": "cut of"}]})),
            (r#"{"a":1,"b":12"#, json!({"a": 1})),
            (r#"{"a":1,"b":tru"#, json!({"a": 1})),
            (r#"{"a":1,"be"#, json!({"a": 1})),
            (r#"{"a":"x\u00"#, json!({"a": "x"})),
            (r#"{"a":"x\"#, json!({"a": "x"})),
            (r#"{"a":[1,2,"#, json!({"a": [1, 2]})),
            (r#"{"a":[1} ,"b":2}"#, json!({"a": [1]})),
            (r#"{"a":"b" "c":1}"#, json!({"a": "b"})),
            (r#"{"a":[]},{"b":1}"#, json!({"a": []})),
            ("{\"a\":\"x\ny\"}", json!({"a": "x"})),
        ] {
            assert_eq!(value_of(text.as_bytes()), Some(expected), "{text}");
        }
        assert_eq!(value_of("{\"a\":\"né".as_bytes().split_last().unwrap().1), Some(json!({"a": "n"})));
        assert_eq!((value_of(b""), value_of(b"12"), value_of(b"x")), (None, None, None));
        assert!(value_of("[".repeat(100_000).as_bytes()).is_some());
    }

    #[test]
    fn every_beginning_of_a_value_gives_a_value() {
        let text = r#"{"a":[{"b":"c\n\ud83d\ude00é"},null,-1.5e3,true],"d":{}}"#;
        for end in 1..=text.len() {
            assert!(value_of(&text.as_bytes()[..end]).is_some(), "{end}");
        }
        assert_eq!(value_of(text.as_bytes()), serde_json::from_str(text).ok());
    }
}
