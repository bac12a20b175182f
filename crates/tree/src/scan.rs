//! Scans a line in one pass: checks that it is JSON and finds its top-level fields.
//!
//! Loading a log needs four fields of each line and the certainty that the line is complete. Everything else stays
//! bytes, so nothing is decoded: strings are skipped, a lone surrogate escape is accepted, and nothing is allocated.
//! The scanner keeps its own stack of brackets and never recurses.
//!
//! It accepts the same lines as `serde_json` does for a raw value (a property test checks this), up to [`MAX_DEPTH`].

mod text;
mod text_end;

use std::borrow::Cow;
use std::ops::ControlFlow;

pub use self::text::{lossy, text_of};
use self::text_end::{short_text, text};

/// The maximum nesting of a line. Deeper ones are bad lines.
pub const MAX_DEPTH: usize = 4096;

/// The kind of a well-formed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    JsonObject,
    Null,
    /// A number, a text, a list, `true` or `false`.
    Other,
    /// Nothing but white space.
    Blank,
}

/// The place where a line stops being JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanError {
    pub at: usize,
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The line ends too early.
    Ends,
    Unexpected,
    ControlCharacter,
    BadEscape,
    BadNumber,
    /// The line was to be checked for UTF-8.
    NotUtf8,
    TooDeep,
    /// The line continues after its value.
    Trailing,
}

impl Reason {
    pub fn text(self) -> &'static str {
        match self {
            Reason::Ends => "it ends too early",
            Reason::Unexpected => "it is not JSON",
            Reason::ControlCharacter => "a text has a control character in it",
            Reason::BadEscape => "a text has a bad escape in it",
            Reason::BadNumber => "a number is not one",
            Reason::NotUtf8 => "a text is not UTF-8",
            Reason::TooDeep => "it is nested too deep",
            Reason::Trailing => "it goes on after its value",
        }
    }
}

/// The checks of a scan.
trait Checks {
    /// The line is JSON.
    const JSON: bool;
    /// Its texts are UTF-8.
    const UTF8: bool;
}

/// For a line that was scanned before: an invalid one yields wrong fields.
struct NoChecks;

impl Checks for NoChecks {
    const JSON: bool = false;
    const UTF8: bool = false;
}

struct JsonChecks;

impl Checks for JsonChecks {
    const JSON: bool = true;
    const UTF8: bool = false;
}

struct Utf8Checks;

impl Checks for Utf8Checks {
    const JSON: bool = true;
    const UTF8: bool = true;
}

/// Scans lines. It holds the stack of open brackets, so one scanner serves many lines.
#[derive(Debug)]
pub struct Scanner {
    /// One bit for each open bracket: set for an object, clear for a list.
    open: [u64; MAX_DEPTH / 64],
}

impl Default for Scanner {
    fn default() -> Self {
        Self { open: [0; MAX_DEPTH / 64] }
    }
}

/// The level of a field that [`Scanner::scan_with`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// In the line's own object.
    Line,
    /// The named object begins: its fields follow, then the field itself.
    Begin,
    /// In the object that is the value of the named field.
    Inside,
}

