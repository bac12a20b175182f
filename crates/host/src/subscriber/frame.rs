//! WebSocket frames as a server writes them: whole, unmasked, and so the same for every client.

/// The longest head of a frame.
pub(super) const MAX_HEAD: usize = 10;

/// The first byte of a text frame that is a whole message.
const FINAL_TEXT: u8 = 0x81;

/// Appends a text message to the output.
pub fn text(payload: &str, out: &mut Vec<u8>) {
    out.push(FINAL_TEXT);
    match payload.len() {
        short @ 0..=125 => out.push(short as u8),
        medium @ 126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            out.push(127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload.as_bytes());
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocket};

    #[test]
    fn frames_of_every_length_are_read_by_an_independent_reader() {
        for length in [0, 1, 125, 126, 127, 65_535, 65_536, 1 << 20] {
            let sent = "é".repeat(length / 2) + if length % 2 == 1 { "x" } else { "" };
            let mut wire = Vec::new();
            super::text(&sent, &mut wire);
            super::text("next", &mut wire);
            assert!(wire.len() <= length + 4 + 2 * super::MAX_HEAD);
            let mut reader = WebSocket::from_raw_socket(std::io::Cursor::new(wire), Role::Client, None);
            assert_eq!(reader.read().unwrap(), Message::text(sent));
            assert_eq!(reader.read().unwrap(), Message::text("next"));
        }
    }
}
