//! A large JSON object in bounded memory: its members one by one, and one of its lists item by item.
//!
//! Only brackets and strings are looked at, so that an item that is no JSON inside its brackets costs itself alone, and
//! nothing recurses. What a piece means is decided by who gets it.

use std::io::{self, BufRead};

/// What a piece is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A member of the object.
    Member(String),
    /// An item of the list.
    Item,
}

/// How the object ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    /// There was nothing but white space.
    Empty,
    /// What begins at this byte has no end in the file.
    Torn(u64),
    /// What stands at this byte does not belong there, and what follows cannot be told apart any more.
    Broken(u64),
}

/// A key that is longer belongs to no tool.
const LONGEST_KEY: usize = 4_096;

/// Reads an object. `each` gets the pieces in their order, with where they begin; without bytes a piece was longer than
/// `longest`.
pub(crate) fn pieces(
    source: impl BufRead,
    list: &str,
    longest: usize,
    mut each: impl FnMut(Piece, u64, Option<&[u8]>),
) -> io::Result<End> {
    let mut scanner = Scanner { source, offset: 0 };
    match scanner.object(list, longest, &mut each) {
        Ok(end) => Ok(end),
        Err(Stop::Io(error)) => Err(error),
        Err(Stop::Broken(offset)) => match fill(&mut scanner.source) {
            Ok([]) => Ok(End::Torn(offset)),
            Ok(_) => Ok(End::Broken(offset)),
            Err(Stop::Io(error)) => Err(error),
            Err(Stop::Broken(offset)) => Ok(End::Broken(offset)),
        },
    }
}

enum Stop {
    Broken(u64),
    Io(io::Error),
}

struct Scanner<R> {
    source: R,
    offset: u64,
}

impl<R: BufRead> Scanner<R> {
    fn object(
        &mut self,
        list: &str,
        longest: usize,
        each: &mut impl FnMut(Piece, u64, Option<&[u8]>),
    ) -> Result<End, Stop> {
        let mut buffer = Vec::new();
        match self.next_byte()? {
            None => return Ok(End::Empty),
            // A byte order mark, which some editors leave.
            Some(0xEF) => {
                self.expect(0xBB)?;
                self.expect(0xBF)?;
                self.expect(b'{')?;
            }
            Some(b'{') => {}
            Some(_) => return Err(Stop::Broken(self.offset - 1)),
        }
        if self.peek()? == Some(b'}') {
            return Ok(End::Whole);
        }
        loop {
            let at = self.offset;
            if self.peek()? != Some(b'"') || !self.value(&mut buffer, LONGEST_KEY)? {
                return Err(Stop::Broken(at));
            }
            let key: String = serde_json::from_slice(&buffer).map_err(|_| Stop::Broken(at))?;
            self.expect(b':')?;
            if key == list && self.peek()? == Some(b'[') {
                self.expect(b'[')?;
                self.items(&mut buffer, longest, each)?;
            } else {
                self.peek()?;
                let at = self.offset;
                let fits = self.value(&mut buffer, longest)?;
                each(Piece::Member(key), at, fits.then_some(&buffer));
            }
            match self.next_byte()? {
                Some(b',') => {}
                Some(b'}') => return Ok(End::Whole),
                _ => return Err(Stop::Broken(self.offset)),
            }
        }
    }

    fn items(
        &mut self,
        buffer: &mut Vec<u8>,
        longest: usize,
        each: &mut impl FnMut(Piece, u64, Option<&[u8]>),
    ) -> Result<(), Stop> {
        if self.peek()? == Some(b']') {
            return self.expect(b']');
        }
        loop {
            self.peek()?;
            let at = self.offset;
            let fits = self.value(buffer, longest)?;
            each(Piece::Item, at, fits.then_some(buffer));
            match self.next_byte()? {
                Some(b',') => {}
                Some(b']') => return Ok(()),
                _ => return Err(Stop::Broken(self.offset)),
            }
        }
    }

