//! Requests of agents to the host.

use grove_agents::CloseReason;
use grove_testkit::acp::AgentBehavior;
use serde_json::json;

use crate::fixture::{AgentFixture, is_alive};

#[tokio::test]
async fn files_are_read_and_written_inside_the_working_directory_alone() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut session = fixture.open().await;
    let (inside, outside) = (fixture.work.join("new/a.txt"), fixture.root().join("b.txt"));
    std::fs::write(&outside, "secret").unwrap();
    let steps = json!([
        {"write": {"path": inside, "content": "one\ntwo\n"}},
        {"read": {"path": inside, "line": 2}},
        {"read": {"path": outside}},
        {"write": {"path": outside, "content": "x"}},
        {"read": {"path": fixture.work.join("none")}},
        "complaints",
    ]);
    session.turn("t", steps).await.unwrap();
    let text = &session.stored.text;
    assert!(text.contains("read: two") && !text.contains("secret"), "{text}");
    assert!(text.contains("error -32602") && text.contains("error -32002"), "{text}");
    assert!(text.contains("complaints: none"), "{text}");
    assert_eq!(std::fs::read_to_string(&inside).unwrap(), "one\ntwo\n");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "secret");
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn commands_run_on_terminals_and_end_with_their_turn() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut session = fixture.open().await;
    let run = |command: &str| json!({"command": "sh", "args": ["-c", command]});
    let steps = json!([
        {"terminal": {"create": run("test -t 1 && echo on a terminal")}},
        {"terminal": {"create": run("echo killed soon; sleep 600"), "kill_after_ms": 200}},
        {"terminal": {"create": run("sleep 600 & echo $! > left"), "leave": true}},
        {"request": {"method": "terminal/output", "params": {"sessionId": "another", "terminalId": "x"}}},
        {"sleep": 200},
        "complaints",
    ]);
    session.turn("t", steps).await.unwrap();
    let text = session.stored.text.clone();
    assert!(text.contains("on a terminal") && text.contains("killed soon"), "{text}");
    assert!(text.contains("-32602") && text.contains("complaints: none"), "{text}");
    let left = std::fs::read_to_string(fixture.work.join("left")).unwrap();
    crate::fixture::until("what was left is ended", || !is_alive(&left)).await;
    session.agent.close(CloseReason::Removed).await;
}
