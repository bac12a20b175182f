//! Rules answer permission requests before anybody is asked, in the host and for every dialect.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use grove_core::Scope;
use grove_host::{Config, LoadedRules, PermissionRules};
use grove_policy::{Policy, Rule, RuleSet};
use grove_testkit::ahp;
use grove_wire::ahp::{ResponsePart, ToolCallState, TurnState};
use grove_wire::x_grove::policy::RuleTarget;
use serde_json::{Value, json};

use crate::harness::TestHost;
use crate::scopes::Scoped;

const URI: &str = "scripted:/s";

const RULES: &str = "[[policy.rules]]\nallow = \"shell\"\ncommand = [\"ls *\", \"cat *\"]\n\n\
    [[policy.rules]]\nask = \"shell\"\ncommand = \"cat .env\"\n\n\
    [[policy.rules]]\ndeny = \"shell\"\ncommand = \"rm *\"\nreason = \"people delete\"\n";

/// Rules in memory, as the program has them in `grove.toml`.
#[derive(Clone, Default)]
struct MemoryRules(Arc<Mutex<String>>);

impl PermissionRules for MemoryRules {
    fn rules_for(&self, _folder: Option<&Path>) -> LoadedRules {
        let rules = RuleSet::parse_settings(&self.0.lock().unwrap(), "grove.toml").unwrap();
        LoadedRules { policy: Arc::new(Policy::from_iter([rules])), ..LoadedRules::default() }
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn file_of(&self, target: RuleTarget, _folder: Option<&Path>) -> Option<PathBuf> {
        (target == RuleTarget::Everywhere).then(|| PathBuf::from("/grove.toml"))
    }

    fn add_rules(&self, target: RuleTarget, folder: Option<&Path>, rules: &[Rule]) -> Result<PathBuf, String> {
        let mut text = self.0.lock().unwrap();
        rules.iter().for_each(|rule| text.push_str(&format!("\n{}", rule.to_toml("policy.rules"))));
        self.file_of(target, folder).ok_or_else(|| "there is no file".to_owned())
    }
}

async fn host_with(rules: &str) -> (TestHost, MemoryRules) {
    let host = TestHost::start(Config::default()).await;
    let service = MemoryRules(Arc::new(Mutex::new(rules.to_owned())));
    host.host.set_permission_rules(Arc::new(service.clone()));
    (host, service)
}

fn asks(command: &str) -> Value {
    json!([{"tool": {"name": "sh", "input": command, "output": "ran", "permission": "shell"}}, {"say": "done"}])
}

/// Starts a turn, and returns its call when it waits for a person, or when the turn has ended without one.
async fn run(client: &mut ahp::Client, chat: &str, turn: &str, steps: Value) -> ToolCallState {
    client.script(chat, turn, steps).await;
    client.until(|client| call_of(client, chat, turn).is_some()).await;
    // The answer of a rule follows the question in the same batch.
    client.barrier().await;
    client.until(|client| call_of(client, chat, turn).is_some()).await;
    call_of(client, chat, turn).unwrap()
}

fn call_of(client: &ahp::Client, chat: &str, turn: &str) -> Option<ToolCallState> {
    let chat = client.chat(chat);
    let call = |part: &ResponsePart| match part {
        ResponsePart::ToolCall(part) => Some(part.tool_call.clone()),
        _ => None,
    };
    if let Some(done) = chat.turns.iter().find(|done| done.id == turn) {
        return done.response_parts.iter().find_map(call);
    }
    let active = chat.active_turn.as_ref().filter(|active| active.id == turn)?;
    let call = active.response_parts.iter().find_map(call)?;
    matches!(call, ToolCallState::PendingConfirmation(_)).then_some(call)
}

async fn answer(client: &mut ahp::Client, chat: &str, turn: &str, call: &ToolCallState, approved: bool) {
    let mut action = json!({"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": call.id().unwrap(),
        "approved": approved});
    match approved {
        true => action["confirmed"] = "user-action".into(),
        false => action["reason"] = "denied".into(),
    }
    client.dispatch(chat, action).await;
    assert_eq!(client.turn_end(chat, turn).await.state, TurnState::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_rule_allows_or_denies_before_a_question_is_published_and_is_named() {
    let (host, _) = host_with(RULES).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    let allowed = run(&mut client, &chat, "t1", asks("ls -l && cat x")).await;
    let ToolCallState::Completed(call) = &allowed else { panic!("{allowed:?}") };
    assert_eq!(serde_json::to_value(&call.confirmed).unwrap(), "setting");
    let rule = call.base.meta.as_ref().and_then(|meta| meta.get("policyRule")?.as_str()).unwrap();
    assert!(rule.starts_with("allow shell \"ls *\" \"cat *\" (grove.toml:1)"), "{rule}");
    client.turn_end(&chat, "t1").await;

    let denied = run(&mut client, &chat, "t2", asks("ls; r''m -rf x")).await;
    let ToolCallState::Cancelled(call) = &denied else { panic!("{denied:?}") };
    let reason = serde_json::to_value(&call.reason_message).unwrap().to_string();
    assert!(reason.contains("people delete"), "{reason}");
    client.turn_end(&chat, "t2").await;
    assert_eq!(client.session(URI).input_needed.as_ref().map_or(0, Vec::len), 0, "nobody was asked");
    client.must_agree(&chat).await;
}

#[tokio::test(start_paused = true)]
async fn a_person_is_asked_without_a_rule_by_a_rule_and_about_what_is_not_known() {
    let (host, _) = host_with(RULES).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    let unknown = json!([{"tool": {"name": "ls -l", "permission": "shell"}}, {"say": "done"}]);
    for (turn, steps) in [
        ("t1", asks("make")),
        ("t2", asks("cat .env")),
        ("t3", unknown),
        ("t4", asks("ls $(make)")),
        ("t5", asks("$x")),
    ] {
        let call = run(&mut client, &chat, turn, steps).await;
        assert!(matches!(call, ToolCallState::PendingConfirmation(_)), "{turn}: {call:?}");
        answer(&mut client, &chat, turn, &call, false).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_the_session_allows_and_never_goes_before_one_that_denies_or_asks() {
    let (host, service) = host_with(RULES).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    let call = run(&mut client, &chat, "t1", asks("make all")).await;
    let request = call.id().unwrap();
    let offers = client.ask("x-grove/policy/offers", json!({"channel": chat, "request": request})).await.unwrap();
    let texts: Vec<&str> =
        offers["rules"].as_array().unwrap().iter().filter_map(|rule| rule["text"].as_str()).collect();
    assert_eq!(texts, ["allow shell \"make all\"", "allow shell \"make all *\""], "{offers}");
    assert_eq!(offers["targets"], json!([{"target": "session"}, {"target": "everywhere", "file": "/grove.toml"}]));

    let allow =
        |rule: &Value, target: &str| json!({"channel": chat, "request": request, "target": target, "rule": rule});
    let wider = json!("[[rules]]\nallow = \"any\"\n");
    let refused = client.ask("x-grove/policy/allow", allow(&wider, "session")).await.unwrap_err();
    assert!(refused.message.contains("not offered"), "{refused:?}");
    let stored = client.ask("x-grove/policy/allow", allow(&offers["rules"][1]["toml"], "session")).await.unwrap();
    assert_eq!(stored, json!({"text": "allow shell \"make all *\""}));
    let turn = client.turn_end(&chat, "t1").await;
    let parts = serde_json::to_value(&turn.response_parts).unwrap().to_string();
    assert!(parts.contains("ran") && parts.contains("(this session)"), "the rule answered: {parts}");

    let again = run(&mut client, &chat, "t2", asks("make all -j2")).await;
    assert!(matches!(again, ToolCallState::Completed(_)), "{again:?}");
    client.turn_end(&chat, "t2").await;
    service.0.lock().unwrap().push_str("\n[[policy.rules]]\nask = \"shell\"\ncommand = \"make * -j2\"\n");
    let call = run(&mut client, &chat, "t3", asks("make all -j2")).await;
    assert!(matches!(call, ToolCallState::PendingConfirmation(_)), "a rule that asks goes first: {call:?}");
    let params = json!({"channel": chat, "request": call.id().unwrap()});
    let offers = client.ask("x-grove/policy/offers", params).await.unwrap();
    assert_eq!(offers["rules"], json!([]), "no rule that allows would help");
    answer(&mut client, &chat, "t3", &call, true).await;
    service.0.lock().unwrap().push_str("\n[[policy.rules]]\ndeny = \"shell\"\ncommand = \"make *\"\n");
    let call = run(&mut client, &chat, "t4", asks("make all")).await;
    assert!(matches!(call, ToolCallState::Cancelled(_)), "a rule that denies goes first: {call:?}");
    client.turn_end(&chat, "t4").await;

    *service.0.lock().unwrap() = String::new();
    client.ask("x-grove/permissions", json!({"channel": URI, "revoke": true})).await.unwrap();
    let call = run(&mut client, &chat, "t5", asks("make all")).await;
    assert!(matches!(call, ToolCallState::PendingConfirmation(_)), "it was revoked: {call:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stored_rule_answers_the_request_and_those_of_other_sessions() {
    let (host, service) = host_with("").await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    let call = run(&mut client, &chat, "t1", asks("make")).await;
    let waiting = client.ready_session("scripted:/waiting").await;
    let pending = run(&mut client, &waiting, "t1", asks("make")).await;
    assert!(matches!(pending, ToolCallState::PendingConfirmation(_)), "{pending:?}");
    let params = json!({"channel": chat, "request": call.id().unwrap()});
    let offers = client.ask("x-grove/policy/offers", params.clone()).await.unwrap();
    let mut params = params;
    params["rule"] = offers["rules"][0]["toml"].clone();
    params["target"] = "repository".into();
    client.ask("x-grove/policy/allow", params.clone()).await.unwrap_err();
    *service.0.lock().unwrap() = String::new();
    params["target"] = "everywhere".into();
    let stored = client.ask("x-grove/policy/allow", params.clone()).await.unwrap();
    assert_eq!(stored["file"], "/grove.toml");
    assert_eq!(client.turn_end(&chat, "t1").await.state, TurnState::Complete);
    client.ask("x-grove/policy/allow", params).await.unwrap_err();
    assert_eq!(
        client.turn_end(&waiting, "t1").await.state,
        TurnState::Complete,
        "it waited before the rule was stored"
    );
    let other = client.ready_session("scripted:/other").await;
    let call = run(&mut client, &other, "t1", asks("make")).await;
    assert!(matches!(call, ToolCallState::Completed(_)), "{call:?}");
}

#[tokio::test(start_paused = true)]
async fn storing_a_rule_needs_approve_and_one_for_other_sessions_needs_admin() {
    let (host, _) = host_with(RULES).await;
    host.ahp("owner").await.ready_session(URI).await;
    let allow = |target: &str| json!({"channel": URI, "request": "r", "target": target, "rule": "x"});
    let mut reader = Scoped::ahp(&host, &[Scope::Read]).await;
    reader.must_lack(Scope::Approve, "x-grove/policy/allow", allow("session")).await;
    let mut approver = Scoped::ahp(&host, &[Scope::Read, Scope::Approve]).await;
    approver.must_lack(Scope::Admin, "x-grove/policy/allow", allow("everywhere")).await;
    approver.must_lack(Scope::Admin, "x-grove/policy/allow", allow("repository")).await;
    let refused = approver.ask("x-grove/policy/allow", allow("session")).await.unwrap_err();
    assert!(refused.to_string().contains("no permission request"), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn version_1_is_told_which_rule_answered() {
    let (host, _) = host_with(RULES).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.run_script(URI, "t1", asks("ls")).await;
    let resolved: Vec<Value> = client
        .envelopes
        .iter()
        .map(|envelope| serde_json::to_value(envelope).unwrap())
        .filter(|envelope| envelope["action"]["type"] == "session/permissionResolved")
        .collect();
    assert_eq!(resolved.len(), 1, "{resolved:?}");
    let rule = resolved[0]["action"]["policyRule"].as_str().unwrap();
    assert!(rule.contains("ls *"), "{rule}");
}
