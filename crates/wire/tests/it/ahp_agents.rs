//! The examples in `docs/ahp.md` are what the host sends for agents' data.

use grove_core::*;
use grove_wire::ahp::project;
use grove_wire::ahp::schema::SchemaValidator;
use grove_wire::v1;
use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("../../../../docs/ahp.md");

/// The examples of the document, in their order.
fn examples() -> Vec<Value> {
    let blocks = DOCUMENT.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(|block| serde_json::from_str(block).unwrap_or_else(|error| panic!("{error}: {block}"))).collect()
}

fn session() -> SessionId {
    "s1".into()
}

fn plan() -> Part {
    let entry = |content: &str, priority, status| PlanEntry { content: content.into(), priority, status };
    Part::Plan(vec![
        entry("Read it", PlanPriority::High, PlanStatus::Completed),
        entry("Change it", PlanPriority::Medium, PlanStatus::InProgress),
        entry("Test it", PlanPriority::Low, PlanStatus::Pending),
    ])
}

fn notice() -> Part {
    Part::Notice("The model did not answer: trying again".into())
}

fn part(part: &Part) -> Value {
    serde_json::to_value(project::part(&session(), part).unwrap()).unwrap()
}

fn gave() -> Vec<ToolAttachment> {
    let body = |id: &str, size, kind: &str| ContentRef { id: id.into(), size, mime_type: Some(kind.into()) };
    vec![
        ToolAttachment::Edit(FileChange {
            path: "/project/a.rs".into(),
            before: Some(body("b4", 9, "text/plain")),
            after: Some(body("af", 12, "text/plain")),
            added: 2,
            removed: 1,
        }),
        ToolAttachment::Content(body("pic", 700, "image/png")),
    ]
}

fn usage() -> Usage {
    Usage {
        input_tokens: Some(900),
        output_tokens: Some(80),
        model: None,
        cache_read_tokens: Some(700),
        cache_write_tokens: Some(100),
        reasoning_tokens: Some(60),
        context: Some(ContextUsage { used: 1_600, size: 200_000 }),
        cost: Some(Cost { amount: Number::from_f64(0.0125).unwrap(), currency: "USD".into() }),
    }
}

fn object(value: Value) -> Extra {
    value.as_object().cloned().unwrap()
}

fn details() -> SessionDetails {
    let mode = json!({"type": "string", "title": "Mode", "enum": ["ask", "code"]});
    SessionDetails {
        settings: Some(object(json!({"type": "object", "properties": {"mode": mode}}))),
        commands: vec![AgentCommand {
            name: "review".into(),
            description: "Looks at what has changed".into(),
            hint: Some("a branch".into()),
        }],
        remembered: vec![RememberedPermission {
            kind: PermissionKind::Shell,
            about: "make test".into(),
            option: PermissionOption { id: "always".into(), label: "Always".into(), allows: true, lasting: true },
        }],
        permissions: Some(Permissions {
            approved: vec![PermissionRule { kind: PermissionKind::Shell, argument: Some("git:*".into()) }],
            ..Permissions::default()
        }),
        warnings: vec!["Another session's agent works in this folder too".into()],
        workspace: Some(WorkspaceDetails {
            plan: Some(Timestamp(1_760_090_400_000)),
            files: Some(Timestamp(1_760_090_401_000)),
            checkpoints: 2,
        }),
        unsaved: None,
        moved_to: None,
        moved_from: None,
        imported_from: None,
    }
}

#[test]
fn the_examples_of_the_document_are_what_is_served() {
    let said = object(json!({"locations": [{"path": "/project/a.rs", "line": 7}]}));
    let result = ToolResult {
        success: true,
        past_tense_message: "Changed".into(),
        output: Some("Changed a.rs".into()),
        attached: gave(),
        extra: None,
    };
    let served = [
        part(&plan()),
        part(&notice()),
        json!(project::call_meta(Some(ToolKind::Edit), None, Some(&said), Some(1_250))),
        json!(project::result(&session(), &result).content),
        json!(project::usage(&usage())),
        json!(project::details(&details())),
    ];
    assert_eq!(examples(), served);
}

