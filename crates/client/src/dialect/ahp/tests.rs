use grove_wire::ahp::{ChatAction, ChatDraftChanged, ChatTurnComplete, SessionTitleChanged};
use serde_json::{Value, json};

use super::*;

const CHAT: &str = "ahp-chat:/1";

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn value(params: impl Serialize) -> Value {
    serde_json::to_value(params).unwrap()
}

fn notified(method: &str, params: Value) -> serde_json::Result<IncomingNotification<Ahp>> {
    Ahp::default().notified(method, &raw(&params))
}

fn server(version: Version) -> HostDescription {
    HostDescription { version, info: None, default_directory: None, completion_triggers: Vec::new(), grove: None }
}

fn draft() -> Action {
    Action::Chat(ChatAction::DraftChanged(ChatDraftChanged { draft: None }))
}

#[test]
fn messages_have_the_shape_of_1_0() {
    let ahp = Ahp::default();
    let resources = [ROOT.to_owned()];
    assert_eq!(
        value(ahp.initialize("a", &resources)),
        json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "a",
            "clientInfo": {"name": "grove-client", "version": env!("CARGO_PKG_VERSION")},
            "initialSubscriptions": ["ahp-root://"]})
    );
    assert_eq!(
        value(ahp.reconnect("a", 7, &resources)),
        json!({"channel": "ahp-root://", "clientId": "a", "lastSeenServerSeq": 7, "subscriptions": ["ahp-root://"]})
    );
    assert_eq!(value(ahp.subscribe(CHAT)), json!({"channel": CHAT}));
    assert_eq!(value(ahp.unsubscribe(CHAT)), json!({"channel": CHAT}));
    let action = ahp.address(&server(ahp::version::CURRENT), CHAT, draft()).unwrap();
    assert_eq!(
        value(ahp.dispatch(CHAT, 3, &action)),
        json!({"channel": CHAT, "clientSeq": 3, "action": {"type": "chat/draftChanged"}})
    );
    let paged = Ahp { list_page: Some(2), ..Ahp::default() };
    assert_eq!(value(paged.list(Some("c"))), json!({"channel": "ahp-root://", "limit": 2, "cursor": "c"}));
}

#[test]
fn only_an_offered_version_is_an_answer() {
    let ahp = Ahp::default();
    let answer = |version: &str| {
        raw(&json!({"protocolVersion": version, "serverSeq": 5, "snapshots": [
            {"resource": "ahp-root://", "state": {"agents": []}, "fromSeq": 4}],
            "serverInfo": {"name": "h"}, "defaultDirectory": "file:///h"}))
    };
    let initialized = ahp.initialized(&answer("1.0.0")).unwrap();
    assert_eq!(initialized.server.version, Version::new(1, 0, 0));
    assert_eq!(initialized.server.default_directory.as_deref(), Some("file:///h"));
    assert!(initialized.snapshots[0].state.root().is_some());
    for other in ["0.9.0", "1.1.0", "1", "soon"] {
        assert!(ahp.initialized(&answer(other)).is_err(), "{other}");
    }
}

#[test]
fn a_reconnect_is_a_replay_with_what_is_missing_or_snapshots() {
    let ahp = Ahp::default();
    let replay = json!({"type": "replay", "missing": ["ahp-chat:/gone"], "actions": [
        {"channel": CHAT, "serverSeq": 6, "action": {"type": "chat/draftChanged"}},
        {"channel": CHAT, "serverSeq": 7, "action": {"type": "later/thing"}, "origin": {"clientId": "b", "clientSeq": 1}}]});
    let ReconnectResponse::Replay { envelopes, missing } = ahp.reconnected(&raw(&replay)).unwrap() else { panic!() };
    assert_eq!(missing, ["ahp-chat:/gone"]);
    assert_eq!(envelopes[0].content.as_ref().unwrap().resource, CHAT);
    assert_eq!((envelopes[1].server_seq, envelopes[1].content.is_none()), (7, true));
    let root = json!({"resource": "ahp-root://", "state": {"agents": []}, "fromSeq": 4});
    let snapshots = json!({"type": "snapshot", "snapshots": [root]});
    assert!(matches!(ahp.reconnected(&raw(&snapshots)), Ok(ReconnectResponse::Snapshots(all)) if all.len() == 1));
    assert!(ahp.reconnected(&raw(&json!({"type": "else"}))).is_err());
    let stateless = ahp.subscribed("ahp-otlp:/logs", &raw(&json!({}))).unwrap_err();
    assert!(stateless.to_string().contains("no state"), "{stateless}");
}