impl Scanner {
    /// Scans a line without its line feed and reports each top-level field: its name and its raw value. Fields come in
    /// order; the last one of a name counts.
    pub fn scan<'a>(
        &mut self,
        line: &'a [u8],
        mut field: impl FnMut(&Cow<'a, [u8]>, &'a [u8]),
    ) -> Result<Shape, ScanError> {
        self.walk::<JsonChecks>(line, None, |_, name, value| field(name, value))
    }

    /// Like [`Scanner::scan`], and reports the fields of one field's value as well, if that is an object: `message`.
    pub fn scan_with<'a>(
        &mut self,
        line: &'a [u8],
        inside: &str,
        field: impl FnMut(Level, &Cow<'a, [u8]>, &'a [u8]),
    ) -> Result<Shape, ScanError> {
        self.walk::<JsonChecks>(line, Some(inside.as_bytes()), field)
    }

    /// Like [`Scanner::scan_with`], and refuses a line that is not UTF-8.
    pub fn scan_utf8_with<'a>(
        &mut self,
        line: &'a [u8],
        inside: &str,
        field: impl FnMut(Level, &Cow<'a, [u8]>, &'a [u8]),
    ) -> Result<Shape, ScanError> {
        self.walk::<Utf8Checks>(line, Some(inside.as_bytes()), field)
    }

    /// Like [`Scanner::scan_with`] for a line that was scanned before, several times as fast since it is not validated.
    /// An invalid line yields wrong fields.
    pub(crate) fn scan_trusted<'a>(
        &mut self,
        line: &'a [u8],
        inside: Option<&str>,
        field: impl FnMut(Level, &Cow<'a, [u8]>, &'a [u8]),
    ) -> Result<Shape, ScanError> {
        self.walk::<NoChecks>(line, inside.map(str::as_bytes), field)
    }

    #[inline]
    fn walk<'a, C: Checks>(
        &mut self,
        line: &'a [u8],
        inside: Option<&[u8]>,
        mut field: impl FnMut(Level, &Cow<'a, [u8]>, &'a [u8]),
    ) -> Result<Shape, ScanError> {
        let start = white(line, 0);
        let shape = match line.get(start) {
            None => return Ok(Shape::Blank),
            Some(b'{') => Shape::JsonObject,
            Some(b'n') => Shape::Null,
            Some(_) => Shape::Other,
        };
        let end = if shape == Shape::JsonObject {
            let mut at = white(line, start + 1);
            if line.get(at) == Some(&b'}') {
                at + 1
            } else {
                loop {
                    let (name, value) = name::<C>(line, at)?;
                    let end = match line.get(value) {
                        Some(b'{') if inside == Some(name.as_ref()) => {
                            field(Level::Begin, &name, &line[value..value]);
                            self.fields_inside::<C>(line, value, |name, value| field(Level::Inside, name, value))?
                        }
                        _ => self.value::<C>(line, value, 1)?,
                    };
                    field(Level::Line, &name, &line[value..end]);
                    at = white(line, end);
                    match line.get(at) {
                        Some(b',') => at = white(line, at + 1),
                        Some(b'}') => break at + 1,
                        other => return Err(unexpected(other, at)),
                    }
                }
            }
        } else {
            self.value::<C>(line, start, 1)?
        };
        match white(line, end) {
            end if end == line.len() => Ok(shape),
            at => Err(ScanError { at, reason: Reason::Trailing }),
        }
    }

    /// Reports the fields of an object inside a line's own, and returns the position after it.
    #[inline]
    fn fields_inside<'a, C: Checks>(
        &mut self,
        line: &'a [u8],
        start: usize,
        mut field: impl FnMut(&Cow<'a, [u8]>, &'a [u8]),
    ) -> Result<usize, ScanError> {
        let mut at = white(line, start + 1);
        if line.get(at) == Some(&b'}') {
            return Ok(at + 1);
        }
        loop {
            let (name, value) = name::<C>(line, at)?;
            let end = self.value::<C>(line, value, 2)?;
            field(&name, &line[value..end]);
            at = white(line, end);
            match line.get(at) {
                Some(b',') => at = white(line, at + 1),
                Some(b'}') => return Ok(at + 1),
                other => return Err(unexpected(other, at)),
            }
        }
    }

    /// Reports the raw values of a list in a line that was scanned before; none if the bytes are not a list.
    pub(crate) fn items<'a>(&mut self, list: &'a [u8], mut item: impl FnMut(&'a [u8]) -> ControlFlow<()>) {
        let start = white(list, 0);
        let mut at = white(list, start + 1);
        if list.get(start) != Some(&b'[') || list.get(at) == Some(&b']') {
            return;
        }
        while let Ok(end) = self.value::<NoChecks>(list, at, 1) {
            if item(&list[at..end]).is_break() {
                return;
            }
            at = white(list, end);
            match list.get(at) {
                Some(b',') => at = white(list, at + 1),
                _ => return,
            }
        }
    }

    /// Skips a value and returns the position after it. `outer` brackets are open around it; the line's own level
    /// counts as one.
    fn value<C: Checks>(&mut self, line: &[u8], start: usize, outer: usize) -> Result<usize, ScanError> {
        let mut at = start;
        let mut depth = 0;
        loop {
            // A value begins here.
            at = match line.get(at) {
                Some(b'"') => text::<C>(line, at + 1)?,
                Some(b'{') => match white(line, at + 1) {
                    next if line.get(next) == Some(&b'}') => next + 1,
                    next => {
                        self.push(&mut depth, outer, true, at)?;
                        at = field_name::<C>(line, next)?;
                        continue;
                    }
                },
                Some(b'[') => match white(line, at + 1) {
                    next if line.get(next) == Some(&b']') => next + 1,
                    next => {
                        self.push(&mut depth, outer, false, at)?;
                        at = next;
                        continue;
                    }
                },
                Some(b't') => word(line, at, b"true")?,
                Some(b'f') => word(line, at, b"false")?,
                Some(b'n') => word(line, at, b"null")?,
                Some(b'-' | b'0'..=b'9') => number(line, at)?,
                other => return Err(unexpected(other, at)),
            };
            // The value ended here, and perhaps its container.
            loop {
                if depth == 0 {
                    return Ok(at);
                }
                at = white(line, at);
                let in_object = self.open[(depth - 1) / 64] >> ((depth - 1) % 64) & 1 == 1;
                match (line.get(at), in_object) {
                    (Some(b','), true) => {
                        at = field_name::<C>(line, white(line, at + 1))?;
                        break;
                    }
                    (Some(b','), false) => {
                        at = white(line, at + 1);
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        depth -= 1;
                        at += 1;
                    }
                    (other, _) => return Err(unexpected(other, at)),
                }
            }
        }
    }

    fn push(&mut self, depth: &mut usize, outer: usize, object: bool, at: usize) -> Result<(), ScanError> {
        if *depth + outer >= MAX_DEPTH {
            return Err(ScanError { at, reason: Reason::TooDeep });
        }
        let (place, bit) = (*depth / 64, 1 << (*depth % 64));
        if object {
            self.open[place] |= bit;
        } else {
            self.open[place] &= !bit;
        }
        *depth += 1;
        Ok(())
    }
}

