//! A value on one line, as YAML writes it: plain, in single quotes, in double quotes.

use std::fmt::Write;

use super::Value;

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Null,
    Text(String),
    /// A list, a block, an anchor, several lines: kept as it is, and not read.
    Unsupported,
}

/// The error for a value that is kept without being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnsupportedValue;

impl Scalar {
    pub(super) fn parse(value: &str) -> Self {
        let value = value.trim();
        let parsed = match value.chars().next() {
            None | Some('#') => return Scalar::Null,
            Some('"') => double_quoted(&value[1..]),
            Some('\'') => single_quoted(&value[1..]),
            Some('|' | '>' | '[' | '{' | '&' | '*' | '!' | '%' | '@' | '`') => None,
            Some(_) => return plain(value),
        };
        parsed.map_or(Scalar::Unsupported, Scalar::Text)
    }

    pub(super) fn text(&self) -> Result<Option<&str>, UnsupportedValue> {
        match self {
            Scalar::Null => Ok(None),
            Scalar::Text(text) => Ok(Some(text)),
            Scalar::Unsupported => Err(UnsupportedValue),
        }
    }
}

/// A value as it is written.
pub(super) fn written(value: Value<'_>) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Time(time) => format!("{time:.3}"),
        Value::Text(text) if is_plain(text) => text.to_owned(),
        Value::Text(text) => quoted(text),
    }
}

fn plain(value: &str) -> Scalar {
    // A comment needs a blank before it.
    let end = value.match_indices('#').find(|(at, _)| value[..*at].ends_with([' ', '\t']));
    let value = end.map_or(value, |(at, _)| value[..at].trim_end());
    match value {
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        value => Scalar::Text(value.to_owned()),
    }
}

fn single_quoted(rest: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        if character != '\'' {
            text.push(character);
        } else if characters.as_str().starts_with('\'') {
            characters.next();
            text.push('\'');
        } else {
            return ends(characters.as_str()).then_some(text);
        }
    }
    None
}

fn double_quoted(rest: &str) -> Option<String> {
    let mut text = String::new();
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return ends(characters.as_str()).then_some(text),
            '\\' => text.push(escape(&mut characters)?),
            character => text.push(character),
        }
    }
    None
}

/// The character of an escape sequence, without its backslash.
fn escape(characters: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match characters.next()? {
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\u{b}',
        'f' => '\u{c}',
        'r' => '\r',
        'e' => '\u{1b}',
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        same @ (' ' | '"' | '/' | '\\') => same,
        'x' => char::from_u32(hex(characters, 2)?)?,
        'u' => match hex(characters, 4)? {
            // Programs that come from JSON write a surrogate pair for one character.
            high @ 0xd800..0xdc00 => {
                (characters.next()? == '\\' && characters.next()? == 'u').then_some(())?;
                let low = hex(characters, 4)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)?
            }
            code => char::from_u32(code)?,
        },
        'U' => char::from_u32(hex(characters, 8)?)?,
        _ => return None,
    })
}

fn hex(characters: &mut std::str::Chars<'_>, digits: usize) -> Option<u32> {
    (0..digits).try_fold(0_u32, |code, _| Some((code << 4) | characters.next()?.to_digit(16)?))
}

/// Returns whether nothing but a comment follows a closing quote.
fn ends(rest: &str) -> bool {
    let trimmed = rest.trim_start();
    trimmed.is_empty() || (trimmed.starts_with('#') && trimmed.len() < rest.len())
}

/// Returns whether every reader reads a text correctly without quotes. In doubt it gets them.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.bytes().next() else { return false };
    let allowed =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '/' | '.' | '_' | '-' | '(' | ')' | '+' | '@');
    let is_uuid = || text.parse::<uuid::fmt::Hyphenated>().is_ok();
    let begins = first.is_ascii_alphabetic() || first == b'/' || is_uuid();
    begins && !text.ends_with(' ') && text.chars().all(allowed) && !is_word(text)
}

/// Words that some reader does not take for text.
fn is_word(text: &str) -> bool {
    const WORDS: [&str; 11] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "nan"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn quoted(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    written.push('"');
    for character in text.chars() {
        // Writing to a string cannot fail.
        let _: std::fmt::Result = match character {
            '"' | '\\' => write!(written, "\\{character}"),
            '\n' => written.write_str("\\n"),
            '\r' => written.write_str("\\r"),
            '\t' => written.write_str("\\t"),
            control if control.is_control() => write!(written, "\\x{:02x}", u32::from(control)),
            // Characters that YAML takes for the end of a line, drops, or does not allow.
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                write!(written, "\\u{:04x}", u32::from(character))
            }
            other => written.write_char(other),
        };
    }
    written.push('"');
    written
}
