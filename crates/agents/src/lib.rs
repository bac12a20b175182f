//! Agent backends: what the host asks of one, and the agents that Grove brings along.
//!
//! # What this crate owns
//!
//! - [`Agent`]: a kind of agent, such as the scripted one. It describes itself and opens sessions.
//! - [`AgentSession`]: an agent at work for one chat. Its required core is small: run a turn, stop a turn.
//!   What only some agents can do will be capabilities beside it.
//! - [`TurnSink`]: where a running turn reports what happens ([`AgentEvent`]) and asks the person. It is bounded,
//!   so an agent runs no faster than the host can store what it says.
//! - [`scripted`]: a deterministic agent for tests, demos and people without a model.
//!
//! # What it never does
//!
//! An agent never sees a client, a sequence number or a protocol of clients, and never decides what is true of a
//! session: it reports, and the host checks each report against the session's state.
//!
//! # Example
//!
//! ```
//! use grove_agents::{Agent, AgentEvent, OpenSession, Prompt, TurnSink, scripted::ScriptedAgent};
//! use grove_core::Message;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let opening = OpenSession {
//!     session: "s1".into(),
//!     chat: "main".into(),
//!     model: None,
//!     working_directories: vec![],
//! };
//! let session = ScriptedAgent.open(opening).await.unwrap();
//!
//! let (events, mut reports) = tokio::sync::mpsc::channel(16);
//! let sink = TurnSink::new("t1".into(), events);
//! let message = Message::user(r#"script:[{"say":"hello"}]"#);
//! let prompt = Prompt { message, model: None, client_tools: vec![] };
//! session.prompt(prompt, sink).await.unwrap();
//! assert!(matches!(reports.recv().await, Some(AgentEvent::Text { content, .. }) if content == "hello"));
//! # });
//! ```

mod agent;
pub mod scripted;

pub use agent::*;
