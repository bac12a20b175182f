//! Finds the end of a text.
//!
//! Most of a log is text, so this decides how fast a log is read. Texts are searched in blocks for the bytes that matter,
//! and an ordinary escape costs a few instructions.

use super::{Checks, Reason, ScanError};

/// The bytes that are searched together. The compiler vectorizes a loop of this length.
const BLOCK: usize = 32;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The bytes that stand behind a backslash without anything after them.
static SIMPLE_ESCAPES: [bool; 256] = {
    let mut table = [false; 256];
    let (bytes, mut at) = (br#""\/bfnrt"#, 0);
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

/// Skips a text after its opening quote, and returns the position after the closing one.
#[inline]
pub(super) fn text<C: Checks>(line: &[u8], start: usize) -> Result<usize, ScanError> {
    if let Some(quote) = short_text::<C>(line, start) {
        return Ok(quote + 1);
    }
    if C::JSON { checked_text::<C>(line, start) } else { trusted_text(line, start) }
}

/// The closing quote of a text of less than 16 bytes without escapes, as names and most values are.
#[inline]
pub(super) fn short_text<C: Checks>(line: &[u8], start: usize) -> Option<usize> {
    let words = line.get(start..)?.first_chunk::<16>()?;
    let (words, _) = words.as_chunks::<8>();
    let mut at = start;
    for word in words {
        let hits = special_bytes::<C>(u64::from_le_bytes(*word));
        if hits != 0 {
            let place = at + (hits.trailing_zeros() / 8) as usize;
            return Some(place).filter(|place| line[*place] == b'"');
        }
        at += 8;
    }
    None
}

fn checked_text<C: Checks>(line: &[u8], start: usize) -> Result<usize, ScanError> {
    let mut at = start;
    'blocks: loop {
        let (blocks, _) = line.get(at..).unwrap_or_default().as_chunks::<BLOCK>();
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for (number, (mut marks, word)) in special_marks::<C>(block).into_iter().zip(words).enumerate() {
                while marks != 0 {
                    let bit = marks.trailing_zeros() & !7;
                    let pair = (u64::from_le_bytes(*word) >> bit) as u16;
                    // A backslash that ends its word has no second byte here.
                    if pair as u8 == b'\\' && SIMPLE_ESCAPES[usize::from(pair >> 8)] {
                        marks &= !0xffff << bit;
                        continue;
                    }
                    match special::<C>(line, at + number * 8 + (bit / 8) as usize)? {
                        Special::Quote(end) => return Ok(end),
                        Special::Inside(next) => at = next,
                    }
                    continue 'blocks;
                }
            }
            at += BLOCK;
        }
        break;
    }
    loop {
        match line.get(at) {
            Some(byte) if is_special::<C>(*byte) => match special::<C>(line, at)? {
                Special::Quote(end) => return Ok(end),
                Special::Inside(next) => at = next,
            },
            Some(_) => at += 1,
            None => return Err(ScanError { at, reason: Reason::Ends }),
        }
    }
}

/// A special byte of a text, with the position after it.
enum Special {
    /// It ends the text.
    Quote(usize),
    /// It is the beginning of an escape or of a character beyond ASCII.
    Inside(usize),
}

fn special<C: Checks>(line: &[u8], at: usize) -> Result<Special, ScanError> {
    match line.get(at) {
        Some(b'"') => Ok(Special::Quote(at + 1)),
        Some(b'\\') => escape(line, at + 1).map(Special::Inside),
        Some(0x80..) if C::UTF8 => characters(line, at).map(Special::Inside),
        Some(_) | None => Err(ScanError { at, reason: Reason::ControlCharacter }),
    }
}

/// Like [`checked_text`] for a text that was scanned before: finds only its end, a quote that no backslash escapes.
fn trusted_text(line: &[u8], start: usize) -> Result<usize, ScanError> {
    let mut at = start;
    loop {
        let Some(next) = line.get(at..).and_then(|rest| memchr::memchr(b'"', rest)) else {
            return Err(ScanError { at: line.len(), reason: Reason::Ends });
        };
        let quote = at + next;
        let backslashes = line[start..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 0 {
            return Ok(quote + 1);
        }
        at = quote + 1;
    }
}

#[inline]
fn escape(line: &[u8], at: usize) -> Result<usize, ScanError> {
    match line.get(at) {
        Some(byte) if SIMPLE_ESCAPES[usize::from(*byte)] => Ok(at + 1),
        Some(b'u') => match line.get(at + 1..at + 5) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Ok(at + 5),
            Some(_) => Err(ScanError { at, reason: Reason::BadEscape }),
            None => Err(ScanError { at, reason: Reason::Ends }),
        },
        Some(_) => Err(ScanError { at, reason: Reason::BadEscape }),
        None => Err(ScanError { at, reason: Reason::Ends }),
    }
}

/// Skips characters beyond ASCII, in well-formed UTF-8 (table 3-7 of the Unicode standard).
fn characters(line: &[u8], start: usize) -> Result<usize, ScanError> {
    let follows = |byte: &u8| byte & 0xc0 == 0x80;
    let mut rest = line.get(start..).unwrap_or_default();
    while rest.first().is_some_and(|byte| !byte.is_ascii()) {
        rest = match rest {
            [0xc2..=0xdf, last, after @ ..] if follows(last) => after,
            [0xe0, 0xa0..=0xbf, last, after @ ..]
            | [0xe1..=0xec | 0xee..=0xef, 0x80..=0xbf, last, after @ ..]
            | [0xed, 0x80..=0x9f, last, after @ ..]
                if follows(last) =>
            {
                after
            }
            [0xf0, 0x90..=0xbf, third, last, after @ ..]
            | [0xf1..=0xf3, 0x80..=0xbf, third, last, after @ ..]
            | [0xf4, 0x80..=0x8f, third, last, after @ ..]
                if follows(third) && follows(last) =>
            {
                after
            }
            _ => return Err(ScanError { at: line.len() - rest.len(), reason: Reason::NotUtf8 }),
        };
    }
    Ok(line.len() - rest.len())
}

/// Marks each special byte of a block by a byte of ones.
#[inline]
fn special_marks<C: Checks>(block: &[u8; BLOCK]) -> [u64; BLOCK / 8] {
    let mut marks = [0; BLOCK];
    for (mark, byte) in marks.iter_mut().zip(block) {
        *mark = if is_special::<C>(*byte) { 0xff } else { 0 };
    }
    let mut words = [0; BLOCK / 8];
    let (bytes, _) = marks.as_chunks::<8>();
    for (word, bytes) in words.iter_mut().zip(bytes) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// Returns true for a quote, a backslash and a control character, and for bytes beyond ASCII if UTF-8 is checked.
#[inline]
fn is_special<C: Checks>(byte: u8) -> bool {
    // As signed numbers, the bytes beyond ASCII are below all others.
    let is_below = if C::UTF8 { byte.cast_signed() < 0x20 } else { byte < 0x20 };
    (byte == b'"') | (byte == b'\\') | is_below
}

/// Marks the special bytes of a word. Marks above the lowest one may be wrong.
#[inline]
fn special_bytes<C: Checks>(word: u64) -> u64 {
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let below = word.wrapping_sub(ONES * 0x20);
    let below = if C::UTF8 { below | word } else { below & !word };
    (zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\'))) | below) & HIGH
}
