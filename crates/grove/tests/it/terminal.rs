//! A terminal for tests.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use grove_testkit::PATIENCE;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::*;

pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
    /// The position in the output up to which a test has waited.
    seen: usize,
}

impl Terminal {
    /// Runs a command of a place in a terminal.
    pub(crate) fn run(place: &TestHome, args: &[&str]) -> Self {
        let mut command = place.grove(args);
        command.arg("--data-dir").arg(place.data()).env("TERM", "xterm");
        Self::start(command)
    }

    /// The same in a terminal of this width.
    pub(crate) fn run_in(place: &TestHome, args: &[&str], columns: u16) -> Self {
        let mut command = place.grove(args);
        command.arg("--data-dir").arg(place.data()).env("TERM", "xterm");
        Self::start_in(command, columns)
    }

    pub(crate) fn start(command: Command) -> Self {
        Self::start_in(command, 0)
    }

    fn start_in(mut command: Command, columns: u16) -> Self {
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&near).unwrap();
        unlockpt(&near).unwrap();
        let size = Winsize { ws_row: if columns == 0 { 0 } else { 24 }, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&near, size).unwrap();
        let name = ptsname(&near, Vec::new()).unwrap();
        let far = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        command.stdin(far.try_clone().unwrap()).stdout(far.try_clone().unwrap()).stderr(far);
        let child = command.spawn().unwrap();
        // The command holds the far end, too; else the near end would never see its end.
        drop(command);
        let keyboard = File::from(near);
        let mut reader = keyboard.try_clone().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let shown = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            let mut rest = Vec::new();
            // Reading a terminal without processes ends with an error.
            while let Ok(length @ 1..) = reader.read(&mut bytes) {
                rest.extend_from_slice(&bytes[..length]);
                let whole = match std::str::from_utf8(&rest) {
                    Ok(text) => text.len(),
                    Err(error) => error.valid_up_to(),
                };
                let text: Vec<u8> = rest.drain(..whole).collect();
                shown.lock().unwrap().push_str(&String::from_utf8(text).unwrap());
            }
        });
        Self { child, keyboard, screen, seen: 0 }
    }

    /// The whole output.
    pub(crate) fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Waits for text after the position of the last wait.
    pub(crate) fn until(&mut self, words: &str) {
        self.until_any(&[words]);
    }

    /// The same for words at the beginning of a line, or of the input line.
    pub(crate) fn until_line(&mut self, words: &str) {
        self.until_any(&[&format!("\n{words}"), &format!("\x1b[J{words}")]);
    }

    fn until_any(&mut self, any: &[&str]) {
        let since = Instant::now();
        loop {
            let screen = self.screen();
            let found = any.iter().filter_map(|words| Some((screen[self.seen..].find(words)?, words.len()))).min();
            if let Some((at, length)) = found {
                self.seen += at + length;
                return;
            }
            assert!(since.elapsed() < PATIENCE, "none of {any:?} after {PATIENCE:?} in {screen}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Types a line. Enter is the key's own byte: a terminal that edits lines turns it into a line end.
    pub(crate) fn enter(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Ctrl-D at the beginning of a line.
    pub(crate) fn end_input(&mut self) {
        self.keyboard.write_all(&[4]).unwrap();
    }

    /// Ctrl-C, which a shell's terminal turns into a signal.
    pub(crate) fn interrupt(&self) {
        kill_process(Pid::from_raw(self.child.id().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    }

    /// Waits for the end, and returns the exit code.
    pub(crate) fn exit(&mut self) -> Option<i32> {
        let deadline = Deadline::new("the command does not end");
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return status.code(),
                None => deadline.check(),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
