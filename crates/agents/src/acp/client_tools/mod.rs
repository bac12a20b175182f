//! The tools of clients, for an agent: an MCP server that Grove injects into its session.
//!
//! The agent starts the program of [`relay`], which passes MCP messages between its stdio and a socket in the folder of
//! the agent's shim. The host answers them there (`ToolServer`). The socket serves the tools of this one chat and
//! nothing else: its secret gives no right to approve or to see anything.
//!
//! - `calls`: the calls of a process, each a call of the session that a client runs. The agent announces its calls
//!   itself as well; `announced` recognizes those, so that a call is shown once.
//! - `server`, `messages`: the socket, and the messages of MCP.
//! - `record`: the file in the shim's folder with the secret, for a host that comes back.
//! - `relay`: the program that the agent starts. It connects again when the host is back, and repeats open requests.

mod announced;
pub(crate) mod calls;
mod messages;
mod record;
pub mod relay;
pub(crate) mod server;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use grove_core::ToolCallId;
use grove_shim::SocketAddress;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

pub(crate) use calls::{Shown, ToolCalls};
pub(crate) use server::ToolServer;

/// The socket in the shim's folder.
const SOCKET: &str = "tools";
/// The bytes of a message, in either direction. A longer one closes the connection.
pub const MESSAGE_BYTES: usize = 16 << 20;
/// The bytes of the first line of a connection, with the secret.
const HELLO_BYTES: usize = 1 << 10;
/// The requests of an agent that may be unanswered. A further one is refused.
pub const OPEN_REQUESTS: usize = 128;
/// The environment variables of the program that an agent starts.
pub const FOLDER_VARIABLE: &str = "GROVE_TOOLS_FOLDER";
pub const SECRET_VARIABLE: &str = "GROVE_TOOLS_SECRET";

/// The first line of a connection.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct ToolGreeting {
    secret: String,
    /// Names the program's process, so that its requests keep their names on another connection.
    process: String,
}

/// The program that an agent starts to reach the tools of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayProgram {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The arguments with which the same program filters an MCP server's tools.
    pub filter_args: Vec<String>,
}

/// The beginning of the ids of calls that come over MCP.
const CALL_PREFIX: &str = "mcp-";

/// Returns whether a call came over MCP.
pub(crate) fn is_call(id: &ToolCallId) -> bool {
    id.as_str().starts_with(CALL_PREFIX)
}

fn address(folder: &Path) -> io::Result<SocketAddress> {
    SocketAddress::of(folder, SOCKET)
}

/// The next line, without its end; `None` at the end of the stream. A line that is too long is an error.
pub(crate) async fn next_line(from: &mut (impl AsyncBufRead + Unpin), most: usize) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    if from.take(limit).read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a line has more than {most} bytes")));
    }
    String::from_utf8(line).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
