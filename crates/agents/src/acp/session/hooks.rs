//! The host's end of an agent's own hooks: calls that the agent is about to run, from the command that it runs first.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use grove_core::*;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::chat::AcpChat;
use super::process::AgentProcess;
use super::requests::answered;
use crate::acp::hooks::{HookDecision, HookReply, HookRequest, MAX_HOOK_LINE, socket_in};
use crate::acp::map;
use crate::agent::*;
use crate::catalog::HookSupport;

/// The calls of one agent that may wait for hooks. Further ones wait until one is decided.
pub const MAX_HOOKED_CALLS: usize = 64;

/// Answers the hook command of an agent until it is dropped.
#[derive(Debug)]
pub(super) struct HookServer(JoinHandle<()>);

impl Drop for HookServer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl HookServer {
    /// A server for the process of a chat; `None` if its agent has no hooks of its own.
    pub(super) fn start(chat: &AcpChat, process: &Arc<AgentProcess>) -> Option<Self> {
        if !matches!(chat.hook_support(), HookSupport::Command(_)) || chat.hooks.is_none() {
            return None;
        }
        let listener = match listen(chat.folder()) {
            Ok(listener) => listener,
            Err(error) => {
                // The command finds nobody, and denies.
                tracing::warn!(session = %chat.session, %error, "the hooks of an agent have no socket");
                return None;
            }
        };
        let (process, patience) = (Arc::clone(process), chat.pool.options().patience);
        Some(Self(tokio::spawn(accept(listener, process, patience))))
    }
}

fn listen(folder: &Path) -> std::io::Result<UnixListener> {
    let path = socket_in(folder);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    UnixListener::bind(path)
}

async fn accept(listener: UnixListener, process: Arc<AgentProcess>, patience: Duration) {
    let (slots, last) = (Arc::new(Semaphore::new(MAX_HOOKED_CALLS)), Arc::new(AtomicU64::new(0)));
    // They end with the server.
    let mut calls = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        while calls.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else { return };
        let (process, number) = (Arc::clone(&process), last.fetch_add(1, Ordering::Relaxed));
        calls.spawn(async move {
            // A command that is gone needs no answer.
            serve(stream, &process, number, patience).await.ok();
            drop(slot);
        });
    }
}

async fn serve(stream: UnixStream, process: &AgentProcess, number: u64, patience: Duration) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    BufReader::new(reader).take(MAX_HOOK_LINE as u64).read_line(&mut line).await?;
    let reply = match serde_json::from_str::<HookRequest>(&line) {
        Err(error) => Some(HookReply::denied(format!("the call cannot be read: {error}"))),
        Ok(request) => decide(request, process, number, patience).await,
    };
    // Without a reply the host ends, and the next one is asked.
    let Some(reply) = reply else { return Ok(()) };
    let mut text = serde_json::to_vec(&reply)?;
    text.push(b'\n');
    writer.write_all(&text).await
}

/// The decision of the session's hooks; `None` if the host ends before.
async fn decide(request: HookRequest, process: &AgentProcess, number: u64, patience: Duration) -> Option<HookReply> {
    let Some(turn) = process.turn() else { return Some(HookReply::denied("no turn runs, so nobody can decide")) };
    let HookRequest { tool, arguments, call } = request;
    let call = call.unwrap_or_else(|| format!("hook-{number}"));
    let id = RequestId::from(format!("{}/hook-{number}", turn.sink.turn()));
    let (answer, verdict) = oneshot::channel();
    let prompt = PermissionPrompt {
        request: PermissionRequest {
            id,
            kind: PermissionKind::Mcp,
            path: None,
            full_command_text: None,
            intention: Some(format!("Run {tool}")),
            title: None,
            options: vec![],
            edits: vec![],
            editable: false,
        },
        answer,
        asks: PromptedParty::HooksAlone,
    };
    let update = ToolUpdate {
        name: normalized_title(&tool),
        title: normalized_title(&tool),
        input: Some(arguments.to_string()),
        stage: Some(ToolStage::Pending),
        permission: Some(prompt),
        ..ToolUpdate::of(call.into())
    };
    turn.sink.report(vec![AgentEvent::Tool(Box::new(update))], None).await.ok()?;
    let verdict = answered(verdict, turn, patience).await;
    let Some(verdict) = verdict else { return Some(HookReply::denied("the turn was cancelled")) };
    let arguments = verdict.edited_input.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    Some(match (verdict.decision, verdict.by) {
        (Decision::Denied, _) => HookReply::denied(map::denial_reason(&verdict).unwrap_or("it was denied")),
        (Decision::Approved, ConfirmationReason::NotNeeded) => {
            HookReply { decision: HookDecision::None, reason: None, arguments }
        }
        (Decision::Approved, _) => HookReply { decision: HookDecision::Allow, reason: None, arguments },
    })
}
