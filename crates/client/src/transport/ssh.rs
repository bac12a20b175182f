//! Hosts behind SSH: the system's `ssh` runs `grove serve --stdio` on the other machine.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::AbortHandle;

use super::{MessageSocket, SshAddress, lines};

/// The number of newest stderr bytes of ssh that are kept.
const STDERR_BYTES: usize = 2 << 10;
/// How long ssh may take to exit after the end of its output.
const TIMEOUT: Duration = Duration::from_secs(2);

/// An error of a connection through ssh.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SshError {
    #[error("{program:?} cannot be run ({error}): install the client of OpenSSH")]
    NotRun { program: OsString, error: String },
    #[error("ssh to {host} ended{}: see that `ssh {host} grove --version` works", exit_details(.status, .complaint))]
    Ended { host: String, status: Option<String>, complaint: String },
}

fn exit_details(status: &Option<String>, complaint: &str) -> String {
    let status = status.as_deref().map(|status| format!(" ({status})")).unwrap_or_default();
    let complaint = if complaint.is_empty() { String::new() } else { format!(" and said {complaint:?}") };
    status + &complaint
}

pub(super) struct Ssh {
    pub(super) address: SshAddress,
    /// The program to run: `ssh`, except in tests.
    pub(super) program: OsString,
}

impl Ssh {
    /// Starts ssh. Success says nothing yet about the other machine.
    pub(super) fn open(&self, message_bytes: usize) -> Result<MessageSocket, SshError> {
        let not_run = |error: String| SshError::NotRun { program: self.program.clone(), error };
        let mut command = Command::new(&self.program);
        command.args(self.arguments()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C in the terminal is meant for this program, which may keep the connection.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| not_run(error.to_string()))?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(not_run("it has no pipes".to_owned()));
        };
        let process = SshProcess { host: self.address.host.clone(), child, complaint: StderrTail::capture(errors) };
        let ended = Box::pin(process.ended());
        Ok(MessageSocket {
            sink: Box::pin(lines::sink(input)),
            stream: lines::stream(BufReader::new(output), message_bytes, ended),
        })
    }

    fn arguments(&self) -> Vec<OsString> {
        let SshAddress { user, host, port, data_dir, grove } = &self.address;
        // A password cannot be asked for: use keys or an agent.
        let mut arguments: Vec<OsString> = ["-T", "-o", "BatchMode=yes"].map(OsString::from).into();
        if let Some(port) = port {
            arguments.extend(["-p".into(), port.to_string().into()]);
        }
        let place = user.as_ref().map_or_else(|| host.clone(), |user| format!("{user}@{host}"));
        // The shell of the other machine parses this again.
        let mut command = format!("{} serve --stdio", quoted(grove.as_deref().unwrap_or("grove")));
        if let Some(data_dir) = data_dir {
            command.push_str(&format!(" --data-dir {}", quoted(data_dir)));
        }
        arguments.extend([OsStr::new("--").to_owned(), place.into(), command.into()]);
        arguments
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:@".contains(&byte);
    if word.bytes().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A running ssh, killed on drop.
struct SshProcess {
    host: String,
    child: Child,
    complaint: StderrTail,
}

impl SshProcess {
    /// The error for the end of ssh's output.
    async fn ended(mut self) -> io::Error {
        let status = tokio::time::timeout(TIMEOUT, self.child.wait()).await;
        let status = status.ok().and_then(Result::ok).map(|status| status.to_string());
        io::Error::other(SshError::Ended { host: self.host, status, complaint: self.complaint.text().await })
    }
}

/// The end of ssh's stderr.
struct StderrTail {
    newest: Arc<Mutex<Vec<u8>>>,
    hearing: tokio::task::JoinHandle<()>,
    // A connection that ssh shares with others keeps stderr open.
    _stop: AbortOnDrop,
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl StderrTail {
    fn capture(mut errors: ChildStderr) -> Self {
        let newest = Arc::new(Mutex::new(Vec::new()));
        let buffer = newest.clone();
        let hearing = tokio::spawn(async move {
            let mut piece = [0; 512];
            while let Ok(length @ 1..) = errors.read(&mut piece).await {
                let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
                buffer.extend_from_slice(&piece[..length]);
                let old = buffer.len().saturating_sub(STDERR_BYTES);
                buffer.drain(..old);
            }
        });
        let _stop = AbortOnDrop(hearing.abort_handle());
        Self { newest, hearing, _stop }
    }

    async fn text(self) -> String {
        tokio::time::timeout(TIMEOUT, self.hearing).await.ok();
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&newest).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(address: &str) -> Vec<String> {
        let super::super::HostAddress::Ssh(address) = address.parse().unwrap() else { panic!("no ssh") };
        let ssh = Ssh { address, program: "ssh".into() };
        ssh.arguments().into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    #[test]
    fn a_shell_over_there_takes_every_word_for_one_word() {
        assert_eq!(arguments("ssh://dev-box"), ["-T", "-o", "BatchMode=yes", "--", "dev-box", "grove serve --stdio"]);
        assert_eq!(
            arguments("ssh://me@dev-box:2222/it's%20$(mine)?grove=/opt/grove")[3..],
            ["-p", "2222", "--", "me@dev-box", r"/opt/grove serve --stdio --data-dir '/it'\''s $(mine)'"]
        );
    }
}
