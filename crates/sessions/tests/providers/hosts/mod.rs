//! The provider of hosts, over loopback against hosts in this process and one that says what its test says.

mod acting;
mod away;
mod chats;
mod drafts;
mod first_message;
mod folders;
mod foreign;
mod harness;
mod independent;
mod law;
mod metadata;
mod odd;
mod rows;
mod three;
mod turned_away;
