//! Reads a large JSON object in bounded memory: its members one by one, and one of its lists item by item.
//!
//! Only brackets and strings are scanned, so that invalid JSON inside an item's brackets affects only that item, and
//! nothing recurses. The receiver of a piece interprets it. Damage that moves a bracket or a quote makes the scanner
//! lose its position; if the first key of an item is known, it continues at the next item that begins with it.

use std::io::{self, BufRead};

use super::rewind::RewindReader;

/// The kind of a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamItem {
    /// A member of the object.
    Member(String),
    /// An item of the list.
    Item,
    /// Bytes after damage that begin like an item.
    Resumed,
    /// The beginning of an incomplete item, or other damage if there are no bytes. After the last one nothing more is
    /// found, and the stream's end says so.
    Fragment { is_last: bool },
}

/// The caller's verdict on a piece. The scanner searches an unsound one for items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemVerdict {
    Sound,
    Unsound,
    /// Nothing after this item of the list is needed.
    Last,
}

/// The end of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    Whole,
    /// The caller wanted no more.
    Stopped,
    /// Only white space.
    Empty,
    /// The value at this offset has no end in the file.
    Torn(u64),
    /// The byte at this offset is unexpected, and the rest cannot be read any more.
    Broken(u64),
}

/// The maximum length of a key: no tool has longer ones.
const LONGEST_KEY: usize = 4_096;
/// The number of searched bytes that are kept, to find a key across two chunks.
const WINDOW: usize = 8_192;
/// The maximum size of repeated scans after damage, in longest pieces. Beyond it the rest is skipped.
const MAX_RESCANS: u64 = 4;

/// Reads an object. `each` gets the pieces in order with their offsets; without bytes a piece was longer than
/// `longest`.
pub(crate) fn stream_object(
    source: impl BufRead,
    list: &str,
    longest: usize,
    mut each: impl FnMut(StreamItem, u64, Option<&[u8]>),
) -> io::Result<StreamEnd> {
    let mut sound = |piece: StreamItem, offset: u64, bytes: Option<&[u8]>| {
        each(piece, offset, bytes);
        ItemVerdict::Sound
    };
    scan(ObjectScanner::new(source, longest, None), list, &mut sound)
}

/// The same for a damaged object whose list has items that begin with `first_key`.
pub(crate) fn stream_damaged_object(
    source: impl BufRead,
    list: &str,
    first_key: &str,
    longest: usize,
    mut each: impl FnMut(StreamItem, u64, Option<&[u8]>) -> ItemVerdict,
) -> io::Result<StreamEnd> {
    let key = format!("\"{first_key}\"");
    scan(ObjectScanner::new(source, longest, Some(&key)), list, &mut each)
}

fn scan<R: BufRead>(
    mut scanner: ObjectScanner<'_, R>,
    list: &str,
    each: &mut impl FnMut(StreamItem, u64, Option<&[u8]>) -> ItemVerdict,
) -> io::Result<StreamEnd> {
    match scanner.object(list, each) {
        Ok(end) | Err(ScanStop::Ended(end)) => Ok(end),
        Err(ScanStop::Io(error)) => Err(error),
        Err(ScanStop::Broken(offset)) => scanner.ended(offset).map_err(|stop| match stop {
            ScanStop::Io(error) => error,
            ScanStop::Broken(_) | ScanStop::Ended(_) => io::Error::other("a source that cannot be read"),
        }),
    }
}

enum ScanStop {
    Broken(u64),
    /// The rest was searched without a result.
    Ended(StreamEnd),
    Io(io::Error),
}

struct ObjectScanner<'a, R> {
    source: RewindReader<R>,
    offset: u64,
    longest: usize,
    /// The first key of an item, in quotes.
    first_key: Option<&'a str>,
    /// The number of pushed back bytes.
    rescanned: u64,
}

impl<'a, R: BufRead> ObjectScanner<'a, R> {
    fn new(source: R, longest: usize, first_key: Option<&'a str>) -> Self {
        Self { source: RewindReader::new(source), offset: 0, longest, first_key, rescanned: 0 }
    }

