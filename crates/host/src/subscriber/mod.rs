//! Subscribers, as the sequencer sees them: a bounded queue of output, and the dialect in which it is written.
//!
//! The sequencer and the handlers of requests push into a [`Queue`]; the connection that owns it takes the items and
//! writes them. An event is encoded and framed once for all subscribers of a [`Dialect`] ([`EventFrames`]).

mod budget;
mod dialect;
pub mod frame;
mod queue;

pub use budget::{Budget, ReservedBytes};
pub use dialect::Dialect;
pub use queue::{
    AnswerPermit, DisconnectReason, DueAnswer, Encode, EventFrames, MergedDelta, Outgoing, Queue, QueuedAnswer,
    QueuedNotice,
};
