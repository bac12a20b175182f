//! The model of Grove: what there is, what can happen, and who may make it happen.
//!
//! # What this crate owns
//!
//! - **State** ([`State`], [`Session`], [`Chat`], [`Turn`], [`Part`], [`ToolCall`]): a root, sessions, their chats.
//!   A session groups chats, a chat has turns, a turn has ordered parts. Every protocol's state is a projection of it.
//! - **Questions** ([`InputRequest`], [`PermissionRequest`]): what an agent wants to know or to be allowed, and how a
//!   person answers. What waits for somebody, in whichever chat, the session lists ([`InputNeeded`]).
//! - **Events** ([`Event`]): the only way in which state changes. They are finer than any protocol's actions.
//! - [`apply`]: brings a state forward by one event, in place. It is total (what does not fit changes nothing) and
//!   costs the same for a delta however long the chat is.
//! - [`validate()`]: takes what somebody wants ([`Command`], [`Actor`]) and gives either the events that it makes
//!   happen or a [`Rejection`] in words for a person. [`advance`] does both steps on one session.
//! - [`mirror`]: the events by which a session's catalogue follows its chats.
//!
//! # What it never does
//!
//! It does no I/O, reads no clock, draws no random numbers, and knows no protocol: times and ids come in as
//! arguments, and shapes on a wire are `grove-wire`'s.
//!
//! # Example
//!
//! ```
//! use grove_core::*;
//!
//! let new = NewSession {
//!     id: "s1".into(),
//!     uri: "scripted:/s1".into(),
//!     provider: "scripted".into(),
//!     model: None,
//!     working_directories: vec![],
//!     config: None,
//!     store: StoreName::default(),
//! };
//! let mut session = Session::new(&new, Timestamp(1));
//! let say_hello = Command::StartTurn {
//!     chat: Session::MAIN_CHAT.into(),
//!     turn: "t1".into(),
//!     message: Message::user("hello"),
//!     started_at: None,
//! };
//! let who = Actor::Client("me".into());
//! let batch = advance(&mut session, None, say_hello.clone(), &who, Timestamp(2)).unwrap();
//! assert_eq!(session.main_chat().unwrap().status(), ChatStatus::InProgress);
//! assert_eq!(batch.events.len(), 4, "the turn, its session's title, that there is something to read, and the chat's row");
//!
//! let refused = advance(&mut session, None, say_hello, &who, Timestamp(3)).unwrap_err();
//! assert_eq!(refused.to_string(), "turn t1 is still in progress: wait for its end or cancel it");
//! ```

mod apply;
mod checkout;
mod event;
mod ids;
mod input;
pub mod mirror;
mod origin;
mod permissions;
mod state;
mod title;
mod turn;
mod validate;

pub use apply::apply;
pub use checkout::*;
pub use event::*;
pub use ids::*;
pub use input::*;
pub use origin::*;
pub use permissions::*;
pub use state::*;
pub use title::*;
pub use turn::*;
pub use validate::*;
