//! Summaries that an agent writes.

use std::sync::Arc;

use grove_agents::acp::ProcessPool;
use grove_agents::*;
use grove_testkit::acp::{AgentBehavior, prompt};
use serde_json::{Value, json};

use crate::fixture::{AgentFixture, after, until};

async fn summary(fixture: &AgentFixture, pool: &Arc<ProcessPool>, steps: &Value) -> Result<String, AgentError> {
    fixture.agent(pool).summarizer().expect("it has one").summarize(wanted(fixture, steps)).await
}

fn wanted(fixture: &AgentFixture, steps: &Value) -> SummaryRequest {
    SummaryRequest {
        prompt: prompt(steps),
        instructions: None,
        model: Some("large".into()),
        working_directories: vec![fixture.work.display().to_string()],
        settings: json!({"mode": "everything", "effort": "low"}).as_object().cloned().unwrap(),
    }
}

fn count(fixture: &AgentFixture, folder: &str) -> usize {
    std::fs::read_dir(fixture.root().join(folder)).map_or(0, Iterator::count)
}

/// Waits until no process and no folder is left.
async fn it_is_gone(fixture: &AgentFixture, pool: &Arc<ProcessPool>) {
    until("its process is gone", || pool.running() == 0).await;
    until("its folder is gone", || count(fixture, "shims") == 0).await;
}

/// Waits until no session of the agent is left, either.
async fn nothing_is_left(fixture: &AgentFixture, pool: &Arc<ProcessPool>) {
    it_is_gone(fixture, pool).await;
    assert_eq!(count(fixture, "store"), 0, "its session is gone");
}

#[tokio::test]
async fn a_summary_is_what_the_agent_answers_with_the_sessions_model() {
    let effort = json!({"id": "effort", "name": "Effort", "type": "select", "currentValue": "high",
        "options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]});
    let fixture = AgentFixture::new(AgentBehavior {
        modes: vec!["ask".into(), "everything".into()],
        models: vec!["small".into(), "large".into()],
        options: vec![effort],
        ..AgentBehavior::default()
    });
    let pool = fixture.pool();
    let steps =
        json!([{"think": "hm"}, {"say": "\n## Goal\n"}, {"say": "To be brief.\n"}, "settings", "cwd", "complaints"]);
    let summary = summary(&fixture, &pool, &steps).await.unwrap();
    assert!(summary.starts_with("## Goal\nTo be brief.") && summary.ends_with("complaints: none"), "{summary}");
    assert!(summary.contains("\"model\":\"large\"") && summary.contains("\"effort\":\"low\""), "{summary}");
    assert!(summary.contains("\"mode\":\"ask\""), "a mode that allows more is not for it: {summary}");
    assert!(summary.contains(&fixture.work.display().to_string()), "{summary}");
    nothing_is_left(&fixture, &pool).await;
}

#[tokio::test]
async fn whoever_summarizes_may_do_nothing() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let pool = fixture.pool();
    let file = fixture.work.join("made.txt");
    std::fs::write(fixture.work.join("read.txt"), "secret").unwrap();
    let steps = json!([
        "client",
        {"ask": {"tool_call": {"toolCallId": "c", "title": "touch x"}}},
        {"read": {"path": fixture.work.join("read.txt")}},
        {"write": {"path": file, "content": "c"}},
        {"terminal": {"create": {"command": "touch", "args": [file]}}},
        {"elicit": {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}},
        {"say": "the gist"},
    ]);
    let summary = summary(&fixture, &pool, &steps).await.unwrap();
    assert!(summary.ends_with("the gist"), "{summary}");
    assert!(after(&summary, "permission: ").starts_with("reject"), "{summary}");
    assert_eq!(summary.matches("-32601").count(), 4, "{summary}");
    assert!(!file.exists() && !summary.contains("secret"), "{summary}");
    nothing_is_left(&fixture, &pool).await;
}

#[tokio::test]
async fn an_answer_without_words_is_no_summary() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let pool = fixture.pool();
    for steps in [json!([]), json!([{"think": "hm"}, {"say": " \n"}])] {
        let error = summary(&fixture, &pool, &steps).await.unwrap_err().to_string();
        assert!(error.contains("Scripted gave no summary"), "{error}");
    }
    nothing_is_left(&fixture, &pool).await;
}

#[tokio::test]
async fn a_summary_that_does_not_end_is_cut() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let pool = fixture.pool();
    let steps = json!([{"say": {"text": "größe ", "repeat": 20_000, "chunks": 1_000}}, "hang"]);
    let summary = summary(&fixture, &pool, &steps).await.unwrap();
    assert!((60 << 10..=64 << 10).contains(&summary.len()), "{}", summary.len());
    it_is_gone(&fixture, &pool).await;
}

#[tokio::test]
async fn an_agent_that_dies_in_the_middle_fails_the_summary() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let pool = fixture.pool();
    let steps = json!([{"say": "half of it"}, {"stderr": "out of luck"}, {"crash": {"code": 7}}]);
    let error = summary(&fixture, &pool, &steps).await.unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, AgentError::Died(_)) && told.contains("code 7") && told.contains("out of luck"), "{told}");
    it_is_gone(&fixture, &pool).await;
}

#[tokio::test]
async fn a_summary_that_nobody_waits_for_ends_its_process() {
    let fixture = AgentFixture::new(AgentBehavior {
        ignores_cancel: true,
        ignores_stdin_close: true,
        ..AgentBehavior::default()
    });
    let pool = fixture.pool();
    let steps = json!([{"sleep": 60_000}]);
    let summarizer = fixture.agent(&pool).summarizer().unwrap();
    let request = wanted(&fixture, &steps);
    let waiting = tokio::spawn(async move { summarizer.summarize(request).await });
    until("it runs", || pool.running() == 1).await;
    until("its turn runs", || count(&fixture, "store") == 1).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    it_is_gone(&fixture, &pool).await;
}
