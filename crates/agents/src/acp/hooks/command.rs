//! The command that an agent runs before a call.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{HookFormat, HookReply, HookRequest, MAX_HOOK_LINE};
use crate::setup::HookMode;

/// The time for which the command tries to reach a host. Then the call is denied, unless hooks are best effort.
pub const HOST_WAIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// Reads a call from `input`, asks the host, and returns what the agent reads from stdout.
pub fn run(format: HookFormat, socket: &Path, mode: HookMode, input: impl Read) -> Option<String> {
    let request = read_all(input).and_then(|input| format.read(&input));
    let reply = match &request {
        Ok(request) => ask(socket, request),
        Err(error) => Err(error.clone()),
    };
    let reply = match (reply, mode) {
        (Ok(reply), _) => reply,
        (Err(error), HookMode::Strict) => HookReply::denied(error),
        (Err(_), HookMode::BestEffort | HookMode::None) => return None,
    };
    format.write(reply, request.as_ref().ok()).map(|output| output.to_string())
}

fn read_all(input: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let limit = MAX_HOOK_LINE as u64;
    let read = input.take(limit + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if read > MAX_HOOK_LINE { Err("the call is too large for hooks".to_owned()) } else { Ok(bytes) }
}

/// Asks the host. One that ends before it answers is asked again when it is back.
fn ask(socket: &Path, request: &HookRequest) -> Result<HookReply, String> {
    let line = serde_json::to_string(request).map_err(|error| error.to_string())?;
    let mut lost_at = Instant::now();
    loop {
        match ask_once(socket, &line) {
            Ok(reply) => return Ok(reply),
            Err(AskError { error, was_connected }) => {
                if was_connected {
                    lost_at = Instant::now();
                }
                if lost_at.elapsed() > HOST_WAIT {
                    return Err(format!("the host of the session cannot be asked ({error}): run `grove start`"));
                }
            }
        }
        std::thread::sleep(PAUSE);
    }
}

struct AskError {
    error: std::io::Error,
    was_connected: bool,
}

fn ask_once(socket: &Path, line: &str) -> Result<HookReply, AskError> {
    let connecting = |error| AskError { error, was_connected: false };
    let talking = |error| AskError { error, was_connected: true };
    let mut stream = UnixStream::connect(socket).map_err(connecting)?;
    stream.write_all(line.as_bytes()).and_then(|()| stream.write_all(b"\n")).map_err(talking)?;
    let mut reply = String::new();
    BufReader::new(stream).take(MAX_HOOK_LINE as u64).read_line(&mut reply).map_err(talking)?;
    serde_json::from_str(&reply).map_err(|error| talking(error.into()))
}
