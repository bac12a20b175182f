//! Summaries that an agent writes.

use std::sync::Arc;

use grove_agents::acp::Fleet;
use grove_agents::*;
use grove_testkit::acp::{Character, prompt};
use serde_json::{Value, json};

use crate::place::{Place, after, until};

async fn summary(place: &Place, fleet: &Arc<Fleet>, steps: &Value) -> Result<String, AgentError> {
    place.agent(fleet).summarizer().expect("it has one").summarize(wanted(place, steps)).await
}

fn wanted(place: &Place, steps: &Value) -> SummaryRequest {
    SummaryRequest {
        prompt: prompt(steps),
        instructions: None,
        model: Some("large".into()),
        working_directories: vec![place.work.display().to_string()],
        settings: json!({"mode": "everything", "effort": "low"}).as_object().cloned().unwrap(),
    }
}

fn count(place: &Place, folder: &str) -> usize {
    std::fs::read_dir(place.root().join(folder)).map_or(0, Iterator::count)
}

/// No process and no folder is left.
async fn it_is_gone(place: &Place, fleet: &Arc<Fleet>) {
    until("its process is gone", || fleet.running() == 0).await;
    until("its folder is gone", || count(place, "shims") == 0).await;
}

/// Nor is a session of the agent's own.
async fn nothing_is_left(place: &Place, fleet: &Arc<Fleet>) {
    it_is_gone(place, fleet).await;
    assert_eq!(count(place, "store"), 0, "its session is gone");
}

#[tokio::test]
async fn a_summary_is_what_the_agent_answers_with_the_sessions_model() {
    let effort = json!({"id": "effort", "name": "Effort", "type": "select", "currentValue": "high",
        "options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]});
    let place = Place::new(Character {
        modes: vec!["ask".into(), "everything".into()],
        models: vec!["small".into(), "large".into()],
        options: vec![effort],
        ..Character::default()
    });
    let fleet = place.fleet();
    let steps =
        json!([{"think": "hm"}, {"say": "\n## Goal\n"}, {"say": "To be brief.\n"}, "settings", "cwd", "complaints"]);
    let summary = summary(&place, &fleet, &steps).await.unwrap();
    assert!(summary.starts_with("## Goal\nTo be brief.") && summary.ends_with("complaints: none"), "{summary}");
    assert!(summary.contains("\"model\":\"large\"") && summary.contains("\"effort\":\"low\""), "{summary}");
    assert!(summary.contains("\"mode\":\"ask\""), "a mode that allows more is not for it: {summary}");
    assert!(summary.contains(&place.work.display().to_string()), "{summary}");
    nothing_is_left(&place, &fleet).await;
}

#[tokio::test]
async fn whoever_summarizes_may_do_nothing() {
    let place = Place::new(Character::default());
    let fleet = place.fleet();
    let file = place.work.join("made.txt");
    std::fs::write(place.work.join("read.txt"), "secret").unwrap();
    let steps = json!([
        "client",
        {"ask": {"tool_call": {"toolCallId": "c", "title": "touch x"}}},
        {"read": {"path": place.work.join("read.txt")}},
        {"write": {"path": file, "content": "c"}},
        {"terminal": {"create": {"command": "touch", "args": [file]}}},
        {"elicit": {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}},
        {"say": "the gist"},
    ]);
    let summary = summary(&place, &fleet, &steps).await.unwrap();
    assert!(summary.ends_with("the gist"), "{summary}");
    assert!(after(&summary, "permission: ").starts_with("reject"), "{summary}");
    assert_eq!(summary.matches("-32601").count(), 4, "{summary}");
    assert!(!file.exists() && !summary.contains("secret"), "{summary}");
    nothing_is_left(&place, &fleet).await;
}

#[tokio::test]
async fn an_answer_without_words_is_no_summary() {
    let place = Place::new(Character::default());
    let fleet = place.fleet();
    for steps in [json!([]), json!([{"think": "hm"}, {"say": " \n"}])] {
        let error = summary(&place, &fleet, &steps).await.unwrap_err().to_string();
        assert!(error.contains("Scripted gave no summary"), "{error}");
    }
    nothing_is_left(&place, &fleet).await;
}

#[tokio::test]
async fn a_summary_that_does_not_end_is_cut() {
    let place = Place::new(Character::default());
    let fleet = place.fleet();
    let steps = json!([{"say": {"text": "größe ", "repeat": 20_000, "chunks": 1_000}}, "hang"]);
    let summary = summary(&place, &fleet, &steps).await.unwrap();
    assert!((60 << 10..=64 << 10).contains(&summary.len()), "{}", summary.len());
    it_is_gone(&place, &fleet).await;
}

#[tokio::test]
async fn an_agent_that_dies_in_the_middle_fails_the_summary() {
    let place = Place::new(Character::default());
    let fleet = place.fleet();
    let steps = json!([{"say": "half of it"}, {"stderr": "out of luck"}, {"crash": {"code": 7}}]);
    let error = summary(&place, &fleet, &steps).await.unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, AgentError::Died(_)) && told.contains("code 7") && told.contains("out of luck"), "{told}");
    it_is_gone(&place, &fleet).await;
}

#[tokio::test]
async fn a_summary_that_nobody_waits_for_ends_its_process() {
    let place = Place::new(Character { ignores_cancel: true, ignores_stdin_close: true, ..Character::default() });
    let fleet = place.fleet();
    let steps = json!([{"sleep": 60_000}]);
    let summarizer = place.agent(&fleet).summarizer().unwrap();
    let request = wanted(&place, &steps);
    let waiting = tokio::spawn(async move { summarizer.summarize(request).await });
    until("it runs", || fleet.running() == 1).await;
    until("its turn runs", || count(&place, "store") == 1).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    it_is_gone(&place, &fleet).await;
}
