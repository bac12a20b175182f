//! Decoding keys from a terminal's bytes.

/// The sequences around pasted text.
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// The maximum length of an escape sequence; longer ones are dropped.
const LONGEST: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyPress {
    Char(char),
    /// Pasted text, with its line ends.
    Paste(String),
    Enter,
    /// Alt-Enter: inserts a line end.
    NewLine,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    /// Ctrl and a letter.
    Ctrl(char),
    /// Alt-Backspace, Ctrl-W.
    DeleteWord,
}

/// Received bytes that are not a complete key yet.
#[derive(Debug, Default)]
pub(super) struct KeyDecoder {
    bytes: Vec<u8>,
    is_pasting: bool,
}

impl KeyDecoder {
    /// Adds input, and returns the complete keys.
    pub(super) fn decode(&mut self, piece: &[u8]) -> Vec<KeyPress> {
        self.bytes.extend_from_slice(piece);
        let mut keys = Vec::new();
        loop {
            if self.is_pasting {
                let Some(end) = find(&self.bytes, PASTE_ENDS) else { return keys };
                let pasted: Vec<u8> = self.bytes.drain(..end).collect();
                self.bytes.drain(..PASTE_ENDS.len());
                self.is_pasting = false;
                keys.push(KeyPress::Paste(String::from_utf8_lossy(&pasted).replace("\r\n", "\n").replace('\r', "\n")));
                continue;
            }
            if self.bytes.starts_with(PASTE_BEGINS) {
                self.bytes.drain(..PASTE_BEGINS.len());
                self.is_pasting = true;
                continue;
            }
            let Some((length, key)) = first(&self.bytes) else {
                // A lone Escape has no meaning; an endless sequence is not waited for.
                if self.bytes == [0x1b] || self.bytes.len() > LONGEST {
                    self.bytes.clear();
                }
                return keys;
            };
            self.bytes.drain(..length);
            keys.extend(key);
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// The first key of these bytes and its length. An unknown sequence has a length, but no key.
fn first(bytes: &[u8]) -> Option<(usize, Option<KeyPress>)> {
    let key = |key| Some((1, Some(key)));
    match *bytes.first()? {
        b'\r' | b'\n' => key(KeyPress::Enter),
        b'\t' => key(KeyPress::Char('\t')),
        0x7f | 0x08 => key(KeyPress::Backspace),
        0x17 => key(KeyPress::DeleteWord),
        0x1b => escape(bytes),
        control @ 0x01..=0x1a => key(KeyPress::Ctrl(char::from(control - 1 + b'a'))),
        0x00..0x20 => Some((1, None)),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Option<(usize, Option<KeyPress>)> {
    let most = bytes.get(..4.min(bytes.len())).unwrap_or(bytes);
    let text = match std::str::from_utf8(most) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(most.get(..error.valid_up_to())?).unwrap_or_default()
        }
        // The rest of the character has not arrived yet.
        Err(error) if error.error_len().is_none() => return None,
        Err(_) => return Some((1, None)),
    };
    let c = text.chars().next()?;
    Some((c.len_utf8(), Some(KeyPress::Char(c))))
}

fn escape(bytes: &[u8]) -> Option<(usize, Option<KeyPress>)> {
    match *bytes.get(1)? {
        b'[' => sequence(bytes, 2),
        b'O' => Some((3, arrow(*bytes.get(2)?, false))),
        b'b' => Some((2, Some(KeyPress::WordLeft))),
        b'f' => Some((2, Some(KeyPress::WordRight))),
        b'\r' | b'\n' => Some((2, Some(KeyPress::NewLine))),
        0x7f | 0x08 => Some((2, Some(KeyPress::DeleteWord))),
        _ => Some((2, None)),
    }
}

/// `ESC [ parameters final`.
fn sequence(bytes: &[u8], from: usize) -> Option<(usize, Option<KeyPress>)> {
    let rest = bytes.get(from..)?;
    let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
    let (parameters, last) = (rest.get(..end)?, *rest.get(end)?);
    let has_modifier = parameters.contains(&b';');
    let key = match (last, parameters.split(|byte| *byte == b';').next().unwrap_or_default()) {
        (b'~', b"1" | b"7") => Some(KeyPress::Home),
        (b'~', b"4" | b"8") => Some(KeyPress::End),
        (b'~', b"3") => Some(KeyPress::Delete),
        (b'~', _) => None,
        (last, _) => arrow(last, has_modifier),
    };
    Some((from + end + 1, key))
}

fn arrow(last: u8, has_modifier: bool) -> Option<KeyPress> {
    Some(match (last, has_modifier) {
        (b'A', _) => KeyPress::Up,
        (b'B', _) => KeyPress::Down,
        (b'C', false) => KeyPress::Right,
        (b'C', true) => KeyPress::WordRight,
        (b'D', false) => KeyPress::Left,
        (b'D', true) => KeyPress::WordLeft,
        (b'H', _) => KeyPress::Home,
        (b'F', _) => KeyPress::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(pieces: &[&[u8]]) -> Vec<KeyPress> {
        let mut decoder = KeyDecoder::default();
        pieces.iter().flat_map(|piece| decoder.decode(piece)).collect()
    }

    #[test]
    fn keys_are_decoded_wherever_the_bytes_are_cut() {
        let typed = "aä€😀\x1b[D\x1bOC\x1b[1;5D\x1b[3~\x01\x1bb\x7f\r".as_bytes();
        let expected = [
            KeyPress::Char('a'),
            KeyPress::Char('ä'),
            KeyPress::Char('€'),
            KeyPress::Char('😀'),
            KeyPress::Left,
            KeyPress::Right,
            KeyPress::WordLeft,
            KeyPress::Delete,
            KeyPress::Ctrl('a'),
            KeyPress::WordLeft,
            KeyPress::Backspace,
            KeyPress::Enter,
        ];
        assert_eq!(keys(&[typed]), expected);
        for at in 0..typed.len() {
            // A lone Escape at the end of a piece is a separate key.
            if at > 0 && typed[at - 1] == 0x1b {
                continue;
            }
            assert_eq!(keys(&[&typed[..at], &typed[at..]]), expected, "cut at {at}");
        }
    }

    #[test]
    fn pasted_lines_are_one_text_and_enter_is_not_pressed() {
        let pasted = keys(&[b"\x1b[200~one\r\ntwo", b"\rthree\n\x1b[2", b"01~\r"]);
        assert_eq!(pasted, [KeyPress::Paste("one\ntwo\nthree\n".into()), KeyPress::Enter]);
    }

    #[test]
    fn nonsense_is_dropped() {
        assert_eq!(keys(&[b"\xff\x1b[99;99z\x1b[", &[b'1'; 40], b"a"]), [KeyPress::Char('a')]);
        assert_eq!(keys(&[b"\x1b", b"x"]), [KeyPress::Char('x')]);
    }
}
