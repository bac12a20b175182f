//! Hosts that end in the middle of a turn, and the hosts that follow.

use grove_agents::*;
use grove_core::*;
use grove_testkit::acp::AgentBehavior;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::fixture::{
    AgentFixture, DEADLINE, StoredReports, TestSession, after, approved, is_alive, parent_of, until, until_idle,
};

/// Starts another host with the first one's stored reports.
async fn next_host(fixture: &AgentFixture, stored: &StoredReports) -> TestSession {
    fixture.open_in(&fixture.pool(), "s", stored.agent_session_id.last().cloned()).await
}

fn resumption(mark: Option<FrameCursor>) -> Resumption {
    Resumption { waiting: Vec::new(), mark }
}

/// Says the numbers up to `most`, slowly enough to be interrupted.
fn numbers(most: usize) -> Value {
    let says = (0..most).map(|n| json!({"say": {"text": format!("{n} ")}}));
    says.flat_map(|say| [say, json!({"sleep": 5})]).collect()
}

fn expected(most: usize) -> String {
    (0..most).map(|n| format!("{n} ")).collect()
}

#[tokio::test]
async fn a_turn_goes_on_with_the_next_host_and_nothing_is_lost_or_said_twice() {
    for (cut, forgets) in [(1, true), (20, true), (20, false), (59, true)] {
        let fixture = AgentFixture::new(AgentBehavior::default());
        let mut first = fixture.open().await;
        first.stored.forgets = forgets;
        first.turn("t0", json!([{"say": "before "}])).await.unwrap();
        let running = first.start("t1", &numbers(60));
        let seen = format!("{cut} ");
        first.until("it runs", |stored| stored.text.ends_with(&seen)).await;
        let stored = first.kill(&running);
        let mut second = next_host(&fixture, &stored).await;
        second.stored.text = stored.text;
        let running = second.resume("t1", resumption(stored.mark));
        second.end(running).await.unwrap();
        assert_eq!(second.stored.text, format!("before {}", expected(60)), "cut after {cut}");
        assert!(second.stored.agent_session_id.is_empty(), "it is the same conversation");
        second.turn("t2", json!(["complaints"])).await.unwrap();
        assert!(second.stored.text.ends_with("complaints: none\n"), "{}", second.stored.text);
        second.agent.close(CloseReason::Removed).await;
    }
}

#[tokio::test]
async fn a_turn_outlives_one_host_after_another() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut session = fixture.open().await;
    let mut running = session.start("t1", &numbers(150));
    for host in 1..10_usize {
        let seen = host * 40;
        session.until("it runs", |stored| stored.text.len() > seen).await;
        let stored = session.kill(&running);
        session = next_host(&fixture, &stored).await;
        session.stored.text = stored.text;
        session.stored.agent_session_id = stored.agent_session_id;
        // Not every host gets to tell the shim what is stored.
        session.stored.forgets = host % 2 == 0;
        running = session.resume("t1", resumption(stored.mark));
    }
    session.end(running).await.unwrap();
    assert_eq!(session.stored.text, expected(150));
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_turn_whose_first_words_were_not_stored_is_heard_from_its_beginning() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut first = fixture.open().await;
    // Its mark belongs to another process than the attached one.
    first.turn("t0", json!([{"say": "old"}, {"crash": {"code": 1}}])).await.unwrap_err();
    let old = first.stored.mark.clone();
    first.turn("t1", json!([{"say": "older"}])).await.unwrap();
    for (turn, mark) in [("t2", old), ("t3", first.stored.mark.clone()), ("t4", None)] {
        first.stored.forgets = false;
        let running = first.start(turn, &json!([{"say": "a"}, {"say": "b"}, "hang"]));
        first.stored.text.clear();
        first.until("it runs", |stored| stored.text == "ab").await;
        let stored = first.kill(&running);
        let mut second = next_host(&fixture, &stored).await;
        let running = second.resume(turn, resumption(mark));
        second.until("it is heard again", |stored| stored.text == "ab").await;
        second.agent.cancel(&turn.into()).await;
        running.abort();
        second.stored.agent_session_id = stored.agent_session_id;
        first = second;
    }
    first.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_permission_is_answered_through_the_next_host() {
    for decided_before in [false, true] {
        let fixture = AgentFixture::new(AgentBehavior { ids_from_zero: true, ..AgentBehavior::default() });
        let mut first = fixture.open().await;
        let running = first.start(
            "t1",
            &json!([{"tool": {"title": "x", "ask": true, "output": "ran"}}, {"say": "done"}, "complaints"]),
        );
        first.until("it asks", |stored| stored.asked.len() == 1).await;
        let mut stored = first.kill(&running);
        let asked = stored.asked.pop().unwrap();
        assert_eq!(asked.request.id, "t1/0".into(), "it can be named again");
        let mut second = next_host(&fixture, &stored).await;
        let (answer, verdict) = oneshot::channel();
        let waiting =
            PendingRequest { request: asked.request.id, answer_from: PendingAnswer::Permission(asked.call, verdict) };
        let mut answer = Some(answer);
        if decided_before {
            answer.take().unwrap().send(approved()).unwrap();
        }
        let running = second.resume("t1", Resumption { waiting: vec![waiting], mark: stored.mark });
        if let Some(answer) = answer {
            answer.send(approved()).expect("it waits for the answer");
        }
        second.end(running).await.unwrap();
        assert!(second.stored.asked.is_empty(), "nobody is asked twice");
        let text = &second.stored.text;
        assert!(text.contains("done") && text.contains("complaints: none"), "{text}");
        second.agent.close(CloseReason::Removed).await;
    }
}

