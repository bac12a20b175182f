//! Hooks: asked before a tree changes, notified afterwards.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use grove_host::hooks::{
    BranchOutcome, Hook, HookAnswer, HookCompaction, HookContext, HookError, HookEvent, HookKind, HookSummary,
};
use grove_host::{Compaction, Config};
use grove_testkit::ahp::Client;
use serde_json::{Value, json};

use crate::harness::{TestHost, until};
use crate::tree::{URI, entry, rows, said, say};

type Answering = dyn Fn(&Value) -> Result<HookAnswer, HookError> + Send + Sync;

/// Records its events, and answers as it is told to.
struct RecordingHook {
    heard: Mutex<Vec<Value>>,
    answer: Box<Answering>,
    /// The entry to navigate to after the leaf has moved, once.
    goes: Mutex<Option<String>>,
    /// The message to branch off at after the leaf has moved, once, and the result.
    branches: Mutex<Option<String>>,
    branched: Mutex<Option<BranchOutcome>>,
}

#[async_trait]
impl Hook for RecordingHook {
    fn name(&self) -> String {
        "the listener".to_owned()
    }

    fn wants(&self, _kind: HookKind) -> bool {
        true
    }

    async fn call(&self, event: &HookEvent, at: &HookContext) -> Result<HookAnswer, HookError> {
        let event = serde_json::to_value(event).unwrap();
        self.heard.lock().unwrap().push(event.clone());
        let goes = self.goes.lock().unwrap().take_if(|_| event["type"] == "session_tree");
        if let Some(target) = goes {
            at.navigate_tree(Some(&target), false).await?;
        }
        let branches = self.branches.lock().unwrap().take_if(|_| event["type"] == "session_tree");
        if let Some(entry) = branches {
            let branched = at.branch(&entry).await?;
            *self.branched.lock().unwrap() = Some(branched);
        }
        (self.answer)(&event)
    }
}

impl RecordingHook {
    fn heard(&self) -> Vec<Value> {
        self.heard.lock().unwrap().clone()
    }

    fn kinds(&self) -> Vec<String> {
        self.heard().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }
}

async fn with_hook(
    config: Config,
    answer: impl Fn(&Value) -> Result<HookAnswer, HookError> + Send + Sync + 'static,
) -> (TestHost, Client, String, Arc<RecordingHook>) {
    let host = TestHost::start(config).await;
    let hook = Arc::new(RecordingHook {
        heard: Mutex::default(),
        answer: Box::new(answer),
        goes: Mutex::default(),
        branches: Mutex::default(),
        branched: Mutex::default(),
    });
    host.host.add_hook(hook.clone());
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    say(&mut client, &chat, "t2", "two").await;
    (host, client, chat, hook)
}

fn nothing(_: &Value) -> Result<HookAnswer, HookError> {
    Ok(HookAnswer::default())
}

fn small() -> Config {
    Config { compaction: Compaction { at_percent: 0, keep_tokens: 5 }, ..Config::default() }
}

async fn lines(client: &mut Client, kind: &str) -> Vec<Value> {
    let all = client.ask("x-grove/entries", json!({"channel": URI, "limit": 1000})).await.unwrap();
    all["entries"].as_array().unwrap().iter().filter(|line| line["type"] == kind).cloned().collect()
}

