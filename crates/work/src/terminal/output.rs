//! The newest part of a terminal's output.

use std::collections::VecDeque;

/// A buffer that keeps the newest bytes.
#[derive(Debug)]
pub(super) struct OutputBuffer {
    bytes: VecDeque<u8>,
    limit: usize,
    truncated: bool,
}

impl OutputBuffer {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: VecDeque::new(), limit, truncated: false }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(self.limit);
        if over > 0 {
            self.truncated = true;
            self.bytes.drain(..over);
        }
    }

    /// The kept bytes as text, never longer than the limit, and whether an earlier part is missing. While more may
    /// come, an incomplete character waits for its rest.
    pub(super) fn text(&mut self, more_may_come: bool) -> (String, bool) {
        let mut bytes: &[u8] = self.bytes.make_contiguous();
        if self.truncated {
            bytes = &bytes[bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count()..];
        }
        if more_may_come {
            bytes = &bytes[..bytes.len() - half_character(bytes)];
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        // Invalid bytes grow when they are replaced.
        let over = text.len().saturating_sub(self.limit);
        if over > 0 {
            let cut = (over..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            text.drain(..cut);
        }
        (text, self.truncated || over > 0)
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// The bytes of an incomplete character at the end.
fn half_character(bytes: &[u8]) -> usize {
    // The longest character has four bytes.
    (1..=bytes.len().min(3))
        .map(|length| &bytes[bytes.len() - length..])
        .find(|tail| !is_continuation(tail[0]))
        .filter(|tail| std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none()))
        .map_or(0, <[u8]>::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer_with(limit: usize, pieces: &[&[u8]]) -> OutputBuffer {
        let mut buffer = OutputBuffer::new(limit);
        for piece in pieces {
            buffer.push(piece);
        }
        buffer
    }

    #[test]
    fn the_newest_bytes_are_kept() {
        assert_eq!(buffer_with(5, &[b"hello"]).text(true), ("hello".to_owned(), false));
        assert_eq!(buffer_with(5, &[b"hello", b" world"]).text(true), ("world".to_owned(), true));
        assert_eq!(buffer_with(0, &[b"x"]).text(true), (String::new(), true));
    }

    #[test]
    fn a_cut_never_halves_a_character() {
        for limit in 0..16 {
            let (text, truncated) = buffer_with(limit, &["aä€😀b".as_bytes()]).text(true);
            assert!("aä€😀b".ends_with(&text) && text.len() <= limit, "{limit}: {text}");
            assert_eq!(truncated, limit < "aä€😀b".len());
        }
    }

    #[test]
    fn half_a_character_waits_for_the_rest() {
        let smile = "😀".as_bytes();
        for half in 1..4 {
            let mut buffer = buffer_with(100, &[b"a", &smile[..half]]);
            assert_eq!(buffer.text(true).0, "a");
            assert_eq!(buffer.text(false).0, "a\u{fffd}");
            buffer.push(&smile[half..]);
            assert_eq!(buffer.text(true).0, "a😀");
        }
    }

    #[test]
    fn what_is_no_text_does_not_pass_the_limit() {
        let (text, truncated) = buffer_with(10, &[&[0xff; 8]]).text(true);
        assert_eq!((text.as_str(), truncated), ("\u{fffd}\u{fffd}\u{fffd}", true));
    }
}
