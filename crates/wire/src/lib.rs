//! What travels: JSON-RPC 2.0, and the dialects that Grove speaks over it.
//!
//! # What this crate owns
//!
//! - [`jsonrpc`]: frames in and out, ids kept as they came, limits on depth, the table of calls that await an answer.
//!   It is symmetric: either side may call.
//! - [`registry`]: which protocol versions there are, which version introduced what, and what a version can do.
//! - [`v1`]: the first dialect (integer version 1): its types, its reducers, and its projection of `grove-core`.
//!   One folder per version: raising the minimum means deleting a folder and its line in the registry.
//! - [`ahp`]: the dialect that others speak, the Agent Host Protocol 1.0 and 0.9: its types and its versions.
//! - [`copilot`]: what the GitHub Copilot SDK speaks with a host: its frames, methods and events, and a session as a
//!   list of such events.
//!
//! # What it never does
//!
//! It opens no socket, holds no session's state and decides nothing about it: text goes in and data comes out, data
//! goes in and text comes out. No other crate knows the shapes of a dialect.
//!
//! # Example
//!
//! ```
//! use grove_wire::jsonrpc::{self, Frame, RpcMessage};
//!
//! let Frame::Single(Ok(RpcMessage::Request(request))) = jsonrpc::parse(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#)?
//! else { panic!() };
//! assert_eq!(request.method, "ping");
//! assert_eq!(jsonrpc::response(&request.id, &())?, r#"{"jsonrpc":"2.0","id":0,"result":null}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod ahp;
pub mod copilot;
pub mod file_uri;
pub mod invalid_seq;
pub mod jsonrpc;
pub mod registry;
pub mod v1;
pub mod x_grove;
