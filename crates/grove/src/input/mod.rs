//! The input line of `grove attach`: a terminal in raw mode, its keys, and the text that is being edited.
//!
//! [`keys`] decodes the terminal's bytes, [`editor`] edits, [`raw_mode`] switches the terminal and restores it.
//! [`crate::show::input_area`] draws the line.

pub(crate) mod editor;
mod keys;
mod raw_mode;

use std::collections::VecDeque;
use std::io::{self, Read};

use tokio::sync::mpsc;

use editor::{EditOutcome, LineEditor};
use keys::KeyDecoder;
use raw_mode::RawMode;

/// The number of bytes per read. A paste arrives in several pieces.
const PIECE: usize = 4_096;
/// The number of pieces that wait to be decoded; beyond it the terminal waits.
const WAITING: usize = 64;

/// An action of the user at the keyboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// An entered text, of one line or several.
    Entered(String),
    /// Ctrl-C.
    Interrupt,
    /// The text on the input line has changed.
    Edited,
}

/// The source of input.
#[derive(Debug)]
pub(crate) enum InputSource {
    /// There is no input, or it has ended.
    None,
    /// Lines of a terminal that edits them itself.
    Lines(mpsc::Receiver<String>),
    Keys(Box<Keyboard>),
}

impl InputSource {
    /// Lines typed by the user. A read blocks forever, so it has a thread that is left behind.
    pub(crate) fn lines() -> Self {
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            for line in io::BufRead::lines(io::stdin().lock()) {
                let Ok(line) = line else { return };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        InputSource::Lines(lines)
    }

    pub(crate) fn is_open(&self) -> bool {
        !matches!(self, InputSource::None)
    }

    /// The editor, if lines are edited here.
    pub(crate) fn editor(&self) -> Option<&LineEditor> {
        match self {
            InputSource::Keys(keyboard) => Some(&keyboard.editor),
            InputSource::None | InputSource::Lines(_) => None,
        }
    }

    /// The same, mutably.
    pub(crate) fn editor_mut(&mut self) -> Option<&mut LineEditor> {
        match self {
            InputSource::Keys(keyboard) => Some(&mut keyboard.editor),
            InputSource::None | InputSource::Lines(_) => None,
        }
    }

    /// Waits for the next input. `None` at its end.
    pub(crate) async fn next(&mut self) -> Option<Input> {
        match self {
            InputSource::None => std::future::pending().await,
            InputSource::Lines(lines) => lines.recv().await.map(Input::Entered),
            InputSource::Keys(keyboard) => keyboard.next().await,
        }
    }
}

/// A terminal in raw mode, which is restored on drop.
#[derive(Debug)]
pub(crate) struct Keyboard {
    pieces: mpsc::Receiver<Vec<u8>>,
    decoder: KeyDecoder,
    editor: LineEditor,
    /// Decoded input that was not returned yet. `None` is the end.
    ready: VecDeque<Option<Input>>,
    _raw_mode: RawMode,
}

impl Keyboard {
    pub(crate) fn open() -> io::Result<Self> {
        let raw_mode = RawMode::enter()?;
        let (sender, pieces) = mpsc::channel(WAITING);
        // A read blocks forever, so it has a thread that is left behind.
        std::thread::spawn(move || {
            let mut piece = [0; PIECE];
            while let Ok(length @ 1..) = io::stdin().lock().read(&mut piece) {
                if sender.blocking_send(piece.get(..length).unwrap_or_default().to_vec()).is_err() {
                    return;
                }
            }
        });
        let (decoder, editor) = (KeyDecoder::default(), LineEditor::new());
        Ok(Self { pieces, decoder, editor, ready: VecDeque::new(), _raw_mode: raw_mode })
    }

    async fn next(&mut self) -> Option<Input> {
        loop {
            if let Some(input) = self.ready.pop_front() {
                return input;
            }
            let piece = self.pieces.recv().await?;
            let mut is_edited = false;
            for key in self.decoder.decode(&piece) {
                match self.editor.apply(key) {
                    EditOutcome::Nothing => {}
                    EditOutcome::Changed => is_edited = true,
                    EditOutcome::Entered(text) => self.ready.push_back(Some(Input::Entered(text))),
                    EditOutcome::Interrupt => self.ready.push_back(Some(Input::Interrupt)),
                    EditOutcome::End => self.ready.push_back(None),
                }
            }
            if is_edited {
                self.ready.push_back(Some(Input::Edited));
            }
        }
    }
}
