//! Turns, and how clients see them.

use std::collections::BTreeSet;

use grove_testkit::Client;
use grove_wire::v1::{ActionType, Lifecycle, ResponsePart, SessionStatus, TurnState};
use serde_json::{Value, json};

use crate::support::*;

fn markdown(content: &str) -> ResponsePart {
    ResponsePart::Markdown { content: content.to_owned() }
}

/// The contents of received deltas of this type.
fn contents(client: &Client, kind: &str) -> Vec<String> {
    let actions = client.envelopes.iter().map(action_of).filter(|action| action["type"] == kind);
    actions.map(|action| action["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn text_is_streamed_in_as_many_deltas_as_there_are_chunks() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let turn = client.run_script(S, "t", json!([{"say": "abcdefg", "chunks": 3}, {"say": "ä€", "chunks": 2}])).await;
    assert_eq!(contents(&client, "session/delta"), ["ab", "cd", "efg", "ä", "€"]);
    assert_eq!(turn.response_parts, [markdown("abcdefgä€")], "what was streamed is one part");
    assert_eq!((turn.state, turn.error, turn.usage), (TurnState::Complete, None, None));
    assert_eq!(host.snapshot(S).await, *client.session(S));
}

#[tokio::test]
async fn chunks_with_a_delay_come_one_by_one() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.run_script(S, "t", json!([{"say": "abc", "chunks": 3, "delayMs": 60}])).await;
    assert_eq!(contents(&client, "session/delta"), ["a", "b", "c"]);
}

#[tokio::test]
async fn every_subscriber_sees_the_same_actions_in_the_same_order() {
    let host = Host::start();
    let mut speaker = host.client_with_session("speaker").await;
    let mut others = Vec::new();
    for n in 0..4 {
        others.push(host.subscriber(&format!("other-{n}")).await);
    }
    speaker.envelopes.clear();
    speaker.run_script(S, "t", json!([{"say": "x".repeat(500), "chunks": 500}, {"reason": "because"}])).await;
    let told: Vec<Value> = speaker.envelopes.iter().map(envelope_json).collect();
    for other in &mut others {
        other.turn_end(S, "t").await;
        assert_eq!(other.envelopes.iter().map(envelope_json).collect::<Vec<_>>(), told);
        assert_eq!(other.session(S), speaker.session(S));
    }
}

#[tokio::test]
async fn an_action_carries_its_session_its_origin_and_a_number_of_its_own() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut other = host.subscriber("b").await;
    let seq = client.script(S, "t", json!([{"say": "hello"}])).await;
    let echo = client.answer_to(seq).await;
    other.turn_end(S, "t").await;
    let seen = other.envelopes.iter().map(envelope_json).collect::<Vec<_>>();
    assert_eq!(seen[0], envelope_json(&echo), "the same for everybody");
    assert_eq!(seen[0]["origin"], json!({"clientId": "a", "clientSeq": seq}));
    assert_eq!(seen[0]["action"]["userMessage"]["text"], r#"script:[{"say":"hello"}]"#);
    assert!(seen[0]["action"]["timestamp"].is_u64());
    for envelope in &seen[1..] {
        assert_eq!(envelope.get("origin"), None, "what the agent does has no origin: {envelope}");
    }
    assert!(seen.iter().all(|envelope| envelope["action"]["session"] == S));
}

#[tokio::test]
async fn a_turn_is_active_until_it_ends_and_the_summary_follows() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let created = client.session(S).summary.clone();
    client.script(S, "t", json!([{"reason": "hm"}, {"say": "so far"}, {"hang": true}])).await;
    client.streamed(S, "so far").await;
    let active = client.active(S);
    assert_eq!((active.id.as_str(), active.reasoning.as_str()), ("t", "hm"));
    assert_eq!(client.session(S).summary.status, SessionStatus::InProgress);
    assert_eq!(host.snapshot(S).await, *client.session(S), "a newcomer sees the turn as far as it got");
    client.cancel(S, "t").await;
    client.turn_end(S, "t").await;
    let summary = client.session(S).summary.clone();
    assert_eq!((summary.status, client.session(S).active_turn.is_none()), (SessionStatus::Idle, true));
    assert_eq!(summary.created_at, created.created_at);
    assert!(summary.modified_at >= created.modified_at);
    assert_eq!(client.get("listSessions", json!({})).await["sessions"][0], serde_json::to_value(summary).unwrap());
}

