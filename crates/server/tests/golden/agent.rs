//! An agent that reports what the scripted one never does, and works on without the host.

use std::sync::Arc;

use async_trait::async_trait;
use grove_agents::*;
use grove_core::*;
use serde_json::{Value, json};

/// The prompt decides its reports: `tools`, or `work on`.
pub(crate) struct TapeAgent;

struct TapeSession;

#[async_trait]
impl Agent for TapeAgent {
    fn info(&self) -> AgentInfo {
        let model = |id: &str| ModelInfo {
            id: id.into(),
            name: id.to_owned(),
            max_context_window: Some(200_000),
            supports_vision: Some(true),
        };
        AgentInfo {
            id: "tape".into(),
            display_name: "Tape".to_owned(),
            description: "Plays what is recorded".to_owned(),
            models: vec![model("tape/small"), model("tape/large")],
        }
    }

    async fn open(&self, _session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        Ok(Arc::new(TapeSession))
    }

    fn settings(&self) -> Option<SessionConfig> {
        Some(SessionConfig { schema: object(schema()), values: object(json!({"mode": "ask"})) })
    }

    fn edits_files(&self) -> bool {
        true
    }

    fn turn_survival(&self) -> TurnSurvival {
        TurnSurvival::Running
    }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"mode": {"type": "string", "title": "Mode", "enum": ["ask", "plan"]}}})
}

fn object(json: Value) -> Extra {
    json.as_object().cloned().unwrap()
}

/// All lines up to this one have been heard.
fn mark(frame: u64) -> Option<FrameCursor> {
    Some(FrameCursor { process: 1, frame, open: vec![] })
}

#[async_trait]
impl AgentSession for TapeSession {
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        match prompt.message.text.as_str() {
            "tools" => play_tools(&turn).await,
            _ => {
                turn.report(vec![AgentEvent::Text("begun".to_owned())], mark(1)).await?;
                std::future::pending().await
            }
        }
    }

    async fn resume(&self, _prompt: Prompt, from: Resumption, turn: TurnSink) -> Result<(), AgentError> {
        let heard = from.mark.map_or(0, |mark| mark.frame);
        turn.report(vec![AgentEvent::Text(format!(", heard up to {heard}, finished"))], mark(heard + 1)).await
    }

    async fn cancel(&self, _turn: &TurnId) {}
}

async fn play_tools(turn: &TurnSink) -> Result<(), AgentError> {
    let command = AgentCommand { name: "review".into(), description: "Reviews".into(), hint: Some("what".into()) };
    let settings = AgentEvent::AgentSettings { schema: object(schema()), values: object(json!({"mode": "plan"})) };
    let known = AgentEvent::AgentSessionId("conversation-1".to_owned());
    turn.report(vec![known, AgentEvent::Commands(vec![command]), settings], mark(1)).await?;
    let entry = |content: &str, priority, status| PlanEntry { content: content.to_owned(), priority, status };
    let plan = vec![
        entry("look", PlanPriority::High, PlanStatus::Completed),
        entry("change", PlanPriority::Medium, PlanStatus::InProgress),
        entry("test", PlanPriority::Low, PlanStatus::Pending),
    ];
    turn.report(vec![AgentEvent::Plan(plan), AgentEvent::Notice("the window is full".to_owned())], mark(2)).await?;
    let update =
        |stage, output: Option<AccumulatedOutput>| ToolUpdate { stage, output, ..ToolUpdate::of("edit-1".into()) };
    let tool = |update: ToolUpdate| vec![AgentEvent::Tool(Box::new(update))];
    let begins = ToolUpdate {
        name: Some("edit".to_owned()),
        kind: Some(ToolKind::Edit),
        title: Some("Edit a.txt".to_owned()),
        input: Some("{\"path\":\"/a.txt\"}".to_owned()),
        ..update(Some(ToolStage::Running), None)
    };
    turn.report(tool(begins), mark(3)).await?;
    let gave = AccumulatedOutput { text: "half".to_owned(), pieces: vec![] };
    turn.report(tool(update(Some(ToolStage::Running), Some(gave))), mark(4)).await?;
    let restated = ToolUpdate {
        title: Some("Edit a.txt and b.bin".to_owned()),
        extra: Some(object(json!({"locations": [{"path": "/a.txt", "line": 3}]}))),
        ..update(None, None)
    };
    turn.report(tool(restated), mark(5)).await?;
    let edit =
        ToolOutputPart::Edit { path: "/a.txt".into(), before: Some("one\n".into()), after: Some("one\ntwo\n".into()) };
    let bytes = ToolOutputPart::Bytes { mime_type: "image/png".to_owned(), bytes: vec![137, 80, 78, 71] };
    let gave = AccumulatedOutput { text: "whole".to_owned(), pieces: vec![edit, bytes] };
    turn.report(tool(update(Some(ToolStage::Completed), Some(gave))), mark(6)).await?;
    turn.report(vec![AgentEvent::Text("played".to_owned())], mark(7)).await
}