#[test]
fn notifications_are_actions_news_of_the_list_or_somebody_elses() {
    let broken = |rejection: Value| {
        let mut envelope = json!({"channel": CHAT, "serverSeq": 1, "action": {"type": "chat/delta", "turnId": "t"}});
        envelope["rejectionReason"] = rejection;
        notified("action", envelope)
    };
    assert!(broken(Value::Null).is_err(), "a state cannot be kept without it");
    assert!(matches!(broken("no".into()), Ok(IncomingNotification::Action(envelope)) if envelope.content.is_none()));
    let removed = json!({"channel": "ahp-root://", "session": "s:/1"});
    assert!(matches!(notified("root/sessionRemoved", removed), Ok(IncomingNotification::List(ListChange::Removed(_)))));
    let changed = json!({"channel": "ahp-root://", "session": "s:/1", "changes": {"title": "New", "status": 8}});
    let Ok(IncomingNotification::List(ListChange::Changed { patch, .. })) =
        notified("root/sessionSummaryChanged", changed)
    else {
        panic!()
    };
    let mut row = SessionSummary { title: "Old".to_owned(), activity: Some("a".to_owned()), ..Default::default() };
    Ahp::patch(&mut row, &patch);
    assert_eq!((row.title.as_str(), row.status, row.activity.as_deref()), ("New", 8, Some("a")));
    let progress = json!({"channel": "ahp-root://", "progressToken": "t", "progress": 1});
    assert!(matches!(notified("root/progress", progress), Ok(IncomingNotification::Other)));
    assert!(matches!(notified("x-grove/else", json!({})), Ok(IncomingNotification::Other)));
}

#[test]
fn only_what_a_client_may_ask_of_a_channel_in_its_version_is_sent() {
    let ahp = Ahp::default();
    let now = server(ahp::version::CURRENT);
    let complete = ChatTurnComplete { turn_id: "t".to_owned(), duration: 0, meta: None };
    let refused = ahp.address(&now, CHAT, Action::Chat(ChatAction::TurnComplete(complete)));
    assert_eq!(refused, Err(Unsupported::ByClients { what: "chat/turnComplete".to_owned() }));
    for wrong in [ROOT, "scripted:/1", "ahp-session:/1", "ahp-resource-watch:/1"] {
        let refused = ahp.address(&now, wrong, draft());
        assert!(matches!(refused, Err(Unsupported::ByResource { .. })), "{wrong}: {refused:?}");
    }
    let title = || Action::Session(SessionAction::TitleChanged(SessionTitleChanged { title: "t".to_owned() }));
    for right in ["scripted:/1", CHAT] {
        assert!(ahp.address(&now, right, title()).is_ok(), "{right}");
    }
    assert!(ahp.address(&now, ROOT, title()).is_err());
    let refused = ahp.address(&server(Version::new(0, 8, 0)), CHAT, draft());
    assert!(matches!(refused, Err(Unsupported::ByVersion { version, .. }) if version == "0.8.0"));
}

#[test]
fn chats_go_with_their_session_however_it_is_spelled() {
    let ahp = Ahp::default();
    let main = "ahp-chat://default/c2NyaXB0ZWQ6L3Mx";
    for with in ["scripted:/s1", "ahp-session:/s1", main, "ahp-chat:/s1", "ahp-chat://side/c2NyaXB0ZWQ6L3Mx"] {
        assert!(ahp.belongs_to_session("scripted:/s1", None, with), "{with}");
        assert!(!ahp.belongs_to_session("scripted:/s2", None, with), "{with}");
    }
    assert!(!ahp.belongs_to_session("scripted:/s1", None, ROOT));
    let chats = vec![ahp::SessionChatSummary { resource: "ahp-chat:/else".to_owned(), ..Default::default() }];
    let row = SessionSummary { chats: Some(chats), ..SessionSummary::default() };
    assert!(!ahp.belongs_to_session("scripted:/s1", None, "ahp-chat:/else"));
    assert!(ahp.belongs_to_session("scripted:/s1", Some(&row), "ahp-chat:/else"), "the list says so");
}
