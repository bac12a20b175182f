//! Summaries: of an abandoned branch, of a merged branch, and of the older part of a conversation.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use grove_agents::{Agent, AgentError, AgentSession, OpenSession, Prompt, Summarizer, SummaryRequest, TurnSink};
use grove_core::{AgentInfo, TurnId};
use grove_host::{Compaction, Config};
use grove_testkit::ahp::Client;
use serde_json::{Value, json};

use crate::harness::TestHost;
use crate::tree::{URI, entry, rows, said, say};

/// An agent that repeats its prompt, and has no model for summaries.
struct Parrot;

struct ParrotSession;

#[async_trait]
impl Agent for Parrot {
    fn info(&self) -> AgentInfo {
        AgentInfo {
            id: "parrot".into(),
            display_name: "Parrot".to_owned(),
            description: String::new(),
            models: Vec::new(),
        }
    }

    async fn open(&self, _session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        Ok(Arc::new(ParrotSession))
    }
}

#[async_trait]
impl AgentSession for ParrotSession {
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        turn.text(prompt.message.text).await
    }

    async fn cancel(&self, _turn: &TurnId) {}
}

/// An agent that remembers nothing. The conversation that it was told last is kept here.
#[derive(Clone, Default)]
struct Forgetful(Arc<Mutex<String>>);

#[async_trait]
impl Agent for Forgetful {
    fn info(&self) -> AgentInfo {
        AgentInfo { id: "forgetful".into(), ..Parrot.info() }
    }

    async fn open(&self, _session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        Ok(Arc::new(self.clone()))
    }

    fn summarizer(&self) -> Option<Arc<dyn Summarizer>> {
        Some(Arc::new(self.clone()))
    }
}

#[async_trait]
impl AgentSession for Forgetful {
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        *self.0.lock().unwrap() = prompt.memory.retell(64 << 10).await?.unwrap_or_default();
        turn.text(format!("answer to {}", prompt.message.text)).await
    }

    async fn cancel(&self, _turn: &TurnId) {}
}

#[async_trait]
impl Summarizer for Forgetful {
    async fn summarize(&self, wanted: SummaryRequest) -> Result<String, AgentError> {
        Ok(format!("in short {}", wanted.instructions.unwrap_or_default()))
    }
}

/// A session with two answers, its client at the second.
async fn two_answers(host: &TestHost) -> (Client, String) {
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    say(&mut client, &chat, "t2", "two").await;
    (client, chat)
}

async fn lines(client: &mut Client) -> Vec<Value> {
    let all = client.ask("x-grove/entries", json!({"channel": URI, "limit": 1000})).await.unwrap();
    all["entries"].as_array().unwrap().clone()
}

async fn line(client: &mut Client, id: &Value) -> Value {
    lines(client).await.into_iter().find(|line| line["id"] == *id).unwrap()
}

