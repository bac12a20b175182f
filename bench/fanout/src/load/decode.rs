//! Splits a server's output into messages, without copying where possible.

use memchr::memmem;

/// The length above which only the beginning of a message is kept.
const LONG: usize = 64 << 10;
/// The length of the kept beginning.
const BEGINNING: usize = 512;

/// One message of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received<'a> {
    pub(super) kind: Kind,
    /// The whole message, or the beginning of a long one.
    pub(super) bytes: &'a [u8],
    /// The length without framing.
    pub(super) length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    /// The server closes the connection.
    Close,
    /// Pings and the like.
    Other,
}

#[derive(Debug)]
pub(super) enum Decoder {
    WebSocket(Frames),
    Events(Events),
}

impl Decoder {
    pub(super) fn feed(&mut self, data: &[u8], on_message: impl FnMut(Received<'_>)) {
        match self {
            Self::WebSocket(frames) => frames.feed(data, on_message),
            Self::Events(events) => events.feed(data, on_message),
        }
    }
}

/// WebSocket frames of a server: unmasked, unfragmented.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// An incomplete frame.
    part: Vec<u8>,
    /// The number of bytes of a long frame that are still to be skipped.
    skip: usize,
}

/// Tells whether the kept part of a frame is complete.
enum HeadProgress {
    Enough,
    TooLittle,
}

struct Header {
    kind: Kind,
    size: usize,
    payload: usize,
}

impl Header {
    fn read(data: &[u8]) -> Option<Self> {
        let [first, second, rest @ ..] = data else { return None };
        let (size, payload) = match second & 0x7f {
            126 => (4, u64::from(u16::from_be_bytes(*rest.first_chunk()?))),
            127 => (10, u64::from_be_bytes(*rest.first_chunk()?)),
            short => (2, u64::from(short)),
        };
        let kind = match first & 0x0f {
            0..=2 => Kind::Message,
            8 => Kind::Close,
            _ => Kind::Other,
        };
        Some(Self { kind, size, payload: payload as usize })
    }

    fn total(&self) -> usize {
        self.size + self.payload
    }
}

impl Frames {
    fn feed(&mut self, mut data: &[u8], mut on_message: impl FnMut(Received<'_>)) {
        loop {
            if self.skip > 0 {
                let skipped = self.skip.min(data.len());
                self.skip -= skipped;
                data = &data[skipped..];
                if self.skip > 0 {
                    return;
                }
                self.finish(&mut on_message);
            }
            if self.part.is_empty() {
                data = Self::whole(data, &mut on_message);
                if data.is_empty() {
                    return;
                }
            }
            match self.keep(&mut data) {
                HeadProgress::Enough if self.skip == 0 => self.finish(&mut on_message),
                HeadProgress::Enough => {}
                HeadProgress::TooLittle => return,
            }
        }
    }

    /// Passes on complete frames and returns the rest.
    fn whole<'a>(mut data: &'a [u8], on_message: &mut impl FnMut(Received<'_>)) -> &'a [u8] {
        while let Some(header) = Header::read(data) {
            let Some(frame) = data.get(..header.total()) else { break };
            on_message(Received { kind: header.kind, bytes: &frame[header.size..], length: header.payload });
            data = &data[header.total()..];
        }
        data
    }

    /// Takes the kept part of the current frame from `data`.
    fn keep(&mut self, data: &mut &[u8]) -> HeadProgress {
        loop {
            if let Some(header) = Header::read(&self.part) {
                let missing = header.total() - self.part.len();
                let wanted = if header.payload > LONG { header.size + BEGINNING - self.part.len() } else { missing };
                let taken = wanted.min(data.len());
                self.part.extend_from_slice(&data[..taken]);
                *data = &data[taken..];
                if taken < wanted {
                    return HeadProgress::TooLittle;
                }
                self.skip = missing - taken;
                return HeadProgress::Enough;
            }
            let Some((&byte, rest)) = data.split_first() else { return HeadProgress::TooLittle };
            self.part.push(byte);
            *data = rest;
        }
    }

    fn finish(&mut self, on_message: &mut impl FnMut(Received<'_>)) {
        if let Some(header) = Header::read(&self.part) {
            on_message(Received { kind: header.kind, bytes: &self.part[header.size..], length: header.payload });
        }
        self.part.clear();
    }
}

/// Server-sent events with the chunks of HTTP left in, which no search depends on.
#[derive(Debug, Default)]
pub(super) struct Events {
    part: Vec<u8>,
}

impl Events {
    fn feed(&mut self, data: &[u8], mut on_message: impl FnMut(Received<'_>)) {
        self.part.extend_from_slice(data);
        let mut from = 0;
        while let Some(end) = memmem::find(&self.part[from..], b"\n\n") {
            on_message(Received { kind: Kind::Message, bytes: &self.part[from..from + end], length: end });
            from += end + 2;
        }
        self.part.drain(..from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x81];
        match payload.len() {
            short @ 0..126 => frame.push(short as u8),
            middle @ 126..65_536 => {
                frame.push(126);
                frame.extend((middle as u16).to_be_bytes());
            }
            long => {
                frame.push(127);
                frame.extend((long as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(payload);
        frame
    }

    #[test]
    fn frames_are_found_however_they_are_cut() {
        let payloads = [vec![b'a'; 3], vec![], vec![b'b'; 200], vec![b'c'; 100_000], vec![b'd'; 125], vec![b'e'; 126]];
        let stream: Vec<u8> = payloads.iter().flat_map(|payload| frame(payload)).collect();
        for piece in [1, 2, 3, 7, 199, 4_096, 70_000, stream.len()] {
            let mut frames = Frames::default();
            let mut found = Vec::new();
            for data in stream.chunks(piece) {
                frames.feed(data, |message| found.push((message.bytes.first().copied(), message.length)));
            }
            let expected: Vec<_> = payloads.iter().map(|payload| (payload.first().copied(), payload.len())).collect();
            assert_eq!(found, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn events_are_found_however_they_are_cut() {
        let stream = b"data: one\n\n5\r\ndata: two\n\n";
        for piece in 1..stream.len() {
            let mut events = Events::default();
            let mut found = 0;
            for data in stream.chunks(piece) {
                events.feed(data, |_| found += 1);
            }
            assert_eq!(found, 2, "in pieces of {piece}");
        }
    }
}