#[tokio::test]
async fn reasoning_is_streamed_beside_the_text_and_not_part_of_the_finished_turn() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let steps = json!([{"reason": "first "}, {"say": "text"}, {"reason": "then"}]);
    let turn = client.run_script(S, "t", steps).await;
    assert_eq!(contents(&client, "session/reasoning"), ["first ", "then"]);
    assert_eq!(turn.response_parts, [markdown("text")]);
}

#[tokio::test]
async fn structured_parts_follow_the_streamed_text_in_their_own_order() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let part = |text: &str| json!({"part": {"mimeType": "text/markdown", "text": text}});
    let turn = client.run_script(S, "t", json!([part("one"), {"say": "a"}, part("two"), {"say": "b"}])).await;
    assert_eq!(turn.response_parts, [markdown("ab"), markdown("one"), markdown("two")]);
    let parts = client.kinds().into_iter().filter(|kind| kind == "session/responsePart").count();
    assert_eq!(parts, 2);
    assert_eq!(host.snapshot(S).await, *client.session(S));
}

#[tokio::test]
async fn usage_is_the_turns_and_the_last_report_holds() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let steps =
        json!([{"usage": {"inputTokens": 1, "outputTokens": 2}}, {"usage": {"inputTokens": 30, "outputTokens": 40}}]);
    let turn = client.run_script(S, "t", steps).await;
    assert_eq!(serde_json::to_value(turn.usage).unwrap(), json!({"inputTokens": 30, "outputTokens": 40}));
    assert_eq!(client.kinds().iter().filter(|kind| *kind == "session/usage").count(), 2);
}

#[tokio::test]
async fn a_title_reaches_the_summary_and_the_list() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.run_script(S, "t", json!([{"title": "What it is about"}])).await;
    assert_eq!(client.session(S).summary.title, "What it is about");
    assert_eq!(client.get("listSessions", json!({})).await["sessions"][0]["title"], "What it is about");
    assert!(client.envelopes.iter().any(|envelope| kind_of(envelope) == "session/titleChanged"));
}

#[tokio::test]
async fn a_question_to_the_person_is_not_seen_and_the_turn_stays_in_progress() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.envelopes.clear();
    client.script(S, "t", json!([{"say": "before"}, {"ask": "Which one?"}, {"say": "after"}])).await;
    client.streamed(S, "before").await;
    let listed = client.get("listSessions", json!({"filter": {"status": "in-progress"}})).await;
    assert_eq!(listed["sessions"][0]["resource"], S);
    client.cancel(S, "t").await;
    let turn = client.turn_end(S, "t").await;
    assert_eq!((turn.state, turn.response_parts), (TurnState::Cancelled, vec![markdown("before")]));
    client.barrier().await;
    assert_eq!(client.kinds(), ["session/turnStarted", "session/delta", "session/turnCancelled"]);
    assert_eq!(host.snapshot(S).await, *client.session(S));
}

#[tokio::test]
async fn a_failure_of_the_agent_ends_the_turn_in_error_and_the_next_one_runs() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let turn = client.run_script(S, "t", json!([{"say": "so far"}, {"fail": "it broke"}, {"say": "never"}])).await;
    assert_eq!(turn.state, TurnState::Error);
    assert_eq!(turn.error.unwrap().message, "it broke");
    assert_eq!(turn.response_parts, [markdown("so far")], "what was said stays");
    assert_eq!(client.session(S).summary.status, SessionStatus::Error);
    assert_eq!(client.kinds().last().map(String::as_str), Some("session/error"));
    assert_eq!(host.snapshot(S).await, *client.session(S));
    let next = client.run_script(S, "u", json!([{"say": "fine"}])).await;
    assert_eq!((next.state, client.session(S).summary.status), (TurnState::Complete, SessionStatus::Idle));
}

