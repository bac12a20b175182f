//! The provider of hosts, over loopback against hosts in this process and one that says what its test says.

mod acting;
mod away;
mod drafts;
mod harness;
mod odd;
mod rows;
