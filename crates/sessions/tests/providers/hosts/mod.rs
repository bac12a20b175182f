//! The provider of hosts, over loopback against hosts in this process and one that answers as its test says.

mod actions;
mod chats;
mod drafts;
mod faulty_host;
mod first_message;
mod folders;
mod foreign;
mod harness;
mod independent;
mod law;
mod metadata;
mod rejected;
mod rows;
mod three_hosts;
mod unreachable;