#[test]
fn what_is_served_has_the_shape_of_the_protocol() {
    let closed = SchemaValidator::new();
    let [plan, notice, _, content, usage, _] = &examples()[..] else { panic!("other examples than are known") };
    for part in [plan, notice] {
        closed.named("ResponsePart", part).unwrap();
        serde_json::from_value::<ahp_types::state::ResponsePart>(part.clone()).unwrap();
    }
    for content in content.as_array().unwrap() {
        closed.named("ToolResultContent", content).unwrap();
        let theirs: ahp_types::state::ToolResultContent = serde_json::from_value(content.clone()).unwrap();
        assert!(!format!("{theirs:?}").starts_with("Unknown"), "{content}");
    }
    closed.named("UsageInfo", usage).unwrap();
}

#[test]
fn a_running_call_shows_what_it_has_given_so_far_with_its_text_or_without_it() {
    let kinds = |text: &str, attached: Vec<ToolAttachment>| -> Vec<Value> {
        let output = ToolOutput { text: text.into(), pieces: None, attached };
        let content = json!(project::output(&session(), &output));
        content.as_array().unwrap().iter().map(|content| content["type"].clone()).collect()
    };
    assert_eq!(kinds("half", gave()), ["text", "fileEdit", "resource"]);
    assert_eq!(kinds("", gave()), ["fileEdit", "resource"]);
    assert_eq!(kinds("", vec![]), ["text"], "a call that has put out nothing says so");
}

#[test]
fn a_snapshot_has_the_newest_schema_of_the_settings() {
    let new = NewSession {
        id: session(),
        uri: "scripted:/s1".into(),
        agent: "scripted".into(),
        model: None,
        working_directories: vec![],
        config: Some(SessionConfig::of(object(json!({"mode": "ask"})))),
        store: StoreName::default(),
    };
    let mut session = Session::new(&new, Timestamp(1));
    let served = |session: &Session| {
        let names = grove_wire::ahp::uri::SessionUris::of(session);
        json!(project::session(session, &names, grove_wire::ahp::uri::Spelling::Plain))
    };
    assert_eq!(served(&session)["config"]["schema"]["properties"], json!({}));
    assert_eq!(served(&session).get("_meta"), None, "nothing is known yet");
    session.details = details();
    let state = served(&session);
    assert_eq!(state["config"], json!({"schema": state["_meta"]["settings"], "values": {"mode": "ask"}}));
    session.config = None;
    assert_eq!(served(&session).get("config"), None, "a schema without values is told, and no settings are made of it");
}

#[test]
fn each_entry_of_a_plan_is_one_line_of_its_text() {
    let entry = |status| PlanEntry { content: " Read it,\n\nthen  go \n".into(), priority: PlanPriority::Low, status };
    let plan = [PlanStatus::Completed, PlanStatus::InProgress, PlanStatus::Pending].map(entry);
    let text = "- [x] Read it, then go\n- [ ] **Read it, then go**\n- [ ] Read it, then go";
    assert_eq!(v1::project::plan_text(&plan), text);
}

#[test]
fn version_1_reads_plans_and_notices_as_text() {
    let mut session = {
        let new = NewSession {
            id: session(),
            uri: "scripted:/s1".into(),
            agent: "scripted".into(),
            model: None,
            working_directories: vec![],
            config: None,
            store: StoreName::default(),
        };
        Session::new(&new, Timestamp(1))
    };
    let chat = ChatId::from(Session::MAIN_CHAT);
    let message = Message::user("go");
    let start = ClientCommand::StartTurn { chat: chat.clone(), turn: "t1".into(), message, started_at: None };
    let mut act = |command: Command| advance(&mut session, None, command, Timestamp(2)).unwrap();
    act(Command::Client("c".into(), start));
    for part in [plan(), notice()] {
        let event = ChatEvent::PartAdded { turn: "t1".into(), part };
        act(Command::Agent(EventReport::Chat { chat: chat.clone(), event }));
    }
    let parts = v1::project::session(&session).active_turn.unwrap().response_parts;
    let texts = ["- [x] Read it\n- [ ] **Change it**\n- [ ] Test it", "The model did not answer: trying again"];
    assert_eq!(parts, texts.map(|content| v1::ResponsePart::Markdown { content: content.into() }));
}