#[tokio::test]
async fn an_end_that_was_not_stored_is_heard_again() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut first = fixture.open().await;
    let usage = json!({"totalTokens": 3, "inputTokens": 1, "outputTokens": 2});
    first.turn("t1", json!([{"say": "all"}, {"stop": {"reason": "end_turn", "usage": usage}}])).await.unwrap();
    // Everything was stored, except for the end of the turn.
    let TestSession { stored, agent, .. } = first;
    let mut second = {
        // The first host is killed before it can end the agent.
        let second = next_host(&fixture, &stored).await;
        let running = second.resume("t1", resumption(stored.mark.clone()));
        let mut second = second;
        second.end(running).await.unwrap();
        second
    };
    drop(agent);
    assert_eq!(second.stored.text, "", "what it said is there already");
    second.turn("t2", json!([{"say": "next"}])).await.unwrap();
    second.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_turn_whose_agent_is_gone_is_interrupted_with_its_last_words() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut first = fixture.open().await;
    let go = fixture.root().join("go");
    let steps = json!([{"spawn": {}}, {"say": "one"}, {"await_file": go}, {"say": "two"}, {"stderr": "no luck"},
        {"crash": {"signal": 9}}]);
    let running = first.start("t1", &steps);
    first.until("it runs", |stored| stored.text.ends_with("one")).await;
    let agent = parent_of(after(&first.stored.text, "spawned: "));
    let stored = first.kill(&running);
    std::fs::write(go, "").unwrap();
    until("the agent ends", || !is_alive(&agent)).await;
    let mut second = next_host(&fixture, &stored).await;
    let running = second.resume("t1", resumption(stored.mark.clone()));
    let error = second.end(running).await.unwrap_err();
    let told = error.to_string();
    assert_eq!(second.stored.text, "two", "what it said before is not lost");
    assert!(matches!(error, AgentError::Interrupted(_)), "{error:?}");
    assert!(told.contains("SIGKILL") && told.contains("no luck"), "{told}");
    // Now even the shim is gone.
    let mut third = next_host(&fixture, &stored).await;
    drop(second);
    until("the shim ends", || !fixture.pool().folder_of(&"s".into(), &"main".into()).join("socket").exists()).await;
    let running = third.resume("t1", resumption(stored.mark));
    let error = third.end(running).await.unwrap_err();
    assert!(matches!(error, AgentError::Interrupted(_)), "{error:?}");
    third.turn("t2", json!([{"say": "again"}])).await.unwrap();
    third.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_turn_that_its_agent_never_saw_is_given_to_it() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut first = fixture.open().await;
    first.turn("t1", json!([{"say": "one"}])).await.unwrap();
    let stored = first.stored;
    drop(first.agent);
    let mut second = fixture.open_in(&fixture.pool(), "s", stored.agent_session_id.last().cloned()).await;
    let running = second.resume("t2", resumption(stored.mark));
    second.end(running).await.unwrap();
    assert_eq!(second.stored.text.trim_end(), "You said:", "it was prompted with what the turn says");
    second.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_host_that_stops_leaves_a_running_turn_and_no_idle_agent() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let pool = fixture.pool();
    let mut first = fixture.open_in(&pool, "s", None).await;
    let running = first.start("t1", &numbers(40));
    first.until("it runs", |stored| stored.text.ends_with("5 ")).await;
    first.agent.close(CloseReason::Detached).await;
    assert_eq!(pool.running(), 0, "this host has nothing to do with it any more");
    assert!(!running.is_finished(), "nobody is told that it ended");
    let stored = first.kill(&running);
    let mut second = next_host(&fixture, &stored).await;
    second.stored.text = stored.text;
    let running = second.resume("t1", resumption(stored.mark));
    second.end(running).await.unwrap();
    assert_eq!(second.stored.text, expected(40));
    second.agent.close(CloseReason::Detached).await;
    let shim = fixture.pool().folder_of(&"s".into(), &"main".into()).join("socket");
    crate::fixture::until("the idle agent ends", || !shim.exists()).await;
}