    fn object(
        &mut self,
        list: &str,
        each: &mut impl FnMut(StreamItem, u64, Option<&[u8]>) -> ItemVerdict,
    ) -> Result<StreamEnd, ScanStop> {
        let mut buffer = Vec::new();
        match self.next_byte()? {
            None => return Ok(StreamEnd::Empty),
            // Some editors leave a byte order mark.
            Some(0xEF) => {
                self.expect(0xBB)?;
                self.expect(0xBF)?;
                self.expect(b'{')?;
            }
            Some(b'{') => {}
            Some(_) => return Err(ScanStop::Broken(self.offset - 1)),
        }
        if self.peek()? == Some(b'}') {
            return Ok(StreamEnd::Whole);
        }
        let mut has_list = false;
        loop {
            let at = self.offset;
            let member = self.member(list, &mut buffer, each, &mut has_list);
            let behind = member.and_then(|()| match self.next_byte()? {
                byte @ Some(b',' | b'}') => Ok(byte),
                _ => Err(ScanStop::Broken(self.offset)),
            });
            match behind {
                Ok(Some(b'}')) => return Ok(StreamEnd::Whole),
                Ok(_) => {}
                // Damage before the list does not hide it.
                Err(ScanStop::Broken(_)) if !has_list && self.first_key.is_some() => {
                    has_list = true;
                    self.resume(at, &mut buffer, SkippedDamage::Member, each)?;
                    self.items(&mut buffer, true, each)?;
                    match self.next_byte()? {
                        Some(b',') => {}
                        Some(b'}') => return Ok(StreamEnd::Whole),
                        _ => return Err(ScanStop::Broken(self.offset)),
                    }
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    fn member(
        &mut self,
        list: &str,
        buffer: &mut Vec<u8>,
        each: &mut impl FnMut(StreamItem, u64, Option<&[u8]>) -> ItemVerdict,
        has_list: &mut bool,
    ) -> Result<(), ScanStop> {
        let at = self.offset;
        if self.peek()? != Some(b'"') || !self.value(buffer, LONGEST_KEY)? {
            return Err(ScanStop::Broken(at));
        }
        let key: String = serde_json::from_slice(buffer).map_err(|_| ScanStop::Broken(at))?;
        self.expect(b':')?;
        if key == list && self.peek()? == Some(b'[') {
            *has_list = true;
            self.expect(b'[')?;
            if self.peek()? == Some(b']') {
                return self.expect(b']');
            }
            return self.items(buffer, false, each);
        }
        self.peek()?;
        let at = self.offset;
        let fits = self.value(buffer, self.longest)?;
        each(StreamItem::Member(key), at, fits.then_some(buffer));
        Ok(())
    }

    /// Reads the items of the list up to its end. `is_resumed` means that the first one comes after damage.
    fn items(
        &mut self,
        buffer: &mut Vec<u8>,
        mut is_resumed: bool,
        each: &mut impl FnMut(StreamItem, u64, Option<&[u8]>) -> ItemVerdict,
    ) -> Result<(), ScanStop> {
        loop {
            self.peek()?;
            let at = self.offset;
            let mut is_unsound = false;
            let damaged = match self.value(buffer, self.longest) {
                // An item must be followed by a comma or the list's end.
                Ok(fits) if self.first_key.is_none() || matches!(self.peek()?, Some(b',' | b']')) => {
                    let piece = if is_resumed { StreamItem::Resumed } else { StreamItem::Item };
                    let verdict = each(piece, at, fits.then_some(buffer));
                    let has_more = || self.first_key.is_some_and(|key| start_in(&buffer[1..], key).is_some());
                    match verdict {
                        ItemVerdict::Unsound if is_resumed => Some(SkippedDamage::NoItem),
                        ItemVerdict::Unsound if has_more() => Some(SkippedDamage::Item),
                        ItemVerdict::Unsound => {
                            each(StreamItem::Fragment { is_last: false }, at, Some(buffer));
                            is_unsound = true;
                            None
                        }
                        ItemVerdict::Sound => None,
                        ItemVerdict::Last => return Err(ScanStop::Ended(StreamEnd::Stopped)),
                    }
                }
                Ok(_) | Err(ScanStop::Broken(_)) if is_resumed => Some(SkippedDamage::NoItem),
                Ok(_) | Err(ScanStop::Broken(_)) => Some(SkippedDamage::Item),
                Err(stop) => return Err(stop),
            };
            let Some(damaged) = damaged else {
                match self.next_byte()? {
                    Some(b',') => {
                        is_resumed = false;
                        continue;
                    }
                    // After a damaged item the bracket may belong to that item.
                    Some(b']') if is_unsound && self.start_ahead(at)? => {
                        is_resumed = true;
                        continue;
                    }
                    Some(b']') => return Ok(()),
                    _ => return Err(ScanStop::Broken(self.offset)),
                }
            };
            self.resume(at, buffer, damaged, each)?;
            is_resumed = true;
        }
    }

    /// Continues at the next item after damage at `at`. The buffer holds the bytes since then.
    fn resume(
        &mut self,
        at: u64,
        buffer: &mut Vec<u8>,
        damaged: SkippedDamage,
        each: &mut impl FnMut(StreamItem, u64, Option<&[u8]>) -> ItemVerdict,
    ) -> Result<(), ScanStop> {
        let Some(key) = self.first_key else { return Err(ScanStop::Broken(at)) };
        let mut tell = |bytes: Option<&[u8]>, is_last| match damaged {
            SkippedDamage::Item => drop(each(StreamItem::Fragment { is_last }, at, bytes)),
            SkippedDamage::Member => drop(each(StreamItem::Fragment { is_last }, at, None)),
            SkippedDamage::NoItem => {}
        };
        let inside = buffer.get(1..).and_then(|rest| start_in(rest, key)).map(|found| found + 1);
        if let Some(found) = inside {
            tell(Some(&buffer[..found]), false);
            let rest = buffer.split_off(found);
            return match self.put_back(&rest) {
                true => Ok(()),
                false => Err(ScanStop::Ended(StreamEnd::Broken(at))),
            };
        }
        let end = self.ended(at)?;
        let found = self.find_start(key)?;
        tell(Some(buffer), !found);
        if found { Ok(()) } else { Err(ScanStop::Ended(end)) }
    }

    /// Continues at the next item if one begins within the longest piece; otherwise stays.
    fn start_ahead(&mut self, at: u64) -> Result<bool, ScanStop> {
        let Some(key) = self.first_key else { return Ok(false) };
        let mut ahead: Vec<u8> = Vec::new();
        let mut found = None;
        while found.is_none() && ahead.len() < self.longest {
            let chunk = fill(&mut self.source)?;
            if chunk.is_empty() {
                break;
            }
            let used = chunk.len().min(self.longest - ahead.len());
            let searched = ahead.len().saturating_sub(WINDOW);
            ahead.extend_from_slice(&chunk[..used]);
            self.source.consume(used);
            self.offset += used as u64;
            found = start_in(&ahead[searched..], key).map(|start| searched + start);
        }
        match self.put_back(&ahead[found.unwrap_or(0)..]) {
            true => Ok(found.is_some()),
            false => Err(ScanStop::Ended(StreamEnd::Broken(at))),
        }
    }

    /// Reads up to the start of an item; `false` if there is none.
    fn find_start(&mut self, key: &str) -> Result<bool, ScanStop> {
        let mut window: Vec<u8> = Vec::new();
        loop {
            let chunk = fill(&mut self.source)?;
            if chunk.is_empty() {
                return Ok(false);
            }
            let used = chunk.len();
            window.extend_from_slice(chunk);
            self.source.consume(used);
            self.offset += used as u64;
            if let Some(found) = start_in(&window, key) {
                return Ok(self.put_back(&window[found..]));
            }
            window.drain(..window.len().saturating_sub(WINDOW));
        }
    }

    /// Pushes bytes back to the source; `false` beyond the limit.
    fn put_back(&mut self, bytes: &[u8]) -> bool {
        self.rescanned = self.rescanned.saturating_add(bytes.len() as u64);
        if self.rescanned > MAX_RESCANS.saturating_mul(self.longest as u64) {
            return false;
        }
        self.source.put_back(bytes);
        self.offset -= bytes.len() as u64;
        true
    }

    /// The end of an object that breaks off at `offset`.
    fn ended(&mut self, offset: u64) -> Result<StreamEnd, ScanStop> {
        Ok(if fill(&mut self.source)?.is_empty() { StreamEnd::Torn(offset) } else { StreamEnd::Broken(offset) })
    }

    /// Reads a value into the buffer, up to its last bracket or quote; `false` if it is too long.
    fn value(&mut self, buffer: &mut Vec<u8>, longest: usize) -> Result<bool, ScanStop> {
        let begin = self.offset;
        buffer.clear();
        let mut fits = true;
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        loop {
            let chunk = fill(&mut self.source)?;
            if chunk.is_empty() {
                return Err(ScanStop::Broken(begin));
            }
            let mut used = 0;
            let mut done = false;
            while used < chunk.len() && !done {
                let byte = chunk[used];
                if in_string {
                    // Most of a session is long strings: they are searched in bulk.
                    if !escaped && byte != b'"' && byte != b'\\' {
                        used = memchr::memchr2(b'"', b'\\', &chunk[used..]).map_or(chunk.len(), |found| used + found);
                        continue;
                    }
                    used += 1;
                    match byte {
                        _ if escaped => escaped = false,
                        b'\\' => escaped = true,
                        _ => {
                            in_string = false;
                            done = depth == 0;
                        }
                    }
                    continue;
                }
                match byte {
                    b'"' => in_string = true,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' if depth > 0 => {
                        depth -= 1;
                        done = depth == 0;
                    }
                    // The byte that ends a number or a word belongs to the container.
                    b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => {
                        done = true;
                        continue;
                    }
                    _ => {}
                }
                used += 1;
            }
            fits &= buffer.len() + used <= longest;
            if fits {
                buffer.extend_from_slice(&chunk[..used]);
            } else {
                *buffer = Vec::new();
            }
            self.source.consume(used);
            self.offset += used as u64;
            if done {
                return if self.offset == begin { Err(ScanStop::Broken(begin)) } else { Ok(fits) };
            }
        }
    }

    /// The next byte other than white space, without consuming it.
    fn peek(&mut self) -> Result<Option<u8>, ScanStop> {
        loop {
            let chunk = fill(&mut self.source)?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let blank = chunk.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let found = chunk.get(blank).copied();
            self.source.consume(blank);
            self.offset += blank as u64;
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    fn next_byte(&mut self) -> Result<Option<u8>, ScanStop> {
        let byte = self.peek()?;
        if byte.is_some() {
            self.source.consume(1);
            self.offset += 1;
        }
        Ok(byte)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), ScanStop> {
        match self.next_byte()? {
            Some(byte) if byte == wanted => Ok(()),
            _ => Err(ScanStop::Broken(self.offset)),
        }
    }
}

/// The kind of damage that the scanner skips.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SkippedDamage {
    Item,
    /// Damage before the list.
    Member,
    /// A false start: the bytes after the damage only begin like an item.
    NoItem,
}

/// The start of an item: a bracket followed by the first key that is not the value of another key.
fn start_in(bytes: &[u8], key: &str) -> Option<usize> {
    let is_blank = |byte: &&u8| byte.is_ascii_whitespace();
    memchr::memmem::find_iter(bytes, key.as_bytes()).find_map(|at| {
        let before = &bytes[..at];
        let open = before.len() - before.iter().rev().take_while(is_blank).count();
        let open = open.checked_sub(1).filter(|open| bytes[*open] == b'{')?;
        let is_value = bytes[..open].iter().rev().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        let behind = bytes[at + key.len()..].iter().find(|byte| !byte.is_ascii_whitespace());
        (!is_value && behind == Some(&b':')).then_some(open)
    })
}

fn fill(source: &mut impl BufRead) -> Result<&[u8], ScanStop> {
    // A successful result's borrow cannot be returned from inside a loop, so it is requested once more.
    loop {
        match source.fill_buf() {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ScanStop::Io(error)),
        }
    }
    source.fill_buf().map_err(ScanStop::Io)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, longest: usize) -> (Vec<String>, StreamEnd) {
        let mut pieces = Vec::new();
        let source = io::BufReader::with_capacity(3, text.as_bytes());
        let end = stream_object(source, "list", longest, |piece, offset, bytes| {
            let bytes = bytes.map_or("…", |bytes| std::str::from_utf8(bytes).unwrap());
            let name = match piece {
                StreamItem::Member(name) => name,
                StreamItem::Item => "-".into(),
                StreamItem::Resumed | StreamItem::Fragment { .. } => panic!("nothing is recovered here"),
            };
            pieces.push(format!("{name}@{offset}={bytes}"));
        });
        (pieces, end.unwrap())
    }

    #[test]
    fn members_and_items_come_one_by_one() {
        let text = "\u{feff} {\"a\" : {\"x\":\"}\\\"]\"} , \"list\":[1, [2], \"t\\\\\"],\"b\":null}";
        let (pieces, end) = read(text, 100);
        assert_eq!(pieces, [r#"a@11={"x":"}\"]"}"#, "-@34=1", "-@37=[2]", r#"-@42="t\\""#, "b@53=null"]);
        assert_eq!(end, StreamEnd::Whole);
        assert_eq!(read("{}", 9), (vec![], StreamEnd::Whole));
        assert_eq!(read("{\"list\":[]}", 9), (vec![], StreamEnd::Whole));
        assert_eq!(read(" \n", 9), (vec![], StreamEnd::Empty));
    }

    #[test]
    fn what_comes_before_a_break_is_given() {
        let text = r#"{"a":1,"list":[{"b":2},{"c":3}],"d":4}"#;
        for end in 1..text.len() {
            let (pieces, ended) = read(&text[..end], 100);
            assert!(matches!(ended, StreamEnd::Torn(_)), "{end}: {ended:?}");
            let whole = read(text, 100).0;
            assert_eq!(pieces, whole[..pieces.len()], "{end}");
        }
        assert_eq!(read("[1]", 9).1, StreamEnd::Broken(0));
        assert_eq!(read(r#"{"a":1 "b":2}"#, 9), (vec!["a@5=1".into()], StreamEnd::Broken(8)));
    }

    fn recover(text: &str) -> (Vec<String>, StreamEnd) {
        let mut pieces = Vec::new();
        let source = io::BufReader::with_capacity(3, text.as_bytes());
        let end = stream_damaged_object(source, "list", "id", 1_000, |piece, _, bytes| {
            let text = bytes.map_or("…", |bytes| std::str::from_utf8(bytes).unwrap());
            let is_sound = serde_json::from_str::<serde_json::Value>(text).is_ok();
            match piece {
                StreamItem::Member(name) => pieces.push(format!("{name}={text}")),
                StreamItem::Fragment { .. } => pieces.push(format!("~{text}")),
                StreamItem::Item | StreamItem::Resumed if is_sound => pieces.push(text.to_owned()),
                StreamItem::Item | StreamItem::Resumed => return ItemVerdict::Unsound,
            }
            ItemVerdict::Sound
        });
        (pieces, end.unwrap())
    }

    #[test]
    fn items_behind_a_damaged_one_are_found_by_their_first_key() {
        let (first, last) = (r#"{"id":1,"t":"a"}"#, r#"{ "id" : 3,"t":"c"}"#);
        for (damaged, fragment) in [
            (r#"{"id":2,"t":"b}"#, r#"~{"id":2,"t":"b},"#),
            (r#"{"id":2,"t":["b"}"#, r#"~{"id":2,"t":["b"},"#),
            (r#"{"id":2,"t":b"x"#, r#"~{"id":2,"t":b"x,"#),
            (r#"{"id":2,"u":{"id":9},"t":[}"#, r#"~{"id":2,"u":{"id":9},"t":[},"#),
            (r#"{"id":2,"t":nul}"#, r#"~{"id":2,"t":nul}"#),
        ] {
            let text = format!(r#"{{"a":1,"list":[{first},{damaged},{last}],"b":2}}"#);
            let (pieces, end) = recover(&text);
            assert_eq!(pieces, ["a=1", first, fragment, last, "b=2"], "{damaged}");
            assert_eq!(end, StreamEnd::Whole, "{damaged}");
        }
        // An item that ends too early is returned as far as it goes, and the rest of it as damage.
        let (pieces, _) = recover(&format!(r#"{{"list":[{{"id":2}},"t":1}},{last}],"b":2}}"#));
        assert_eq!(pieces, [r#"{"id":2}"#, r#"~"t""#, last, "b=2"]);
        // Damage before the list does not hide it.
        assert_eq!(recover(&format!(r#"{{"a":"x,"list":[{last}],"b":2}}"#)).0, ["a=\"x,\"", "~…", last, "b=2"]);
        let torn = recover(&format!(r#"{{"list":[{first},{{"id":2,"t":"b"#));
        assert_eq!((torn.0.last().unwrap().as_str(), torn.1), (r#"~{"id":2,"t":"b"#, StreamEnd::Torn(26)));
    }

    #[test]
    fn a_piece_that_is_too_long_is_passed_over() {
        let (pieces, end) = read(r#"{"list":[{"b":"long"},1],"d":4}"#, 5);
        assert_eq!(
            (pieces.as_slice(), end),
            (&["-@9=…".to_owned(), "-@22=1".into(), "d@29=4".into()][..], StreamEnd::Whole)
        );
    }
}
