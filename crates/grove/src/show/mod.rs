//! How things look in a terminal. No full-screen interface: lines and colours, and colours only on a terminal.

pub(crate) mod call;
pub(crate) mod chat;
pub(crate) mod diff;
pub(crate) mod facts;
pub(crate) mod input_area;
pub(crate) mod screen;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod transcript;
pub(crate) mod tree;
