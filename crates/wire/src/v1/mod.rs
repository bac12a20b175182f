//! Protocol version 1: root and session state by URI, changed by actions.
//!
//! - [`state`], [`action`], [`command`]: the types on the wire.
//! - [`reduce`]: the pure reducers that host and clients share.
//! - [`project`]: `grove-core`'s state in version 1; [`encode`]: its events; [`decode`]: clients' actions. Version 1
//!   shows a session together with its main chat.
//! - `frozen.json`: the released types, which a test compares with the current ones.
//!
//! The law that ties them: reducing the projected state by the projected event gives the projection of the state
//! after the event.

pub mod action;
pub mod command;
pub mod decode;
pub mod encode;
pub mod project;
pub mod reduce;
pub mod state;

pub use action::*;
pub use command::*;
pub use reduce::{root_reducer, session_reducer};
pub use state::*;

/// The number of this version.
pub const VERSION: u32 = 1;

/// The URI of the root state; [`ROOT_ALIAS`] is another spelling of it.
pub const ROOT: &str = "agenthost:root";
/// The spelling that later versions used.
pub const ROOT_ALIAS: &str = "agenthost:/root";

/// True if `uri` names the root state, in either spelling.
pub fn is_root(uri: &str) -> bool {
    uri == ROOT || uri == ROOT_ALIAS
}
