//! The fuzz body of the protocol between host and shim.

use bytes::{Bytes, BytesMut};
use grove_shim::wire::{FrameBuffer, FromHost, FromShim};

/// The largest frame here.
const MAX_FRAME: usize = 1_000;

/// Any bytes as a stream of frames of either side, complete and cut everywhere: both give the same.
///
/// Messages survive a round trip.
pub fn shim_frames(data: &[u8]) {
    let (whole, is_valid) = frames(&[data]);
    let pieces: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(frames(&pieces), (whole.clone(), is_valid));
    for (kind, body) in whole {
        if let Ok(Some(message)) = FromShim::decode(kind, body.clone()) {
            let mut written = BytesMut::new();
            message.encode(&mut written);
            assert_eq!(only(&written, FromShim::decode), message);
        }
        if let Ok(Some(message)) = FromHost::decode(kind, body) {
            let mut written = BytesMut::new();
            message.encode(&mut written);
            assert_eq!(only(&written, FromHost::decode), message);
        }
    }
}

/// The one message of a written frame.
fn only<T, E: std::fmt::Debug>(frame: &[u8], decode: impl Fn(u8, Bytes) -> Result<Option<T>, E>) -> T {
    let mut buffer = FrameBuffer::new(usize::MAX);
    buffer.push(frame);
    let (kind, body) = buffer.next_frame().expect("a frame").expect("a complete one");
    assert!(buffer.next_frame().expect("no other frame").is_none());
    decode(kind, body).expect("a message").expect("of a known kind")
}

/// The frames of a stream, and whether it could be read to its end.
fn frames(pieces: &[&[u8]]) -> (Vec<(u8, Bytes)>, bool) {
    let (mut buffer, mut all) = (FrameBuffer::new(MAX_FRAME), Vec::new());
    for piece in pieces {
        buffer.push(piece);
        loop {
            match buffer.next_frame() {
                Ok(Some(frame)) => all.push(frame),
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return (all, false);
                }
            }
        }
    }
    (all, true)
}
