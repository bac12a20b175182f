//! A fake model for trying agents by hand:
//! `cargo run -p grove-testkit --example fake-model -- [--listen 127.0.0.1:0] [--script FILE.json] [--seconds 600]`.
//!
//! Its first line is its address, as JSON: `{"address":"127.0.0.1:4321","url":"http://127.0.0.1:4321"}`. Without a
//! script it lets each prompt run `echo grove-was-here` in the agent's shell. A script with every kind of step:
//!
//! ```json
//! {"turns": [
//!   {"when": {"told": "slowly"}, "answers": [[{"say": {"text": "one two three", "chunks": 3, "delay_ms": 500}}]]},
//!   {"when": {"told": "flaky"}, "answers": [
//!     [{"fail": {"status": 500}}],
//!     [{"say": {"text": "so far"}}, "cut"],
//!     [{"stall": {"ms": 3000}}, {"say": {"text": "at last"}}]]},
//!   {"answers": [[{"say": {"text": "only the first of the other prompts hears this"}}]]},
//!   {"when": "always", "answers": [
//!     [{"think": {"text": "Hm."}}, {"shell": {"command": "touch a-file"}}],
//!     [{"call": {"tool": "read", "arguments": {"filePath": "a-file"}}}],
//!     [{"say": {"text": "done"}}]]}
//! ]}
//! ```
//!
//! While it runs, `GET /grove/requests` lists the requests, and `PUT /grove/script` replaces the script.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "an example shows the way, not errors")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use grove_testkit::model::{FakeModel, Script};

#[derive(Parser)]
struct Arguments {
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The script, in the format of the test kit's `Script`.
    #[arg(long)]
    script: Option<PathBuf>,
    /// The time after which it stops.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments = Arguments::parse();
    let script = arguments.script.map_or_else(Script::default, |file| {
        let text = std::fs::read_to_string(file).expect("the script can be read");
        serde_json::from_str(&text).expect("the script is one")
    });
    let model = FakeModel::listen(arguments.listen, script).await;
    println!("{}", serde_json::json!({"address": model.address().to_string(), "url": model.url()}));
    tokio::time::sleep(Duration::from_secs(arguments.seconds)).await;
}
