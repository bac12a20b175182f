//! Grove as an agent of the Agent Client Protocol (ACP): an editor's sessions are the host's.
//!
//! # What this crate owns
//!
//! [`serve`] stands between two connections. On one of them an editor speaks ACP: a pair of streams, with one JSON-RPC
//! message per line, or the messages of a WebSocket ([`serve_messages`]). The other is a [`Client`](grove_client::Client) of a host. No conversation is stored here: what an
//! editor begins is in the host, and goes on there when the editor is gone.
//!
//! | module | in short |
//! |---|---|
//! | `lines`, `editor` | the editor's streams: bounded lines in, a bounded queue out, requests to the editor |
//! | `server` | reads messages, and hands each request to its method |
//! | `host` | the connection to the host, and waiting for a host that is away |
//! | `capabilities` | `initialize`: what is announced, and what the editor can do |
//! | `methods`, `sessions` | the methods of sessions: new, load, resume, close, delete, fork |
//! | `session_list` | the session list, its titles and the archive |
//! | `session`, `prompt` | an open session, its prompts, and cancelling |
//! | `follower` | the task of an open session: tells the editor what changes |
//! | `report` | what was told of a chat, and the updates that are due |
//! | `tool_call`, `content` | tool calls as ACP has them; contents that the host stores beside a chat |
//! | `terminal` | commands of agents, shown as terminals of the editor |
//! | `settings` | modes and configuration options, the agent among them |
//! | `permission`, `question` | questions to the editor |
//! | `documents` | the editor's unsaved versions of files, for agents that read and write them |
//!
//! # How an editor follows a session
//!
//! The follower compares the chat's state with what it has reported, and sends the difference. It reads states and not
//! actions, so a reconnect, a restart of the host and an editor that reads slowly need no code of their own: what
//! happened meanwhile is one larger difference. Turns of other clients are told like the editor's own.
//!
//! A prompt is a queued message with an id of ours; its turn has the same id. So the turn is found again after a
//! reconnect, and a prompt in a busy session waits for its turn. The prompt is answered by the follower, behind the last
//! update of its turn.
//!
//! # What it never does
//!
//! It answers no permission request by itself, opens no file, and starts no process. A message of the editor that cannot
//! be read changes nothing.

mod capabilities;
mod content;
mod documents;
mod editor;
mod follower;
mod host;
pub mod limits;
mod lines;
mod methods;
mod permission;
mod prompt;
mod question;
mod report;
mod server;
mod servers;
mod session;
mod session_list;
mod sessions;
mod settings;
mod terminal;
mod tool_call;

pub use host::{EditorClient, HostAccess};
pub use server::{AgentChoice, serve, serve_messages};
