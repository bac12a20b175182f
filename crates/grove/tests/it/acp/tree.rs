//! The context of an agent after a navigation in the tree: the current branch, and nothing else.

use grove_testkit::acp::{AgentAbilities, RpcError};

use super::*;

/// A session with two turns, and its chat.
async fn told_twice(stage: &Stage) -> (Client, String) {
    let (mut client, chat) = stage.begin().await;
    said(&mut client, &chat, "t1", json!([{"say": "heliotrope"}])).await;
    said(&mut client, &chat, "t2", json!([{"say": "marigold"}])).await;
    (client, chat)
}

/// The entries of a session, as the tree shows them.
async fn rows(client: &mut Client, filter: &str) -> Vec<Value> {
    let tree = client.ask("x-grove/tree", json!({"channel": SESSION, "filter": filter})).await.unwrap();
    tree["rows"].as_array().unwrap().clone()
}

/// The user message that made the agent say this.
async fn message(client: &mut Client, text: &str) -> Value {
    let all = rows(client, "user-only").await;
    let row = all.iter().find(|row| row["text"].as_str().unwrap().contains(text));
    row.unwrap_or_else(|| panic!("{text} in {all:?}"))["id"].clone()
}

/// The earlier conversation that the agent of a chat knows.
async fn knows(client: &mut Client, chat: &str) -> String {
    said(client, chat, "asked", json!(["echo_history"])).await;
    said(client, chat, "asked again", json!(["echo_history", "complaints"])).await
}

#[tokio::test]
async fn after_a_move_an_agent_knows_what_was_said_before_and_not_what_was_left() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = told_twice(&stage).await;
    let entry = message(&mut client, "marigold").await;
    client.ask("x-grove/navigate", json!({"channel": SESSION, "entry": entry})).await.unwrap();
    let known = knows(&mut client, &chat).await;
    assert!(known.contains("<conversation-so-far>") && known.contains("Assistant:\nheliotrope"), "{known}");
    assert!(!known.contains("marigold") && known.ends_with("complaints: none\n"), "{known}");
    // Before the first entry there is nothing to tell.
    client.ask("x-grove/navigate", json!({"channel": SESSION, "entry": null})).await.unwrap();
    let known = knows(&mut client, &chat).await;
    assert!(!known.contains("heliotrope") && !known.contains("<conversation-so-far>"), "{known}");
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_branch_begins_with_what_was_said_before_its_message() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, _) = told_twice(&stage).await;
    let entry = message(&mut client, "marigold").await;
    let branch = client.ask("x-grove/branch", json!({"channel": SESSION, "entry": entry})).await.unwrap();
    let chat = client.follow(branch["session"].as_str().unwrap()).await;
    let known = knows(&mut client, &chat).await;
    assert!(known.contains("Assistant:\nheliotrope") && !known.contains("marigold"), "{known}");
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_fork_begins_with_its_agents_own_copy_where_it_can_make_one() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, source) = told_twice(&stage).await;
    let fork = client.ask("x-grove/fork", json!({"channel": SESSION})).await.unwrap();
    let chat = client.follow(fork["session"].as_str().unwrap()).await;
    said(&mut client, &source, "t3", json!([{"say": "snapdragon"}])).await;
    let known = knows(&mut client, &chat).await;
    assert!(known.contains("agent: heliotrope") && known.contains("agent: marigold"), "it remembers: {known}");
    assert!(!known.contains("<conversation-so-far>") && !known.contains("snapdragon"), "{known}");
    assert!(known.ends_with("complaints: none\n"), "{known}");
    // Each continues separately, and the source knows nothing of the fork.
    let known = said(&mut client, &source, "t4", json!(["echo_history", "complaints"])).await;
    assert!(known.contains("snapdragon") && !known.contains("asked again"), "{known}");
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_fork_whose_copy_lives_on_in_its_agent_is_found_by_the_next_host() {
    let mut stage = Stage::new(AgentBehavior::default());
    let (mut client, _) = told_twice(&stage).await;
    let fork = client.ask("x-grove/fork", json!({"channel": SESSION})).await.unwrap();
    let uri = fork["session"].as_str().unwrap().to_owned();
    client.follow(&uri).await;
    stage.restart();
    let mut client = stage.host().ahp("b").await;
    let chat = client.follow(&uri).await;
    let known = knows(&mut client, &chat).await;
    assert!(known.contains("agent: marigold") && !known.contains("<conversation-so-far>"), "{known}");
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_fork_is_told_what_was_said_where_its_agent_can_make_no_copy() {
    let fault = RpcError { code: -32603, message: "no room".to_owned(), data: None };
    let refuses = [("session/fork".to_owned(), fault)].into();
    let cannot =
        AgentBehavior { can: AgentAbilities { fork: false, ..AgentAbilities::default() }, ..AgentBehavior::default() };
    for behavior in [cannot, AgentBehavior { refuses, ..AgentBehavior::default() }] {
        let stage = Stage::new(behavior);
        let (mut client, _) = told_twice(&stage).await;
        let fork = client.ask("x-grove/fork", json!({"channel": SESSION})).await.unwrap();
        let chat = client.follow(fork["session"].as_str().unwrap()).await;
        let known = knows(&mut client, &chat).await;
        assert!(known.contains("Assistant:\nheliotrope") && known.contains("Assistant:\nmarigold"), "{known}");
        client.must_agree_on_all().await;
    }
}

#[tokio::test]
async fn an_agent_that_forgot_is_told_results_and_summaries_as_the_log_has_them() {
    let mut stage = Stage::new(AgentBehavior { can: AgentAbilities::NOTHING, ..AgentBehavior::default() });
    let (mut client, chat) = stage.begin().await;
    let tool = json!({"title": "cat notes", "output": "what the tool gave"});
    said(&mut client, &chat, "t1", json!([{"tool": tool}, {"say": "heliotrope"}])).await;
    stage.host.take().unwrap().stop();
    // Another program has continued it meanwhile.
    let log = stage.place.data().join("session-state").join(ID).join("events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let last = serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap()["id"].clone();
    let lines = [
        json!({"type": "custom_message", "id": "aaaa0001", "parentId": last, "timestamp": "2026-01-02T03:04:05.000Z",
            "customType": "note", "content": "a note of an extension", "display": true}),
        json!({"type": "branch_summary", "id": "aaaa0002", "parentId": "aaaa0001", "timestamp": "2026-01-02T03:04:05.000Z",
            "fromId": "root", "summary": "the branch led nowhere"}),
    ];
    std::fs::write(&log, text.clone() + &lines.map(|line| format!("{line}\n")).concat()).unwrap();
    stage.host = Some(serve(&stage.place, &stage.args));
    let mut client = stage.host().ahp("b").await;
    client.follow(SESSION).await;
    let known = knows(&mut client, &chat).await;
    for told in ["heliotrope", "what the tool gave", "a note of an extension", "the branch led nowhere"] {
        assert!(known.contains(told), "{told}: {known}");
    }
    client.must_agree_on_all().await;
}
