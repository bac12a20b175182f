//! Agent backends: the interface between the host and an agent, and the agents that Grove includes.
//!
//! # What this crate owns
//!
//! - [`Agent`]: a kind of agent, such as the scripted one. It describes itself and opens sessions.
//! - [`AgentSession`]: the agent of one chat. Its required core is small: run a turn, cancel a turn, close. Optional
//!   abilities have default implementations for agents without them.
//! - [`TurnSink`]: the channel to which a running turn reports events ([`AgentEvent`]) and asks the person. It is
//!   bounded, so an agent runs no faster than the host can store its output. An agent whose process outlives the host
//!   marks its reports ([`FrameCursor`](grove_core::FrameCursor)), so that the next host knows which frames are handled.
//! - [`SpillStore`]: the store for output that is too large for an agent. The caller of [`Agent::open`] supplies it.
//! - [`setup`]: what the creator of a session configures for its agent, and what an agent can honour of it.
//! - [`catalog`]: the agents that are known by name, and whether they are installed.
//! - [`acp`]: any program that speaks the Agent Client Protocol, behind a shim that outlives the host.
//! - [`scripted`]: a deterministic agent for tests, demos and people without a model.
//!
//! # What it never does
//!
//! An agent never sees a client, a sequence number or a client protocol, and never decides the state of a session: it
//! reports, and the host checks each report against the session's state.
//!
//! # Processes
//!
//! An ACP agent has one process for each chat. It starts with its session or its first turn ([`AgentStart`]), stops
//! when it is idle, and comes back through the agent's own `resume` or `load`, or through a recap of the conversation.
//! The pool limits the number of processes. Agents report a tool call in any order, so the host merges each report into
//! what it knows of the call.
//!
//! # Example
//!
//! ```
//! use grove_agents::{Agent, AgentEvent, AgentStart, ChatSink, ClientTools, OpenSession, Prompt, scripted::ScriptedAgent};
//! use grove_core::{Extra, Message};
//! use std::sync::Arc;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let (sender, mut reports) = tokio::sync::mpsc::channel(16);
//! let sink = ChatSink::new("main".into(), sender);
//! let opening = OpenSession {
//!     session: "s1".into(),
//!     chat: "main".into(),
//!     model: None,
//!     working_directories: vec![],
//!     agent_session_id: None,
//!     settings: Extra::new(),
//!     reports: sink.clone(),
//!     spills: Arc::new(()),
//!     start: AgentStart::FirstTurn,
//!     setup: Arc::default(),
//!     client_tools: ClientTools::default(),
//! };
//! let session = ScriptedAgent.open(opening).await.unwrap();
//!
//! let message = Message::user(r#"script:[{"say":"hello"}]"#);
//! let prompt = Prompt { message, model: None, client_tools: vec![], memory: Arc::new(()) };
//! session.prompt(prompt, sink.turn("t1".into())).await.unwrap();
//! let report = reports.recv().await.unwrap();
//! assert!(matches!(&report.events[..], [AgentEvent::Text(said)] if said == "hello"));
//! # });
//! ```

pub mod acp;
mod agent;
pub mod catalog;
pub mod limits;
mod offered_tools;
pub mod scripted;
pub mod setup;
mod sink;
mod spills;
mod subject;

pub use agent::*;
pub use sink::{ChatSink, TurnSink};
pub use spills::{SpillStore, SpillWriter};
pub use subject::call_subject;