/// A field's name, and the position of its value.
#[inline]
fn name<C: Checks>(line: &[u8], at: usize) -> Result<(Cow<'_, [u8]>, usize), ScanError> {
    if line.get(at) != Some(&b'"') {
        return Err(unexpected(line.get(at), at));
    }
    if let Some(quote) = short_text::<C>(line, at + 1) {
        return Ok((Cow::Borrowed(&line[at + 1..quote]), colon(line, quote + 1)?));
    }
    let end = text::<C>(line, at + 1)?;
    let name = text_of(&line[at..end]).unwrap_or_default();
    Ok((name, colon(line, end)?))
}

/// Skips a field's name and returns the position of its value.
fn field_name<C: Checks>(line: &[u8], at: usize) -> Result<usize, ScanError> {
    match line.get(at) {
        Some(b'"') => colon(line, text::<C>(line, at + 1)?),
        other => Err(unexpected(other, at)),
    }
}

fn colon(line: &[u8], at: usize) -> Result<usize, ScanError> {
    let at = white(line, at);
    match line.get(at) {
        Some(b':') => Ok(white(line, at + 1)),
        other => Err(unexpected(other, at)),
    }
}

fn unexpected(byte: Option<&u8>, at: usize) -> ScanError {
    let reason = if byte.is_some() { Reason::Unexpected } else { Reason::Ends };
    ScanError { at, reason }
}

#[inline]
fn white(line: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = line.get(at) {
        at += 1;
    }
    at
}

