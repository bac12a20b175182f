//! Requests of agents to the host.

use grove_agents::CloseReason;
use grove_agents::acp::FileScope;
use grove_core::{Decision, PermissionKind};
use grove_testkit::acp::AgentBehavior;
use serde_json::json;

use crate::fixture::{AgentFixture, approved, is_alive};

#[tokio::test]
async fn files_are_read_and_written_inside_the_working_directory_alone() {
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    fixture.program.files = FileScope::Workspace;
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

#[tokio::test]
async fn a_file_outside_the_working_directory_is_used_after_a_person_approved_it() {
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    let (outside, private) = (fixture.root().join("b.txt"), fixture.root().join("private"));
    std::fs::create_dir(&private).unwrap();
    std::fs::write(private.join("token"), "hunter2").unwrap();
    std::fs::write(&outside, "plan").unwrap();
    fixture.options.private = vec![private.clone()];
    let mut session = fixture.open().await;
    let steps = json!([
        {"read": {"path": outside}},
        {"read": {"path": outside}},
        {"write": {"path": outside, "content": "new"}},
        {"read": {"path": private.join("token")}},
        {"write": {"path": private.join("token"), "content": "x"}},
        {"read": {"path": "/proc/self/environ"}},
        {"read": {"path": fixture.work.join("none")}},
        "complaints",
    ]);
    let running = session.start("t", &steps);
    for (kind, answer) in [
        (PermissionKind::Read, approved()),
        (PermissionKind::Read, Decision::Denied.into()),
        (PermissionKind::Write, approved()),
    ] {
        session.until("it asks", |stored| stored.asked.len() == 1).await;
        let asked = session.stored.asked.remove(0);
        assert_eq!((asked.request.kind, asked.request.path), (kind, Some(outside.display().to_string())));
        asked.answer.send(answer).unwrap();
    }
    session.end(running).await.unwrap();
    let text = &session.stored.text;
    assert_eq!(text.matches("read: plan").count(), 1, "{text}");
    assert!(text.contains("the person denied it") && text.contains("write: done"), "{text}");
    assert!(
        !text.contains("hunter2") && text.matches("error -32602").count() == 4,
        "Grove's own files stay closed: {text}"
    );
    assert!(session.stored.asked.is_empty(), "and nobody is asked for them");
    assert!(text.contains("error -32002") && text.contains("complaints: none"), "{text}");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "new");
    assert_eq!(std::fs::read_to_string(private.join("token")).unwrap(), "hunter2");
    session.agent.close(CloseReason::Removed).await;

    fixture.program.files = FileScope::All;
    let mut session = fixture.open_in(&fixture.pool(), "s2", None).await;
    session.turn("t", json!([{"read": {"path": outside}}, {"read": {"path": private.join("token")}}])).await.unwrap();
    let text = &session.stored.text;
    assert!(text.contains("read: new") && !text.contains("hunter2") && session.stored.asked.is_empty(), "{text}");
    session.agent.close(CloseReason::Removed).await;
}