#[tokio::test(start_paused = true)]
async fn a_way_through_the_tree_is_prepared_asked_about_and_told() {
    let (_host, mut client, chat, hook) = with_hook(Config::default(), nothing).await;
    let (one, two) = (entry(&mut client, "one").await, entry(&mut client, "two").await);
    crate::tree::go(&mut client, one.clone()).await;
    client.until(|client| said(client, &chat) == ["one"]).await;
    let [before, after] = hook.heard().try_into().unwrap();
    assert_eq!(before["type"], "session_before_tree");
    let preparation = &before["preparation"];
    assert_eq!((&preparation["targetId"], &preparation["oldLeafId"]), (&json!(one), &json!(two)));
    assert_eq!((&preparation["commonAncestorId"], &preparation["userWantsSummary"]), (&json!(one), &json!(false)));
    let left = preparation["entriesToSummarize"].as_array().unwrap();
    assert_eq!((left.len(), &left[1]["id"]), (2, &json!(two)));
    assert_eq!(after, json!({"type": "session_tree", "newLeafId": one, "oldLeafId": two}));
    // A navigation to the current position asks no hook.
    crate::tree::go(&mut client, one).await;
    assert_eq!(hook.heard().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_hook_forbids_a_way_and_its_failure_does_so_too() {
    let forbids = |event: &Value| match event["preparation"]["label"].as_str() {
        Some("fails") => Err(HookError("it broke down".to_owned())),
        _ => Ok(HookAnswer { cancel: true, reason: Some("not today".to_owned()), ..HookAnswer::default() }),
    };
    let (_host, mut client, chat, _) = with_hook(Config::default(), forbids).await;
    let one = entry(&mut client, "one").await;
    let before = rows(&mut client, json!({"filter": "all"})).await;
    let go = |label: &str| json!({"channel": URI, "entry": one, "label": label});
    let refused = client.ask("x-grove/navigate", go("x")).await.unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (-32009, "the listener forbids it: not today"));
    let failed = client.ask("x-grove/navigate", go("fails")).await.unwrap_err();
    assert!(failed.message.contains("it broke down"), "{failed:?}");
    let user = rows(&mut client, json!({"filter": "user-only"})).await[1]["id"].clone();
    let refused = client.ask("x-grove/branch", json!({"channel": URI, "entry": user})).await.unwrap_err();
    assert_eq!(refused.code, -32009);
    assert_eq!(rows(&mut client, json!({"filter": "all"})).await, before);
    assert_eq!(said(&client, &chat), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_gives_the_summary_where_one_is_wanted() {
    let gives = |event: &Value| {
        let summary = HookSummary { summary: "all was in vain".to_owned(), details: Some(json!({"files": 2})) };
        let is_asked = event["type"] == "session_before_tree";
        Ok(HookAnswer { summary: is_asked.then_some(summary), ..HookAnswer::default() })
    };
    let (_host, mut client, _, hook) = with_hook(Config::default(), gives).await;
    let (one, two) = (entry(&mut client, "one").await, entry(&mut client, "two").await);
    let go = |entry: &str, summarize: bool| json!({"channel": URI, "entry": entry, "summarize": summarize});
    client.ask("x-grove/navigate", go(&one, false)).await.unwrap();
    assert!(lines(&mut client, "branch_summary").await.is_empty(), "nobody wanted one");
    client.ask("x-grove/navigate", go(&two, false)).await.unwrap();
    client.ask("x-grove/navigate", go(&one, true)).await.unwrap();
    let summary = lines(&mut client, "branch_summary").await.remove(0);
    assert_eq!((&summary["summary"], &summary["details"]), (&json!("all was in vain"), &json!({"files": 2})));
    assert_eq!((&summary["fromHook"], &summary["fromExtension"]), (&json!(true), &json!(true)));
    let told = hook.heard().pop().unwrap();
    assert_eq!((&told["summaryEntry"]["id"], &told["fromExtension"]), (&summary["id"], &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn a_hook_can_move_the_leaf_itself() {
    let (_host, mut client, chat, hook) = with_hook(Config::default(), nothing).await;
    let (one, two) = (entry(&mut client, "one").await, entry(&mut client, "two").await);
    *hook.goes.lock().unwrap() = Some(two.clone());
    crate::tree::go(&mut client, one.clone()).await;
    client.until(|client| said(client, &chat) == ["one"]).await;
    client.until(|client| said(client, &chat) == ["one", "two"]).await;
    let after = [("session_tree", &one), ("session_tree", &two)];
    let told: Vec<_> = hook.heard().into_iter().filter(|event| event["type"] == "session_tree").collect();
    assert_eq!(told.len(), after.len());
}

#[tokio::test(start_paused = true)]
async fn a_hook_can_make_a_session_branch_off() {
    let (_host, mut client, _, hook) = with_hook(Config::default(), nothing).await;
    let user = rows(&mut client, json!({"filter": "user-only"})).await[1]["id"].as_str().unwrap().to_owned();
    *hook.branches.lock().unwrap() = Some(user);
    let one = entry(&mut client, "one").await;
    crate::tree::go(&mut client, one).await;
    until("the hook branched", async || hook.branched.lock().unwrap().is_some()).await;
    let branched = hook.branched.lock().unwrap().take().unwrap();
    assert!(branched.text.contains("two"), "{branched:?}");
    let chat = client.follow(branched.session.as_str()).await;
    assert_eq!(said(&client, &chat), ["one"]);
    assert!(hook.kinds().contains(&"session_branch".to_owned()), "it is told of what it does itself");
}

#[tokio::test(start_paused = true)]
async fn a_branch_is_asked_about_and_told() {
    let (_host, mut client, _, hook) = with_hook(Config::default(), nothing).await;
    let user = rows(&mut client, json!({"filter": "user-only"})).await[1]["id"].clone();
    let branched = client.ask("x-grove/branch", json!({"channel": URI, "entry": user})).await.unwrap();
    client.follow(branched["session"].as_str().unwrap()).await;
    let [before, after] = hook.heard().try_into().unwrap();
    assert_eq!(before, json!({"type": "session_before_branch", "entryId": user}));
    assert_eq!(after["previousSessionFile"], "s/events.jsonl");
    assert_eq!(after["session"], branched["session"]);
}

#[tokio::test(start_paused = true)]
async fn a_compaction_is_asked_about_given_and_told() {
    let gives = |event: &Value| {
        let compaction = HookCompaction {
            summary: "mine".to_owned(),
            first_kept_entry_id: None,
            tokens_before: Some(7),
            details: None,
        };
        let is_asked = event["type"] == "session_before_compact";
        Ok(HookAnswer { compaction: is_asked.then_some(compaction), ..HookAnswer::default() })
    };
    let (_host, mut client, _, hook) = with_hook(small(), gives).await;
    let asked = json!({"channel": URI, "instructions": "names"});
    let compacted = client.ask("x-grove/compact", asked).await.unwrap();
    assert_eq!((&compacted["summary"], &compacted["tokensBefore"]), (&json!("mine"), &json!(7)));
    client.barrier().await;
    assert_eq!(hook.kinds(), ["session_before_compact", "session_compact"], "nobody else summarizes");
    let [before, after] = hook.heard().try_into().unwrap();
    assert_eq!(before["customInstructions"], "names");
    assert_eq!(before["preparation"]["firstKeptEntryId"], compacted["firstKeptEntry"]);
    assert_eq!(before["branchEntries"].as_array().unwrap().len(), 4);
    assert_eq!(
        (&after["compactionEntry"]["id"], &after["fromExtension"]),
        (&compacted["compactionEntry"], &json!(true))
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_adds_to_what_a_summarizer_is_told_and_to_what_is_kept() {
    let adds = |event: &Value| {
        let mut answer = HookAnswer::default();
        if event["type"] == "session.compacting" {
            answer.prompt = Some("script:[{\"say\": \"as the hook has it\"}]".to_owned());
            answer.context = vec!["The build is green.".to_owned()];
            answer.preserve_data = Some(json!({"todo": 3}));
        }
        Ok(answer)
    };
    let (_host, mut client, _, hook) = with_hook(small(), adds).await;
    let compacted = client.ask("x-grove/compact", json!({"channel": URI})).await.unwrap();
    assert_eq!(compacted["summary"], "as the hook has it");
    let line = lines(&mut client, "compaction").await.remove(0);
    assert_eq!(line["details"]["preserveData"], json!({"todo": 3}));
    assert_eq!(line["fromExtension"], false);
    let heard = hook.heard();
    let compacting = heard.iter().find(|event| event["type"] == "session.compacting").unwrap();
    assert_eq!(compacting["sessionId"], "s");
    assert_eq!(compacting["messages"][0]["role"], "user");
}