fn word(line: &[u8], at: usize, word: &[u8]) -> Result<usize, ScanError> {
    let rest = &line[at..];
    if rest.starts_with(word) {
        return Ok(at + word.len());
    }
    let reason = if word.starts_with(rest) { Reason::Ends } else { Reason::Unexpected };
    Err(ScanError { at, reason })
}

fn number(line: &[u8], start: usize) -> Result<usize, ScanError> {
    let digits = |from: usize| from + line[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let bad = |at: usize| {
        let reason = if at < line.len() { Reason::BadNumber } else { Reason::Ends };
        ScanError { at, reason }
    };
    let first = if line.get(start) == Some(&b'-') { start + 1 } else { start };
    let mut at = match line.get(first) {
        Some(b'0') => first + 1,
        Some(b'1'..=b'9') => digits(first),
        _ => return Err(bad(first)),
    };
    // A zero has no further digits.
    if line.get(first) == Some(&b'0') && line.get(at).is_some_and(u8::is_ascii_digit) {
        return Err(bad(at));
    }
    if line.get(at) == Some(&b'.') {
        let end = digits(at + 1);
        if end == at + 1 {
            return Err(bad(end));
        }
        at = end;
    }
    if let Some(b'e' | b'E') = line.get(at) {
        let exponent = if let Some(b'+' | b'-') = line.get(at + 1) { at + 2 } else { at + 1 };
        let end = digits(exponent.min(line.len()));
        if end == exponent.min(line.len()) {
            return Err(bad(end));
        }
        at = end;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_shown_as_they_stand() {
        let line = br#" { "a" : [1, {"a":2}] ,"b\u0062":"\ud800", "a":null }"#;
        let mut fields = Vec::new();
        let shape = Scanner::default().scan(line, |name, value| fields.push((name.to_vec(), value.to_vec())));
        assert_eq!(shape, Ok(Shape::JsonObject));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let fields: Vec<_> = fields.iter().map(|(name, value)| (text(name), text(value))).collect();
        let expected = [("a", r#"[1, {"a":2}]"#), ("bb", r#""\ud800""#), ("a", "null")];
        assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_line_that_was_scanned_before_shows_the_same_fields() {
        let lines = [
            r#"{"a":"\\","b":"\"","c":["\\\"",{"d":"}"}],"message":{"role":"u\"\\","content":[1,"]"]},"e":-1.5e3}"#,
            r#" { "a" : "" , "message" : {} , "x" : null } "#,
            r#"{"message":[{"role":"x"}],"\u0061\\":true}"#,
        ];
        for line in lines {
            let mut shown = [Vec::new(), Vec::new()];
            let [first, again] = &mut shown;
            let line = line.as_bytes();
            let one = Scanner::default().scan_with(line, "message", |level, name, value| {
                first.push((level, name.to_vec(), value));
            });
            let two = Scanner::default().scan_trusted(line, Some("message"), |level, name, value| {
                again.push((level, name.to_vec(), value));
            });
            assert_eq!(one, two);
            assert!(one.is_ok());
            assert_eq!(shown[0], shown[1]);
        }
    }

    #[test]
    fn what_was_never_scanned_is_no_danger() {
        let sound = br#"{"a":"\\","message":{"x":[{"b":"\""},1]},"c":{}}"#;
        for at in 0..sound.len() {
            for byte in [b'"', b'\\', b'{', b']', 0, 0xff] {
                let mut line = sound.to_vec();
                line[at] = byte;
                for end in [at, line.len()] {
                    Scanner::default().scan_trusted(&line[..end], Some("message"), |_, _, _| {}).ok();
                    Scanner::default().items(&line[..end], |_| ControlFlow::Continue(()));
                }
            }
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        assert_eq!(Scanner::default().scan(&nested(MAX_DEPTH), |_, _| {}), Ok(Shape::Other));
        let error = Scanner::default().scan(&nested(MAX_DEPTH + 1), |_, _| {}).unwrap_err();
        assert_eq!(error.reason, Reason::TooDeep);
        let endless = vec![b'['; 10_000_000];
        assert!(Scanner::default().scan(&endless, |_, _| {}).is_err());
    }
}
