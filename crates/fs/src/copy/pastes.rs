//! Rewriting the paths of pasted files in a copy.
//!
//! A message names a pasted file with its absolute path. In a fork that path must lead to the fork's own copy. Only the
//! path itself is replaced, and only where exactly such a path occurs: the folder of the earlier session, followed by
//! the name of a paste.

use memchr::memmem;

/// The most digits of a time in milliseconds.
const LONGEST_TIME: usize = 20;
/// The limit that `workspace/paste.rs` applies.
const LONGEST_EXTENSION: usize = 16;

/// Replaces the old location of pasted files by the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastePathRewriter {
    /// The prefixes of such paths, old and new, as written in JSON.
    spellings: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Bytes of a larger text on their way through [`PastePathRewriter`]. It holds back the end until the following bytes
/// are known.
#[derive(Clone, Debug)]
pub struct PastePathStream<'a> {
    moved: &'a PastePathRewriter,
    held: Vec<u8>,
    /// The offset of the first held byte in the whole.
    offset: u64,
    /// The byte before it.
    before: Option<u8>,
}

struct PastePath<'a> {
    start: usize,
    /// The offset where the new prefix replaces the old one.
    end: usize,
    new: &'a [u8],
}

impl PastePathRewriter {
    /// Pairs of old and new prefixes, up to and including [`PASTE`](crate::workspace::PASTE), in every spelling.
    pub fn new<'a>(spellings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let json = |text: &str| {
            let quoted = serde_json::Value::from(text).to_string().into_bytes();
            quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_vec()
        };
        let spellings = spellings.into_iter().filter(|(old, new)| !old.is_empty() && old != new);
        Self { spellings: spellings.map(|(old, new)| (json(old), json(new))).collect() }
    }

    /// The JSON with the new paths, if it has an old one.
    pub fn rewrite(&self, json: &[u8]) -> Option<Vec<u8>> {
        self.next_in(json, 0, None)?;
        let mut rewritten = Vec::with_capacity(json.len());
        self.begin(0).pass(json, true, |_| true, &mut rewritten);
        Some(rewritten)
    }

    /// Begins a stream whose first byte is at `offset` in the whole.
    pub fn begin(&self, offset: u64) -> PastePathStream<'_> {
        PastePathStream { moved: self, held: Vec::new(), offset, before: None }
    }

    /// The bytes after a prefix that decide whether it is a path.
    fn longest(&self) -> usize {
        let spelled = self.spellings.iter().map(|(old, _)| old.len()).max().unwrap_or(0);
        spelled + LONGEST_TIME + 1 + LONGEST_EXTENSION + 2
    }

    /// The first path at or after an offset.
    fn next_in(&self, bytes: &[u8], from: usize, before: Option<u8>) -> Option<PastePath<'_>> {
        let found = self.spellings.iter().filter_map(|(old, new)| {
            let starts = memmem::find_iter(bytes.get(from..)?, old).map(|at| from + at);
            let is_path = |start: usize| {
                let before = start.checked_sub(1).map_or(before, |at| bytes.get(at).copied());
                before.is_none_or(|byte| !goes_on(byte)) && bytes.get(start + old.len()..).is_some_and(is_paste)
            };
            let start = starts.into_iter().find(|start| is_path(*start))?;
            Some(PastePath { start, end: start + old.len(), new })
        });
        found.min_by_key(|found| found.start)
    }
}

impl PastePathStream<'_> {
    /// Takes the next bytes, and appends the final ones to `out`. `is_meant` says for the offset of a path in the whole
    /// whether to replace it. Returns whether any length changed.
    pub fn pass(&mut self, bytes: &[u8], is_last: bool, is_meant: impl Fn(u64) -> bool, out: &mut Vec<u8>) -> bool {
        self.held.extend_from_slice(bytes);
        let held_back = if is_last { 0 } else { self.moved.longest() };
        let settled = self.held.len().saturating_sub(held_back);
        let mut resized = false;
        let mut done = 0;
        let mut from = 0;
        while let Some(found) = self.moved.next_in(&self.held, from, self.before).filter(|found| found.start < settled)
        {
            from = found.end;
            if is_meant(self.offset + found.start as u64) {
                out.extend_from_slice(&self.held[done..found.start]);
                out.extend_from_slice(found.new);
                resized |= found.new.len() != found.end - found.start;
                done = found.end;
            }
        }
        let end = settled.max(done);
        out.extend_from_slice(&self.held[done..end]);
        self.before = end.checked_sub(1).map_or(self.before, |at| self.held.get(at).copied());
        self.offset += end as u64;
        self.held.drain(..end);
        resized
    }
}