fn small() -> Config {
    Config { compaction: Compaction { at_percent: 80, keep_tokens: 5 }, ..Config::default() }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_summarized_where_one_goes_to() {
    let mut host = TestHost::start(Config::default()).await;
    let (mut client, chat) = two_answers(&host).await;
    let one = entry(&mut client, "one").await;
    let asked = json!({"channel": URI, "entry": one, "summarize": true, "label": "here"});
    let gone = client.ask("x-grove/navigate", asked).await.unwrap();
    assert_eq!(gone["moved"], true);
    let summary = line(&mut client, &gone["summaryEntry"]).await;
    assert_eq!((&summary["type"], &summary["parentId"]), (&json!("branch_summary"), &json!(one)));
    assert_eq!(summary["fromId"], json!(one), "the place that was gone to");
    assert_eq!((&summary["fromHook"], &summary["fromExtension"]), (&json!(false), &json!(false)));
    let text = summary["summary"].as_str().unwrap();
    assert!(text.contains("two") && !text.contains("one"), "of the branch that is left alone: {text}");
    client.until(|client| said(client, &chat) == ["one"]).await;
    assert!(client.chat(&chat).activity.is_none());
    // Before the first entry, too.
    let gone = client.ask("x-grove/navigate", json!({"channel": URI, "entry": null, "summarize": true})).await.unwrap();
    let summary = line(&mut client, &gone["summaryEntry"]).await;
    assert_eq!((&summary["fromId"], &summary["parentId"]), (&json!("root"), &Value::Null));
    host.kill_and_restart(Config::default()).await;
    host.bring_back_ahp(&mut client).await;
    say(&mut client, &chat, "t3", "three").await;
    let first = lines(&mut client)
        .await
        .into_iter()
        .find(|line| line["message"]["role"] == "user" && line["parentId"] == gone["summaryEntry"]);
    assert!(first.is_some(), "what is said next hangs from the summary");
}

#[tokio::test(start_paused = true)]
async fn an_aborted_summary_changes_nothing() {
    let host = TestHost::start(Config::default()).await;
    let (mut client, chat) = two_answers(&host).await;
    let one = entry(&mut client, "one").await;
    let before = lines(&mut client).await;
    let hang = "script:[{\"hang\": true}]";
    let params = json!({"channel": URI, "entry": one, "summarize": true, "instructions": hang});
    // Both on one connection: a slow request does not hold up later ones.
    client.send(json!({"jsonrpc": "2.0", "id": 901, "method": "x-grove/navigate", "params": params}).to_string()).await;
    client.until(|client| client.chat(&chat).activity.is_some()).await;
    let busy = client.ask("x-grove/compact", json!({"channel": URI})).await.unwrap_err();
    assert_eq!(busy.code, -32004, "{busy:?}");
    let abort = json!({"jsonrpc": "2.0", "id": 902, "method": "x-grove/abort", "params": {"channel": URI}});
    client.send(abort.to_string()).await;
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let text = client.frame().await.unwrap();
        answers.extend(client.take(&text));
    }
    answers.sort_by_key(|(id, _)| id.as_json().to_owned());
    let [(_, navigated), (_, aborted)] = answers.try_into().unwrap();
    assert!(navigated.unwrap_err().message.contains("aborted: nothing has changed"));
    assert_eq!(aborted.unwrap(), json!({"aborted": true}));
    client.until(|client| client.chat(&chat).activity.is_none()).await;
    assert_eq!(client.ask("x-grove/abort", json!({"channel": URI})).await.unwrap(), json!({"aborted": false}));
    assert_eq!(lines(&mut client).await, before);
    assert_eq!(said(&client, &chat), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_changes_nothing() {
    let host = TestHost::start(Config::default()).await;
    let (mut client, chat) = two_answers(&host).await;
    let one = entry(&mut client, "one").await;
    let before = lines(&mut client).await;
    let fails = "script:[{\"fail\": \"the model is tired\"}]";
    let params = json!({"channel": URI, "entry": one, "summarize": true, "instructions": fails});
    let failed = client.ask("x-grove/navigate", params).await.unwrap_err();
    assert!(failed.message.contains("the model is tired"), "{failed:?}");
    assert_eq!(lines(&mut client).await, before);
    assert_eq!(said(&client, &chat), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_model_a_wanted_summary_fails_fast() {
    let host = TestHost::with_agents(Config::default(), vec![Arc::new(Parrot)]).await;
    let mut client = host.ahp("a").await;
    let uri = "parrot:/p";
    let chat = client.ready_session(uri).await;
    for turn in ["one", "two"] {
        client.start_turn(&chat, turn, turn).await;
        client.turn_end(&chat, turn).await;
    }
    let all = client.ask("x-grove/tree", json!({"channel": uri})).await.unwrap();
    let first = all["rows"][1]["id"].clone();
    for (method, params) in [
        ("x-grove/navigate", json!({"channel": uri, "entry": first, "summarize": true})),
        ("x-grove/compact", json!({"channel": uri})),
        ("x-grove/merge", json!({"channel": uri, "entry": first})),
    ] {
        let refused = client.ask(method, params).await.unwrap_err();
        assert!(refused.message.contains("no model for summaries"), "{method}: {refused:?}");
    }
    assert_eq!(said(&client, &chat), ["one", "two"]);
    assert_eq!(client.ask("x-grove/tree", json!({"channel": uri})).await.unwrap(), all);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_begins_while_a_branch_is_summarized_goes_first() {
    let host = TestHost::start(Config::default()).await;
    let (mut client, chat) = two_answers(&host).await;
    let mut other = host.ahp("b").await;
    other.follow(URI).await;
    let one = entry(&mut client, "one").await;
    let params = json!({"channel": URI, "entry": one, "summarize": true, "instructions": "script:[{\"hang\": true}]"});
    let (refused, ()) = tokio::join!(client.ask("x-grove/navigate", params), async {
        other.until(|other| other.chat(&chat).activity.is_some()).await;
        say(&mut other, &chat, "t3", "three").await;
    });
    assert!(refused.unwrap_err().message.contains("a turn started meanwhile"));
    client.turn_end(&chat, "t3").await;
    assert_eq!(said(&client, &chat), ["one", "two", "three"]);
    client.must_agree(&chat).await;
}

#[tokio::test(start_paused = true)]
async fn what_came_of_another_branch_is_brought_here_with_its_origin() {
    let host = TestHost::start(Config::default()).await;
    let (mut client, chat) = two_answers(&host).await;
    let (one, two) = (entry(&mut client, "one").await, entry(&mut client, "two").await);
    crate::tree::go(&mut client, one.clone()).await;
    say(&mut client, &chat, "t3", "three").await;
    let three = entry(&mut client, "three").await;
    let merged = client.ask("x-grove/merge", json!({"channel": URI, "entry": two})).await.unwrap();
    let summary = line(&mut client, &merged["summaryEntry"]).await;
    assert_eq!((&summary["type"], &summary["parentId"]), (&json!("branch_summary"), &json!(three)));
    assert_eq!(summary["details"]["mergedFrom"], json!({"entryId": two, "commonAncestorId": one}));
    let text = summary["summary"].as_str().unwrap();
    assert!(text.contains("two") && !text.contains("three"), "{text}");
    assert_eq!(merged["leaf"], merged["summaryEntry"]);
    assert_eq!(said(&client, &chat), ["one", "three"], "nobody is moved");
    let known = client.ask("x-grove/merge", json!({"channel": URI, "entry": one})).await.unwrap_err();
    assert!(known.message.contains("on this branch already"), "{known:?}");
    let unknown = client.ask("x-grove/merge", json!({"channel": URI, "entry": "nobody"})).await.unwrap_err();
    assert!(unknown.message.contains("no entry nobody"), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_compacted_when_somebody_wants_it() {
    let mut host = TestHost::start(small()).await;
    let (mut client, chat) = two_answers(&host).await;
    let compacted = client.ask("x-grove/compact", json!({"channel": URI, "instructions": "names"})).await.unwrap();
    let entry = line(&mut client, &compacted["compactionEntry"]).await;
    assert_eq!((&entry["type"], &entry["summary"]), (&json!("compaction"), &compacted["summary"]));
    assert_eq!(entry["firstKeptEntryId"], compacted["firstKeptEntry"]);
    assert_eq!(entry["tokensBefore"], compacted["tokensBefore"]);
    assert!(compacted["tokensBefore"].as_u64().unwrap() > 5);
    assert_eq!(said(&client, &chat), ["one", "two"], "people still see everything");
    host.kill_and_restart(small()).await;
    host.bring_back_ahp(&mut client).await;
    assert_eq!(rows(&mut client, json!({"filter": "all", "search": "compaction"})).await.len(), 1);
    client.must_agree(&chat).await;
    host = TestHost::start(Config::default()).await;
    let (mut client, _) = two_answers(&host).await;
    let nothing = client.ask("x-grove/compact", json!({"channel": URI})).await.unwrap_err();
    assert!(nothing.message.contains("nothing to compact"), "{nothing:?}");
}

#[tokio::test(start_paused = true)]
async fn a_full_window_is_compacted_by_itself_before_the_next_turn() {
    let host = TestHost::start(small()).await;
    let (mut client, chat) = two_answers(&host).await;
    let full = json!([{"say": "much"}, {"usage": {"context": {"used": 80, "size": 100}}}]);
    client.script(&chat, "t3", full).await;
    let queued = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "q1",
        "message": grove_testkit::ahp::message("script:[{\"say\": \"next\"}]")});
    client.dispatch(&chat, queued).await;
    client.turn_end(&chat, "q1").await;
    let all = lines(&mut client).await;
    let at = |wanted: &dyn Fn(&Value) -> bool| all.iter().position(wanted).unwrap();
    let compaction = at(&|line| line["type"] == "compaction");
    let much = at(&|line| line["message"]["role"] == "assistant" && line.to_string().contains("much"));
    let next = at(&|line| line["message"]["role"] == "user" && line.to_string().contains("next"));
    assert!(much < compaction && compaction < next, "{all:#?}");
    assert_eq!(all[next]["parentId"], all[compaction]["id"]);
    assert_eq!(said(&client, &chat), ["one", "two", "much", "next"]);
    // A window with room is left alone.
    let room = json!([{"say": "little"}, {"usage": {"context": {"used": 79, "size": 100}}}]);
    client.run_script(&chat, "t4", room).await;
    say(&mut client, &chat, "t5", "five").await;
    assert_eq!(lines(&mut client).await.iter().filter(|line| line["type"] == "compaction").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn entries_are_given_since_a_cursor() {
    let host = TestHost::start(Config::default()).await;
    let (mut client, chat) = two_answers(&host).await;
    let first = client.ask("x-grove/entries", json!({"channel": URI, "limit": 2})).await.unwrap();
    assert_eq!((first["entries"].as_array().unwrap().len(), &first["more"]), (2, &json!(true)));
    let mut cursor = first["cursor"].clone();
    let mut count = 2;
    loop {
        let page = client.ask("x-grove/entries", json!({"channel": URI, "cursor": cursor, "limit": 2})).await.unwrap();
        count += page["entries"].as_array().unwrap().len();
        cursor = page["cursor"].clone();
        if page["more"] == false {
            break;
        }
    }
    assert_eq!(count, lines(&mut client).await.len());
    let nothing = client.ask("x-grove/entries", json!({"channel": URI, "cursor": cursor})).await.unwrap();
    assert_eq!(nothing["entries"], json!([]));
    say(&mut client, &chat, "t3", "three").await;
    let news = client.ask("x-grove/entries", json!({"channel": URI, "cursor": cursor})).await.unwrap();
    assert!(news["entries"][0].to_string().contains("three"), "{news}");
    let wrong = client.ask("x-grove/entries", json!({"channel": URI, "cursor": "x"})).await.unwrap_err();
    assert_eq!(wrong.code, -32602);
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_told_the_summaries_in_place_of_what_they_stand_for() {
    let agent = Forgetful::default();
    let host = TestHost::with_agents(small(), vec![Arc::new(agent.clone())]).await;
    let mut client = host.ahp("a").await;
    let uri = "forgetful:/f";
    let chat = client.ready_session(uri).await;
    let mut turns = 0;
    let mut say = async |client: &mut Client, text: &str| {
        turns += 1;
        let turn = format!("t{turns}");
        client.start_turn(&chat, &turn, text).await;
        client.turn_end(&chat, &turn).await;
        agent.0.lock().unwrap().clone()
    };
    say(&mut client, "apples").await;
    let told = say(&mut client, "bread").await;
    assert!(told.contains("apples"), "{told}");
    let users = client.ask("x-grove/tree", json!({"channel": uri, "filter": "user-only"})).await.unwrap();
    let bread = &users["rows"][1]["id"];
    let summarized = json!({"channel": uri, "entry": bread, "summarize": true, "instructions": "of bread"});
    client.ask("x-grove/navigate", summarized).await.unwrap();
    let told = say(&mut client, "cheese").await;
    assert!(
        told.contains("apples") && told.contains("in short of bread") && !told.contains("answer to bread"),
        "{told}"
    );
    client.ask("x-grove/compact", json!({"channel": uri, "instructions": "of all"})).await.unwrap();
    let told = say(&mut client, "dates").await;
    assert!(told.contains("in short of all") && !told.contains("apples"), "{told}");
    assert!(told.contains("answer to cheese") && !told.contains("dates"), "what is kept, and not itself: {told}");
    let merged = json!({"channel": uri, "entry": bread, "instructions": "of what was left"});
    client.ask("x-grove/merge", merged).await.unwrap();
    let told = say(&mut client, "eggs").await;
    assert!(told.contains("in short of what was left") && told.contains("in short of all"), "{told}");
    // A session that branches off has its summaries, too.
    let eggs = client.ask("x-grove/tree", json!({"channel": uri, "filter": "user-only"})).await.unwrap();
    let eggs = eggs["rows"].as_array().unwrap().iter().find(|row| row["text"] == "eggs").unwrap()["id"].clone();
    let branched = client.ask("x-grove/branch", json!({"channel": uri, "entry": eggs})).await.unwrap();
    assert_eq!(branched["text"], "eggs");
    let other = client.follow(branched["session"].as_str().unwrap()).await;
    client.start_turn(&other, "figs", "figs").await;
    client.turn_end(&other, "figs").await;
    let told = agent.0.lock().unwrap().clone();
    assert!(told.contains("in short of what was left") && !told.contains("eggs"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_request_in_a_batch_holds_up_neither_its_connection_nor_what_streams_out() {
    let host = TestHost::start(Config::default()).await;
    let (mut client, chat) = two_answers(&host).await;
    let one = entry(&mut client, "one").await;
    let params = json!({"channel": URI, "entry": one, "summarize": true, "instructions": "script:[{\"hang\": true}]"});
    let request =
        |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let quick = request(802, "listSessions", json!({"channel": "ahp-root://", "limit": 1}));
    let subscribe = request(803, "subscribe", json!({"channel": URI}));
    for (with_snapshot, batch) in [
        (false, json!([request(801, "x-grove/navigate", params.clone()), quick])),
        (true, json!([request(801, "x-grove/navigate", params.clone()), quick, subscribe])),
    ] {
        client.send(batch.to_string()).await;
        if with_snapshot {
            // A snapshot has a fixed position before the events that follow it, so it does not wait for the summary.
            let ids = batch_ids(&mut client).await;
            assert_eq!(ids, [json!(802), json!(803)]);
        }
        client.until(|client| client.chat(&chat).activity.is_some()).await;
        // Requests after the batch are answered, and events are sent.
        client.barrier().await;
        client.send(request(804, "x-grove/abort", json!({"channel": URI})).to_string()).await;
        let ids = batch_and_answer(&mut client, 804).await;
        let expected = if with_snapshot { vec![json!(801)] } else { vec![json!(802), json!(801)] };
        assert_eq!(ids, expected, "what takes long is answered when it is done");
        client.until(|client| client.chat(&chat).activity.is_none()).await;
    }
}

/// The ids of the next batch of answers, once one request was answered as well.
async fn batch_and_answer(client: &mut Client, id: u64) -> Vec<Value> {
    let (mut batch, mut is_answered) = (None, false);
    loop {
        let text = client.frame().await.unwrap();
        match serde_json::from_str(&text).unwrap() {
            Value::Array(answers) => batch = Some(answers.into_iter().map(|answer| answer["id"].clone()).collect()),
            _ => is_answered |= client.take(&text).is_some_and(|(answered, _)| answered.as_json() == id.to_string()),
        }
        match batch.take_if(|_| is_answered) {
            Some(batch) => return batch,
            None => continue,
        }
    }
}

/// The ids of the next batch of answers. Everything before it is skipped.
async fn batch_ids(client: &mut Client) -> Vec<Value> {
    loop {
        let text = client.frame().await.unwrap();
        match serde_json::from_str(&text).unwrap() {
            Value::Array(answers) => return answers.into_iter().map(|answer| answer["id"].clone()).collect(),
            _ => drop(client.take(&text)),
        }
    }
}
