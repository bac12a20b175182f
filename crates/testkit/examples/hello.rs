//! A first client: `cargo run -p grove-testkit --example hello -- "hello"` while `grove serve` runs.
//!
//! It finds the host by the file in its data folder, creates a session with the scripted agent, sends the prompt,
//! prints the stream, and approves the agent's permission requests.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "an example shows the way, not errors"
)]

use std::io::Write;
use std::path::PathBuf;

use grove_testkit::Client;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "hello".to_owned());
    let data_dir = std::env::var_os("GROVE_DATA_DIR").map(PathBuf::from).unwrap_or_else(|| {
        let home = PathBuf::from(std::env::var_os("HOME").expect("HOME is set"));
        home.join(".local/share/grove")
    });
    let file = data_dir.join("host.json");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("no host: {} is missing", file.display()));
    let host: Value = serde_json::from_str(&text).unwrap();

    let mut client = Client::connect(host["ws"].as_str().unwrap(), host["token"].as_str().unwrap(), "hello").await;
    client.initialize(&["agenthost:root"]).await;
    let uri = format!("scripted:/hello-{}", std::process::id());
    client.ready_session(&uri).await;
    client.start_turn(&uri, "turn-1", &prompt).await;

    let mut shown = 0;
    while client.session(&uri).turns.is_empty() {
        for envelope in client.envelopes.split_off(shown.min(client.envelopes.len())) {
            let action: Value = serde_json::from_str(envelope.action.get()).unwrap();
            match action["type"].as_str().unwrap() {
                "session/delta" => print!("{}", action["content"].as_str().unwrap()),
                "session/toolComplete" => println!("  {}", action["result"]["pastTenseMessage"].as_str().unwrap()),
                "session/permissionRequest" => {
                    let request = &action["request"];
                    println!("  asked: may I run `{}`? yes", request["fullCommandText"].as_str().unwrap_or("it"));
                    client
                        .dispatch(json!({"type": "session/permissionResolved", "session": uri, "turnId": "turn-1",
                            "requestId": request["requestId"], "approved": true}))
                        .await;
                }
                _ => {}
            }
            std::io::stdout().flush().unwrap();
        }
        shown = client.envelopes.len();
        let before = shown;
        client.until(|client| client.envelopes.len() > before).await;
    }
}