/// Returns whether the rest after a prefix is exactly a paste's name, without further characters.
fn is_paste(rest: &[u8]) -> bool {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let Some((b'.', rest)) = rest.get(digits..).and_then(<[u8]>::split_first) else { return false };
    let extension = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let goes_on = match rest.get(extension..) {
        // A dot may end a sentence.
        Some([b'.', after, ..]) => goes_on(*after),
        // The end of a line or a quotation mark, as JSON writes them.
        Some([b'\\', after, ..]) => !b"nrt\"".contains(after),
        Some([after, ..]) => *after != b'.' && goes_on(*after),
        Some([]) | None => false,
    };
    (1..=LONGEST_TIME).contains(&digits) && (1..=LONGEST_EXTENSION).contains(&extension) && !goes_on
}

/// Returns whether a byte beside a path makes it another path. A backslash may be a separator or belong to JSON: in
/// doubt the path stays as it is.
fn goes_on(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"/\\._-~%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved() -> PastePathRewriter {
        PastePathRewriter::new([
            ("/d/s/files/paste-", "/other/f1/files/paste-"),
            ("file:///d/s/files/paste-", "file:///other/f1/files/paste-"),
        ])
    }

    #[test]
    fn exactly_the_path_of_a_paste_is_replaced() {
        let rewritten = |text: &str| moved().rewrite(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
        for (old, new) in [
            ("in the file /d/s/files/paste-12.txt.]", "in the file /other/f1/files/paste-12.txt.]"),
            (r#"{"uri":"file:///d/s/files/paste-1.png"}"#, r#"{"uri":"file:///other/f1/files/paste-1.png"}"#),
            (
                r#""/d/s/files/paste-1.a","/d/s/files/paste-2.b""#,
                r#""/other/f1/files/paste-1.a","/other/f1/files/paste-2.b""#,
            ),
            ("/d/s/files/paste-1.txt", "/other/f1/files/paste-1.txt"),
            (r#"\"/d/s/files/paste-1.txt\""#, r#"\"/other/f1/files/paste-1.txt\""#),
        ] {
            assert_eq!(rewritten(old).as_deref(), Some(new));
        }
        for other in [
            "/d/s/files/paste-.txt",
            "/d/s/files/paste-1",
            "/d/s/files/paste-1.",
            "/d/s/files/paste-1.txt/x",
            r"/d/s/files/paste-1.txt\\x",
            "/d/s/files/paste-1.txt.bak",
            "/d/s/files/paste-1.t_t",
            "/d/s/files/paste-1x.txt",
            "/d/s/files/paste-123456789012345678901.txt",
            "/d/s/files/notes.md",
            "/backup/d/s/files/paste-1.txt",
            "x/d/s/files/paste-1.txt",
            "/d/s1/files/paste-1.txt",
            "/d/s/research/paste-1.txt",
            "http:///d/s/files/paste-1.txt",
            "",
        ] {
            assert_eq!(rewritten(other), None, "{other}");
        }
    }

    #[test]
    fn a_path_is_found_as_json_has_it() {
        let moved = PastePathRewriter::new([("C:\\d\\s\\files\\paste-", "/d/\"f\"/files/paste-")]);
        let line = serde_json::json!({"text": "see C:\\d\\s\\files\\paste-7.md, please"}).to_string();
        let new = moved.rewrite(line.as_bytes()).unwrap();
        let new: serde_json::Value = serde_json::from_slice(&new).unwrap();
        assert_eq!(new["text"], "see /d/\"f\"/files/paste-7.md, please");
    }

    #[test]
    fn paths_are_found_however_the_bytes_come_and_only_where_they_are_meant() {
        let whole = format!("{}/d/s/files/paste-1.txt \"/d/s/files/paste-22.png\" {}", "x ".repeat(40), "y".repeat(90));
        let second = whole.rfind("/d/s/").unwrap() as u64;
        let wanted = moved().rewrite(whole.as_bytes()).unwrap();
        let only_second = whole.replace("/d/s/files/paste-22", "/other/f1/files/paste-22");
        for size in 1..whole.len() {
            for (is_meant, wanted) in [(None, wanted.as_slice()), (Some(second + 1000), only_second.as_bytes())] {
                let moved = moved();
                let mut passing = moved.begin(1000);
                let (mut out, mut resized) = (Vec::new(), false);
                let mut left = whole.as_bytes();
                while !left.is_empty() {
                    let (part, rest) = left.split_at(size.min(left.len()));
                    left = rest;
                    let is_wanted = |at| is_meant.is_none_or(|wanted| wanted == at);
                    resized |= passing.pass(part, left.is_empty(), is_wanted, &mut out);
                }
                assert_eq!(String::from_utf8(out).unwrap().as_bytes(), wanted, "{size}");
                assert!(resized);
            }
        }
    }
}