#[tokio::test]
async fn a_script_that_cannot_be_read_ends_the_turn_in_error_and_says_where() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let bad = [
        ("script:[{]", "line 1"),
        ("script:", "EOF"),
        (r#"script:[{"say":"a"},{"shout":"b"}]"#, "shout"),
        (r#"script:[{"say":"a"},{}]"#, "step 2"),
    ];
    for (n, (text, problem)) in bad.into_iter().enumerate() {
        let id = format!("t{n}");
        client.start_turn(S, &id, text).await;
        let turn = client.turn_end(S, &id).await;
        assert_eq!((turn.state, turn.response_parts.len()), (TurnState::Error, 0), "{text}");
        let error = turn.error.unwrap();
        assert_eq!(error.error_type, "script");
        assert!(error.message.contains(problem), "{text}: {}", error.message);
    }
}

#[tokio::test]
async fn cancelling_ends_a_turn_that_would_never_end() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut other = host.subscriber("b").await;
    client.script(S, "t", json!([{"say": "on and on"}, {"hang": true}])).await;
    other.streamed(S, "on and on").await;
    let seq = other.cancel(S, "t").await;
    assert_eq!(other.answer_to(seq).await.rejection_reason, None, "anybody may cancel");
    let turn = client.turn_end(S, "t").await;
    assert_eq!((turn.state, turn.response_parts), (TurnState::Cancelled, vec![markdown("on and on")]));
    let origin = client.envelopes.last().unwrap().origin.as_ref();
    assert_eq!(origin.map(|origin| (origin.client_id.as_str(), origin.client_seq)), Some(("b", seq)));
    assert_eq!(host.snapshot(S).await, *client.session(S));
    let next = client.run_script(S, "u", json!([{"say": "fine"}])).await;
    assert_eq!(next.state, TurnState::Complete);
}

#[tokio::test]
async fn attachments_travel_with_the_message() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let attachments = json!([
        {"type": "file", "path": "/a/b.rs"},
        {"type": "directory", "path": "/a", "displayName": "A"},
        {"type": "selection", "path": "/a/b.rs", "displayName": "lines 1 to 3"},
    ]);
    let message = json!({"text": "script:[]", "attachments": attachments});
    client.dispatch(json!({"type": "session/turnStarted", "session": S, "turnId": "t", "userMessage": message})).await;
    let turn = client.turn_end(S, "t").await;
    assert_eq!(serde_json::to_value(&turn.user_message).unwrap(), message);
    assert_eq!(host.snapshot(S).await, *client.session(S));
}

#[tokio::test]
async fn any_other_text_is_answered_by_a_conversation_that_asks_for_permission() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.start_turn(S, "t", "Tell me about this project").await;
    let request = client.asked(S).await;
    client.approve(S, "t", &request).await;
    let turn = client.turn_end(S, "t").await;
    assert_eq!((turn.state, turn.tool_calls[0].success), (TurnState::Complete, true));
    assert_eq!(client.session(S).summary.title, "Tell me about this project");
    assert!(turn.usage.is_some());
    assert_eq!(host.snapshot(S).await, *client.session(S));
}

#[tokio::test]
async fn a_changed_model_applies_and_one_that_the_agent_does_not_list_is_rejected() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut other = host.subscriber("b").await;
    assert_eq!(client.session(S).summary.model, None);
    let change = |model: &str| json!({"type": "session/modelChanged", "session": S, "model": model});
    let seq = client.dispatch(change("scripted/slow-start")).await;
    assert_eq!(client.answer_to(seq).await.rejection_reason, None);
    other.until(|other| other.session(S).summary.model.as_deref() == Some("scripted/slow-start")).await;
    let reason = client.rejected(change("scripted/none-such")).await;
    assert!(reason.contains("scripted/none-such"), "{reason}");
    assert_eq!(host.snapshot(S).await.summary.model.as_deref(), Some("scripted/slow-start"));
    assert_eq!(client.get("listSessions", json!({})).await["sessions"][0]["model"], "scripted/slow-start");
    client.script(S, "t", json!([{"hang": true}])).await;
    let seq = client.dispatch(change("scripted")).await;
    assert_eq!(client.answer_to(seq).await.rejection_reason, None, "also while a turn runs");
}

