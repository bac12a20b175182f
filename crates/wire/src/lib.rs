//! The wire formats: JSON-RPC 2.0, and Grove's dialects over it.
//!
//! # Contents
//!
//! - [`jsonrpc`]: frames in and out, ids kept as they came, limits on depth, the table of open calls. It is symmetric:
//!   either side may call.
//! - [`registry`]: the protocol versions, the version that introduced each name, and the capabilities of a version.
//! - [`v1`]: the first dialect (integer version 1): its types, its reducers, and its projection of `grove-core`. One
//!   folder per version: raising the minimum means deleting a folder and its line in the registry.
//! - [`ahp`]: the common dialect, the Agent Host Protocol 1.0 and 0.9: its types and its versions.
//! - [`copilot`]: the GitHub Copilot SDK's dialect: its frames, methods and events, and a session as a list of such
//!   events.
//! - [`x_grove`]: Grove's extensions to each dialect.
//! - [`scopes`]: the scope of every method and action, of every dialect.
//!
//! A dialect has its types and three translations: `project` (state), `encode` (events) and `decode` (clients'
//! actions). The types of [`ahp`] are our own: they refuse a malformed action instead of reading it as an unknown one,
//! and they yield the closed schema and the TypeScript declarations. The protocol's own crates are the oracle in the
//! tests.
//!
//! # Limits
//!
//! This crate opens no socket, holds no session's state and decides nothing about it: it converts text to data and data
//! to text. No other crate knows the types of a dialect.
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
pub mod limits;
pub mod refusal;
pub mod registry;
pub mod scopes;
mod turn_encodings;
pub mod v1;
mod value_reader;
pub mod x_grove;
