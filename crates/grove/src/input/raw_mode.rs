//! Raw mode: a terminal that sends every key at once, without echo.

use std::io::{self, Write};

use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// Turn the marking of pasted text on and off.
const MARK_PASTES: &[u8] = b"\x1b[?2004h";
const MARK_NO_PASTES: &[u8] = b"\x1b[?2004l";

/// Raw mode, until this is dropped.
#[derive(Debug)]
pub(super) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(super) fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut raw = before.clone();
        // Output processing stays on: a line end still moves to the first column.
        raw.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ISIG);
        raw.input_modes.remove(InputModes::IXON | InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
        let mode = Self { before };
        write(MARK_PASTES)?;
        Ok(mode)
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stderr = io::stderr();
    stderr.write_all(bytes)?;
    stderr.flush()
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // This only fails if the terminal is gone.
        write(MARK_NO_PASTES).ok();
        tcsetattr(io::stdin(), OptionalActions::Now, &self.before).ok();
    }
}
