//! Grove's domain model: the state, the events that change it, and the rules for commands.
//!
//! # Contents
//!
//! - **State** ([`State`], [`Session`], [`Chat`], [`Turn`], [`Part`], [`ToolCall`]): a root, sessions, their chats. A
//!   session groups chats, a chat has turns, a turn has ordered parts. Every protocol's state is a projection of it.
//! - **Questions** ([`InputRequest`], [`PermissionRequest`]): an agent's questions and permission requests, and a
//!   person's answers. The session lists the open ones of all chats ([`InputNeeded`]).
//! - **Events** ([`Event`]): the only way to change state. They are finer than any protocol's actions.
//! - [`apply`]: applies one event to a state, in place. It is total (an event that does not fit changes nothing), and a
//!   delta costs the same however long the chat is.
//! - [`validate()`]: takes a [`Command`] of a client, the host or an agent, and returns either the resulting events or a
//!   [`Rejection`] in words for a person. [`advance`] does both steps on one session.
//! - [`mirror`]: the events that update a session's catalogue from its chats.
//! - [`warning`]: the warnings that Grove itself adds to a session and removes again.
//! - [`Scope`]: the rights that a token gives.
//!
//! # Limits
//!
//! This crate does no I/O, reads no clock, draws no random numbers, and knows no protocol: times and ids are arguments,
//! and wire formats belong to `grove-wire`.
//!
//! # Example
//!
//! ```
//! use grove_core::*;
//!
//! let new = NewSession {
//!     id: "s1".into(),
//!     uri: "scripted:/s1".into(),
//!     agent: "scripted".into(),
//!     model: None,
//!     working_directories: vec![],
//!     config: None,
//!     store: StoreName::default(),
//! };
//! let mut session = Session::new(&new, Timestamp(1));
//! let say_hello = ClientCommand::StartTurn {
//!     chat: Session::MAIN_CHAT.into(),
//!     turn: "t1".into(),
//!     message: Message::user("hello"),
//!     started_at: None,
//! };
//! let say_hello = Command::Client("me".into(), say_hello);
//! let batch = advance(&mut session, None, say_hello.clone(), Timestamp(2)).unwrap();
//! assert_eq!(session.main_chat().unwrap().status(), ChatStatus::InProgress);
//! assert_eq!(batch.events.len(), 4, "the turn, the session's title, the unread flag, and the chat's row");
//!
//! let refused = advance(&mut session, None, say_hello, Timestamp(3)).unwrap_err();
//! assert_eq!(refused.to_string(), "turn t1 is still in progress: wait for its end or cancel it");
//! ```

mod answerer;
mod apply;
mod checkout;
mod command;
mod event;
mod frame_cursor;
mod ids;
mod input;
pub mod mirror;
mod origin;
mod permissions;
mod refusal;
mod scope;
mod state;
mod title;
mod turn;
mod validate;
pub mod warning;

pub use answerer::*;
pub use apply::apply;
pub use checkout::*;
pub use command::*;
pub use event::*;
pub use frame_cursor::*;
pub use ids::*;
pub use input::*;
pub use origin::*;
pub use permissions::*;
pub use refusal::*;
pub use scope::*;
pub use state::*;
pub use title::*;
pub use turn::*;
pub use validate::*;
