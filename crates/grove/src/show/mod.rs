//! Terminal output: lines and colours, no full-screen interface. Colours are only used on a terminal.

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
