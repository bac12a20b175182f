//! The state of each channel.

mod annotations;
mod auth;
mod changeset;
mod chat;
mod config;
mod content;
mod customization;
mod input;
mod mcp;
mod resource_watch;
mod root;
mod session;
mod snapshot;
mod terminal;
mod tool_call;
mod turn;

pub use annotations::*;
pub use auth::*;
pub use changeset::*;
pub use chat::*;
pub use config::*;
pub use content::*;
pub use customization::*;
pub use input::*;
pub use mcp::*;
pub use resource_watch::*;
pub use root::*;
pub use session::*;
pub use snapshot::*;
pub use terminal::*;
pub use tool_call::*;
pub use turn::*;