#[tokio::test]
async fn an_end_that_a_host_did_not_get_to_store_before_it_stopped_is_known_to_the_next() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    for (turn, steps, fails) in [("t1", json!([{"say": "a"}]), false), ("t2", json!([{"stop": "refusal"}]), true)] {
        let mut first = fixture.open_in(&fixture.pool(), turn, None).await;
        assert_eq!(first.turn(turn, steps).await.is_err(), fails);
        first.agent.close(CloseReason::Detached).await;
        let mut second = fixture.open_in(&fixture.pool(), turn, first.stored.agent_session_id.last().cloned()).await;
        let running = second.resume(turn, resumption(first.stored.mark.clone()));
        assert_eq!(second.end(running).await.is_err(), fails);
        assert_eq!(second.stored.text, "");
        second.agent.close(CloseReason::Removed).await;
    }
}

#[tokio::test]
async fn a_question_is_answered_through_the_next_host() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut first = fixture.open().await;
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let elicit = json!({"mode": "form", "message": "who?", "requestedSchema": schema});
    let running = first.start("t1", &json!([{"elicit": elicit}, "complaints"]));
    first.until("it asks", |stored| stored.questions.len() == 1).await;
    let mut stored = first.kill(&running);
    let (request, _) = stored.questions.pop().unwrap();
    let mut second = next_host(&fixture, &stored).await;
    let (answer, response) = oneshot::channel();
    let waiting = PendingRequest { request: request.id, answer_from: PendingAnswer::Question(response) };
    let running = second.resume("t1", Resumption { waiting: vec![waiting], mark: stored.mark });
    let said = Answer::Submitted(AnswerValue::Text("Ada".to_owned()));
    let answers = Answers::from([(request.questions[0].id.clone(), said)]);
    answer.send(InputResponse { outcome: InputOutcome::Accepted, answers }).unwrap();
    second.end(running).await.unwrap();
    let text = &second.stored.text;
    assert!(text.contains("Ada") && text.contains("complaints: none"), "{text}");
    assert!(second.stored.questions.is_empty(), "nobody is asked twice");
    second.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn what_was_written_is_not_written_again_by_the_next_host() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut first = fixture.open().await;
    let file = fixture.work.join("a.txt");
    let go = fixture.root().join("go");
    let steps = json!([{"write": {"path": file, "content": "agent"}}, {"say": "x"}, {"await_file": go}, {"say": "y"}]);
    let running = first.start("t1", &steps);
    first.until("it runs", |stored| stored.text.ends_with('x')).await;
    let stored = first.kill(&running);
    std::fs::write(&file, "person").unwrap();
    let mut second = next_host(&fixture, &stored).await;
    let running = second.resume("t1", resumption(stored.mark));
    std::fs::write(go, "").unwrap();
    // Whatever is done again is done before the end, which comes behind it.
    second.end(running).await.unwrap();
    assert_eq!(second.stored.text, "y");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "person");
    second.turn("t2", json!([{"say": "next"}])).await.unwrap();
    second.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_turn_that_is_cancelled_before_its_agent_is_found_again_is_cancelled_there() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut first = fixture.open().await;
    let running = first.start("t1", &json!([{"say": "a"}, "hang"]));
    first.until("it runs", |stored| stored.text == "a").await;
    let stored = first.kill(&running);
    let mut second = next_host(&fixture, &stored).await;
    second.agent.cancel(&"t1".into()).await;
    let running = second.resume("t1", resumption(stored.mark));
    second.end(running).await.unwrap_err();
    second.turn("t2", json!([{"say": "next"}, "complaints"])).await.unwrap();
    assert!(second.stored.text.contains("complaints: none"), "{}", second.stored.text);
    second.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn an_agents_end_is_heard_again_while_the_turns_is_not_stored() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut first = fixture.open().await;
    // The shim keeps its frames.
    first.stored.forgets = false;
    first.turn("t1", json!([{"say": "a"}, {"crash": {"code": 3}}])).await.unwrap_err();
    let TestSession { stored, agent, .. } = first;
    let mut second = next_host(&fixture, &stored).await;
    let running = second.resume("t1", resumption(stored.mark));
    let error = second.end(running).await.unwrap_err().to_string();
    assert!(error.contains("code 3"), "{error}");
    assert_eq!(second.stored.text, "", "what it said is there already");
    drop(agent);
    second.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_turn_that_begins_while_the_host_stops_is_left_to_the_next_host() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut first = fixture.open().await;
    first.turn("t1", json!([{"say": "one"}])).await.unwrap();
    first.agent.close(CloseReason::Detached).await;
    let running = first.start("t2", &json!([{"say": "two"}]));
    until_idle(DEADLINE).await;
    assert!(!running.is_finished(), "nobody is told that it failed");
    let stored = first.kill(&running);
    let mut second = next_host(&fixture, &stored).await;
    let running = second.resume("t2", resumption(stored.mark));
    second.end(running).await.unwrap();
    assert!(second.stored.text.starts_with("You said:"), "{}", second.stored.text);
    second.agent.close(CloseReason::Removed).await;
}