    /// Takes a value into the buffer, up to its last bracket or quote; `false` where it is longer than that.
    fn value(&mut self, buffer: &mut Vec<u8>, longest: usize) -> Result<bool, Stop> {
        let begin = self.offset;
        buffer.clear();
        let mut fits = true;
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        loop {
            let chunk = fill(&mut self.source)?;
            if chunk.is_empty() {
                return Err(Stop::Broken(begin));
            }
            let mut used = 0;
            let mut done = false;
            while used < chunk.len() && !done {
                let byte = chunk[used];
                if in_string {
                    // Most of a session is long strings: they are searched, not walked.
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
                    // What ends a number or a word belongs to what is around it.
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
                return if self.offset == begin { Err(Stop::Broken(begin)) } else { Ok(fits) };
            }
        }
    }

    /// The next byte that is no white space, which stays.
    fn peek(&mut self) -> Result<Option<u8>, Stop> {
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

    fn next_byte(&mut self) -> Result<Option<u8>, Stop> {
        let byte = self.peek()?;
        if byte.is_some() {
            self.source.consume(1);
            self.offset += 1;
        }
        Ok(byte)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Stop> {
        match self.next_byte()? {
            Some(byte) if byte == wanted => Ok(()),
            _ => Err(Stop::Broken(self.offset)),
        }
    }
}

fn fill(source: &mut impl BufRead) -> Result<&[u8], Stop> {
    // The borrow of a successful answer cannot be given back from inside a loop, so it is asked for once more.
    loop {
        match source.fill_buf() {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Stop::Io(error)),
        }
    }
    source.fill_buf().map_err(Stop::Io)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, longest: usize) -> (Vec<String>, End) {
        let mut seen = Vec::new();
        let source = io::BufReader::with_capacity(3, text.as_bytes());
        let end = pieces(source, "list", longest, |piece, offset, bytes| {
            let bytes = bytes.map_or("…", |bytes| std::str::from_utf8(bytes).unwrap());
            let name = match piece {
                Piece::Member(name) => name,
                Piece::Item => "-".into(),
            };
            seen.push(format!("{name}@{offset}={bytes}"));
        });
        (seen, end.unwrap())
    }

    #[test]
    fn members_and_items_come_one_by_one() {
        let text = "\u{feff} {\"a\" : {\"x\":\"}\\\"]\"} , \"list\":[1, [2], \"t\\\\\"],\"b\":null}";
        let (seen, end) = read(text, 100);
        assert_eq!(seen, [r#"a@11={"x":"}\"]"}"#, "-@34=1", "-@37=[2]", r#"-@42="t\\""#, "b@53=null"]);
        assert_eq!(end, End::Whole);
        assert_eq!(read("{}", 9), (vec![], End::Whole));
        assert_eq!(read("{\"list\":[]}", 9), (vec![], End::Whole));
        assert_eq!(read(" \n", 9), (vec![], End::Empty));
    }

    #[test]
    fn what_comes_before_a_break_is_given() {
        let text = r#"{"a":1,"list":[{"b":2},{"c":3}],"d":4}"#;
        for end in 1..text.len() {
            let (seen, ended) = read(&text[..end], 100);
            assert!(matches!(ended, End::Torn(_)), "{end}: {ended:?}");
            let whole = read(text, 100).0;
            assert_eq!(seen, whole[..seen.len()], "{end}");
        }
        assert_eq!(read("[1]", 9).1, End::Broken(0));
        assert_eq!(read(r#"{"a":1 "b":2}"#, 9), (vec!["a@5=1".into()], End::Broken(8)));
    }

    #[test]
    fn a_piece_that_is_too_long_is_passed_over() {
        let (seen, end) = read(r#"{"list":[{"b":"long"},1],"d":4}"#, 5);
        assert_eq!((seen.as_slice(), end), (&["-@9=…".to_owned(), "-@22=1".into(), "d@29=4".into()][..], End::Whole));
    }
}
