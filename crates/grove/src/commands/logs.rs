//! `grove logs`

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use grove_agents::acp::shim_folder;
use grove_core::{ChatId, Session, SessionId, SessionUri};
use grove_shim::stderr_files;

use super::{Failure, command_runtime};
use crate::background::find_host;
use crate::cli::{Common, ConnectArgs, LogsArgs, Protocol, ServeArgs};
use crate::connect::{HostConnector, find_session, id_of};
use crate::data_folder;
use crate::settings::Settings;
use crate::show::style::sanitize;
use crate::stores;

/// The maximum number of bytes printed per file. No shim keeps more.
const MAX_BYTES: u64 = 16 << 20;
/// The pause between reads.
const PAUSE: Duration = Duration::from_millis(100);
/// The number of bytes per read.
const PIECE: usize = 64 << 10;

pub(crate) fn run(common: &Common, args: &LogsArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let session = find(common, &settings, &args.session.reference)?;
    let chat = ChatId::from(args.chat.as_deref().unwrap_or(Session::MAIN_CHAT));
    let folder = shim_folder(&data_folder::agents_path(&settings.data_dir.value), &session, &chat);
    let unreadable = || format!("the log in {} cannot be read", folder.display());
    let (mut output, mut follower) = LogFollower::begin(&folder).with_context(unreadable)?;
    if output.is_empty() {
        let waits = if args.follow { "; waiting for it" } else { "" };
        anstream::eprintln!("{}{waits}", nothing(&folder, &session));
    }
    output.drain(..beginning(&output, args.lines));
    if !args.follow {
        return print(&output).map(drop);
    }
    loop {
        // Print only whole lines, so that no character is split. An overlong line is printed in pieces.
        let whole = match output.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if output.len() > PIECE => output.len(),
            None => 0,
        };
        if !print(&output.drain(..whole).collect::<Vec<u8>>())? {
            return Ok(());
        }
        if whole == 0 {
            std::thread::sleep(PAUSE);
        }
        follower.read(&mut output).with_context(unreadable)?;
    }
}

/// The start of the newest `lines` lines.
fn beginning(output: &[u8], lines: Option<usize>) -> usize {
    let Some(lines) = lines else { return 0 };
    let text = output.strip_suffix(b"\n").unwrap_or(output);
    let ends = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    match lines.checked_sub(1) {
        None => output.len(),
        Some(before) => ends.map(|(at, _)| at + 1).nth(before).unwrap_or(0),
    }
}

/// The reason why there is nothing to print.
fn nothing(folder: &Path, session: &SessionId) -> String {
    match folder.is_dir() {
        true => format!("the agent of {session} has written nothing to stderr"),
        false => format!("the agent of {session} has no log: it has not run yet, or is not a separate program"),
    }
}

/// Finds the session. A running host knows all sessions; else only those with a folder are found.
fn find(common: &Common, settings: &Settings, wanted: &str) -> Result<SessionId, Failure> {
    let answer = command_runtime()?.block_on(async {
        if !matches!(find_host(&settings.data_dir.value).await, Ok(Some(_))) {
            return None;
        }
        let connector =
            HostConnector::new(common, &ConnectArgs { host: None, no_start: true, protocol: Protocol::Ahp }).ok()?;
        let client = connector.ahp(None).await.ok()?;
        Some(find_session(&client, wanted).await)
    });
    let uri = match answer {
        Some(found) => found?,
        None => stores::choose_stored(settings, wanted)?,
    };
    // A valid session id cannot be a path to anywhere else.
    let id = SessionUri::from(format!("session:/{}", id_of(&uri))).id();
    id.ok_or_else(|| anyhow!("{uri} is not the address of a session").into())
}

/// Prints output of an agent without terminal control sequences. Returns whether stdout is still open.
fn print(output: &[u8]) -> Result<bool, Failure> {
    if output.is_empty() {
        return Ok(true);
    }
    let text = String::from_utf8_lossy(output);
    let plain = sanitize(&anstream::adapter::strip_str(&text).to_string());
    let end = if plain.ends_with('\n') { "" } else { "\n" };
    let mut out = io::stdout().lock();
    match write!(out, "{plain}{end}").and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reads a growing log, and continues with the new file after a rotation.
struct LogFollower {
    path: PathBuf,
    file: Option<File>,
}

impl LogFollower {
    /// The output so far, and a follower that continues after it.
    fn begin(folder: &Path) -> io::Result<(Vec<u8>, Self)> {
        let [path, older] = stderr_files(folder);
        let mut file = open(&path)?;
        let mut output = Vec::new();
        if let Some(mut older) = open(&older)? {
            // The file may just have been rotated.
            let is_same = file.as_ref().map(|file| is_same(file, &older)).transpose()?.unwrap_or(false);
            if !is_same {
                read_end(&mut older, &mut output)?;
            }
        }
        if let Some(file) = &mut file {
            read_end(file, &mut output)?;
        }
        Ok((output, Self { path, file }))
    }

    /// Appends new output to a buffer, at most one piece.
    fn read(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            if file.take(PIECE as u64).read_to_end(into)? > 0 {
                return Ok(());
            }
            let replaced = open(&self.path)?.map(|there| is_same(file, &there)).transpose()? != Some(true);
            // Output from before the rotation comes first.
            if !replaced || file.take(PIECE as u64).read_to_end(into)? > 0 {
                return Ok(());
            }
        }
        self.file = open(&self.path)?;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_end(file: &mut File, into: &mut Vec<u8>) -> io::Result<()> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES)))?;
    file.take(MAX_BYTES).read_to_end(into).map(drop)
}

fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_newest_lines_are_counted_from_the_end() {
        let from = |text: &str, lines| text[beginning(text.as_bytes(), lines)..].to_owned();
        for text in ["a\nb\nc\n", "a\nb\nc"] {
            assert_eq!(from(text, None), text);
            assert_eq!(from(text, Some(0)), "");
            assert_eq!(from(text, Some(1)).trim_end(), "c");
            assert_eq!(from(text, Some(2)).trim_end(), "b\nc");
            assert_eq!(from(text, Some(99)), text);
        }
        assert_eq!((from("", Some(3)), from("\n\n", Some(1))), (String::new(), "\n".to_owned()));
    }

    #[test]
    fn a_log_is_followed_over_the_change_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let [log, older] = stderr_files(folder.path());
        let (output, mut follower) = LogFollower::begin(folder.path()).unwrap();
        assert_eq!(output, b"", "there is none yet");
        let look = |follower: &mut LogFollower| {
            let mut output = Vec::new();
            for _ in 0..4 {
                follower.read(&mut output).unwrap();
            }
            String::from_utf8(output).unwrap()
        };
        fs::write(&log, "one\n").unwrap();
        assert_eq!(look(&mut follower), "one\n");
        let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
        file.write_all(b"two\n").unwrap();
        fs::rename(&log, &older).unwrap();
        file.write_all(b"three\n").unwrap();
        assert_eq!(look(&mut follower), "two\nthree\n");
        fs::write(&log, "four\n").unwrap();
        assert_eq!(look(&mut follower), "four\n");
        let (output, mut late) = LogFollower::begin(folder.path()).unwrap();
        assert_eq!(String::from_utf8(output).unwrap(), "one\ntwo\nthree\nfour\n");
        assert_eq!(look(&mut late), "", "nothing is said twice");
    }
}
