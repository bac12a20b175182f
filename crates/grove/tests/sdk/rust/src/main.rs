//! The Rust SDK, unmodified, with Grove as its server: create, send, permission, own tool, resume.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use github_copilot_sdk::handler::{PermissionHandler, PermissionResult};
use github_copilot_sdk::tool::ToolHandler;
use github_copilot_sdk::types::*;
use github_copilot_sdk::{CliProgram, Client, ClientOptions, Error, Transport};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Allows everything, and notes that it was asked.
#[derive(Default)]
struct Allow(Mutex<u32>);

#[async_trait]
impl PermissionHandler for Allow {
    async fn handle(&self, _: SessionId, _: RequestId, _: PermissionRequestData) -> PermissionResult {
        *self.0.lock().unwrap() += 1;
        PermissionResult::approve_once()
    }
}

/// A tool of this program.
struct Look;

#[async_trait]
impl ToolHandler for Look {
    async fn call(&self, invocation: ToolInvocation) -> Result<ToolResult, Error> {
        Ok(ToolResult::Text(format!("saw {}", invocation.arguments["at"].as_str().unwrap_or("nothing"))))
    }
}

/// A prompt that makes the scripted agent run these steps.
fn prompt(steps: Value) -> MessageOptions {
    MessageOptions::new(format!("script:{steps}")).with_wait_timeout(Duration::from_secs(60))
}

fn environment(home: &Path) -> Vec<(String, String)> {
    let data = home.join("data").display().to_string();
    let pairs = [("HOME", home.display().to_string()), ("GROVE_DATA_DIR", data), ("GROVE_LISTEN", "127.0.0.1:0".into())];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

async fn client(grove: &Path, home: &Path) -> Result<Client, Error> {
    let options = ClientOptions::default()
        .with_program(CliProgram::Path(grove.to_owned()))
        .with_transport(Transport::Stdio)
        .with_env(environment(home));
    Client::start(options).await
}

fn content(event: Option<SessionEvent>) -> String {
    event.and_then(|event| Some(event.data.get("content")?.as_str()?.to_owned())).unwrap_or_default()
}

async fn scenario(grove: &Path, home: &Path) -> Outcome {
    let first = client(grove, home).await?;
    assert!(first.list_models().await?.iter().any(|model| model.id.as_str() == "scripted"));
    let allow = Arc::new(Allow::default());
    let tool = Tool::new("look")
        .with_description("looks")
        .with_parameters(json!({"type": "object", "properties": {"at": {"type": "string"}}}))
        .with_handler(Arc::new(Look));
    let config = SessionConfig::default().with_model("scripted").with_permission_handler(allow.clone()).with_tools(vec![tool]);
    let session = first.create_session(config).await?;
    let shell = json!({"tool": {"name": "shell", "input": "ls", "output": "a.txt", "permission": "shell"}});
    let own = json!({"clientTool": {"name": "look", "input": {"at": "x"}}});
    let last = session.send_and_wait(prompt(json!([shell, own, {"say": "done"}]))).await?;
    assert_eq!(content(last), "look gave: saw x\ndone");
    assert_eq!(*allow.0.lock().unwrap(), 1);
    let events = session.get_events().await?;
    let results = serde_json::to_string(&events)?;
    assert!(results.contains("saw x"), "{results}");
    let id = session.id().clone();
    session.disconnect().await?;
    first.stop().await.ok();

    // Another program goes on with it.
    let second = client(grove, home).await?;
    assert!(second.list_sessions(None).await?.iter().any(|row| row.session_id == id));
    let resumed = second.resume_session(ResumeSessionConfig::new(id).with_permission_handler(allow)).await?;
    let again = resumed.get_events().await?;
    assert!(again.iter().zip(&events).all(|(again, event)| again.id == event.id));
    assert!(again.len() > events.len());
    let last = resumed.send_and_wait(prompt(json!([{"say": "again"}]))).await?;
    assert_eq!(content(last), "again");
    resumed.disconnect().await?;
    second.stop().await.ok();
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let grove = PathBuf::from(std::env::var_os("GROVE_BIN").ok_or("set GROVE_BIN to the program `grove`")?);
    let home = tempfile::tempdir()?;
    let outcome = tokio::time::timeout(Duration::from_secs(120), scenario(&grove, home.path())).await;
    // The host outlives the programs.
    Command::new(&grove).arg("stop").envs(environment(home.path())).output()?;
    outcome??;
    println!("ok: the Rust SDK");
    Ok(())
}
