//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::acp::agent::LISTED as AGENT_SESSIONS;
pub use crate::acp::client_tools::MESSAGE_BYTES as TOOLS_MESSAGE_BYTES;
pub use crate::acp::client_tools::OPEN_REQUESTS as TOOLS_REQUESTS;
pub use crate::acp::client_tools::calls::ANNOUNCED_CALLS;
pub use crate::acp::client_tools::server::CONNECTIONS as TOOLS_CONNECTIONS;
pub use crate::acp::client_tools::server::HELLO_TIME as TOOLS_HELLO_TIME;
pub use crate::acp::connection::CALLS as OPEN_CALLS;
pub use crate::acp::serve::files::READ_BYTES;
pub use crate::acp::serve::files::SHOWN_BYTES as SHOWN_FILE_BYTES;
pub use crate::acp::serve::terminals::RECENT as RELEASED_TERMINALS;
pub use crate::acp::session::COMMANDS as AGENT_INBOX;
pub use crate::acp::session::contents::LIVE_BYTES as LIVE_OUTPUT_BYTES;
pub use crate::acp::session::contents::MOST_BYTES as REMEMBERED_CALL_BYTES;
pub use crate::acp::session::contents::MOST_CALLS as REMEMBERED_CALLS;
pub use crate::acp::session::exit_message::BYTES as EXIT_MESSAGE_BYTES;
pub use crate::acp::session::process::ASKED as AGENT_REQUESTS;
pub use crate::acp::session::worker::CLOSING as AGENT_CLOSE_TIME;
pub use crate::acp::session::worker::RECAP_BYTES;
pub use crate::acp::summary::LONGEST as SUMMARY_BYTES;
pub use crate::acp::summary::PATIENCE as SUMMARY_TIME;
pub use crate::scripted::LARGEST_SCRIPT as SCRIPT_BYTES;
pub use crate::scripted::script::MAX_OUTPUT as SCRIPT_OUTPUT_BYTES;
pub use crate::setup::MAX_MCP_SERVERS as MCP_SERVERS;
pub use crate::setup::MAX_SERVER_NAME as MCP_SERVER_NAME_BYTES;
pub use crate::setup::MAX_SETUP_BYTES as SETUP_BYTES;
pub use crate::subject::MAX_PATHS as PERMISSION_PATHS;