#[tokio::test]
async fn a_turn_without_a_word_for_longer_than_allowed_ends_in_error() {
    let host = TestHome::new().serve(&["--turn-silence", "1"]);
    let mut client = host.client_with_session("a").await;
    let turn = client.run_script(S, "t", json!([{"say": "a"}, {"hang": true}])).await;
    assert_eq!((turn.state, turn.error.unwrap().error_type), (TurnState::Error, "agentSilent".to_owned()));
    // A turn that waits for a person is not silent: another turn falls silent and ends meanwhile, and this one waits
    // on.
    client.ready_session("scripted:/other").await;
    client.script(S, "u", json!([{"tool": {"name": "rm", "permission": "shell"}}, {"sleepMs": 50}])).await;
    client.asked(S).await;
    let turn = client.run_script("scripted:/other", "t", json!([{"hang": true}])).await;
    assert_eq!(turn.error.unwrap().error_type, "agentSilent");
    client.approve(S, "u", "u-permission-0").await;
    assert_eq!(client.turn_end(S, "u").await.state, TurnState::Complete);
}

#[tokio::test]
async fn every_action_type_reaches_a_client() {
    let host = Host::start();
    let mut client = host.connect("a").await;
    client.initialize(&["agenthost:root"]).await;
    client.get("createSession", json!({"session": S, "model": "scripted/slow-start"})).await;
    client.subscribe(S).await.unwrap();
    client.until(|client| client.session(S).lifecycle == Lifecycle::Ready).await;
    client.dispatch(json!({"type": "session/modelChanged", "session": S, "model": "scripted"})).await;
    client
        .script(
            S,
            "t",
            json!([
                {"title": "All there is"}, {"reason": "r"}, {"say": "s"},
                {"part": {"mimeType": "text/plain", "text": "p"}},
                {"tool": {"name": "shell", "input": "ls", "output": "o", "permission": "shell"}},
                {"usage": {"inputTokens": 1}},
            ]),
        )
        .await;
    client.asked(S).await;
    client.approve(S, "t", "t-permission-4").await;
    client.turn_end(S, "t").await;
    client.run_script(S, "u", json!([{"fail": "f"}])).await;
    client.script(S, "v", json!([{"hang": true}])).await;
    client.cancel(S, "v").await;
    client.turn_end(S, "v").await;
    client.get("createSession", json!({"session": "scripted:/f", "model": "scripted/fails-to-start"})).await;
    client.subscribe("scripted:/f").await.unwrap();
    client.until(|client| client.session("scripted:/f").lifecycle == Lifecycle::CreationFailed).await;
    let accepted = client.envelopes.iter().filter(|envelope| envelope.rejection_reason.is_none());
    let mut seen: BTreeSet<String> = accepted.map(kind_of).collect();

    // The agents of this program exist before its first client, and do not change: the replay contains them.
    drop(client);
    let mut again = host.connect("a").await;
    let params = json!({"clientId": "a", "lastSeenServerSeq": 0, "subscriptions": ["agenthost:root"]});
    let result = again.get("reconnect", params).await;
    assert_eq!(result["type"], "replay");
    let agents = &result["actions"][0]["action"];
    assert_eq!(agents["type"], "root/agentsChanged");
    assert_eq!(agents["agents"][0]["provider"], "scripted");
    assert_eq!(result["actions"].as_array().unwrap().len(), 1);
    seen.insert(agents["type"].as_str().unwrap().to_owned());

    let all: BTreeSet<String> = ActionType::ALL.iter().map(|kind| kind.as_str().to_owned()).collect();
    assert_eq!(all.len(), 17);
    assert_eq!(seen, all);
}
