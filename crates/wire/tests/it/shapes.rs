//! Version 1 byte by byte: each type as its exact JSON, with every optional field and with none of them.

use std::fmt::Debug;

use grove_wire::v1::encode::{action_frame, envelope_in};
use grove_wire::v1::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Checks that `value` is written as `json`, and `json` is read as `value`.
fn shape<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T, json: &str) {
    assert_eq!(serde_json::to_string(&value).unwrap(), json);
    assert_eq!(serde_json::from_str::<T>(json).unwrap(), value);
}

/// Checks that `json` is read as a `T` and written back.
fn kept<T: Serialize + DeserializeOwned>(json: &str) {
    let value: T = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&value).unwrap(), json);
}

/// Checks that `json` cannot be read as a `T`.
fn unread<T: DeserializeOwned>(json: &str) {
    assert!(serde_json::from_str::<T>(json).is_err(), "{json}");
}

/// Checks an action of a session, with and without a timestamp.
fn action(change: SessionChange, json: &str) {
    let whole = format!(r#"{{"session":"copilot:/1",{json}}}"#);
    let dated = format!(r#"{{"session":"copilot:/1",{json},"timestamp":7}}"#);
    for (text, timestamp) in [(whole, None), (dated, Some(7))] {
        let action = SessionAction { session: "copilot:/1".into(), change: change.clone(), timestamp };
        shape(action.clone(), &text);
        let raw = RawValue::from_string(text).unwrap();
        let parsed = Action::parse(&raw).unwrap();
        assert_eq!(parsed, Action::Session(action));
        assert_eq!(serde_json::to_string(&parsed).unwrap(), raw.get());
        assert!(raw.get().contains(&format!(r#""type":"{}""#, parsed.kind().as_str())));
    }
}

fn message(text: &str) -> UserMessage {
    UserMessage { text: text.into(), attachments: None }
}

fn error() -> ErrorInfo {
    ErrorInfo { error_type: "agent".into(), message: "broke".into(), stack: None }
}

fn summary() -> SessionSummary {
    SessionSummary {
        resource: "copilot:/1".into(),
        provider: "copilot".into(),
        title: "Name".into(),
        status: SessionStatus::InProgress,
        created_at: 1,
        modified_at: 2,
        model: None,
        working_directory: None,
    }
}

const SUMMARY: &str = r#"{"resource":"copilot:/1","provider":"copilot","title":"Name","status":"in-progress","createdAt":1,"modifiedAt":2}"#;
const ERROR: &str = r#"{"errorType":"agent","message":"broke"}"#;

fn call() -> ToolCallState {
    ToolCallState {
        tool_call_id: "c1".into(),
        tool_name: "shell".into(),
        display_name: "Shell".into(),
        invocation_message: "Running ls".into(),
        tool_input: None,
        tool_kind: None,
        language: None,
        status: ToolCallStatus::Running,
        success: None,
        past_tense_message: None,
        tool_output: None,
    }
}

const CALL: &str = r#"{"toolCallId":"c1","toolName":"shell","displayName":"Shell","invocationMessage":"Running ls","status":"running"}"#;

fn request() -> PermissionRequest {
    PermissionRequest {
        request_id: "r1".into(),
        permission_kind: PermissionKind::Shell,
        tool_call_id: None,
        path: None,
        full_command_text: None,
        intention: None,
    }
}

#[test]
fn every_session_action_has_its_shape() {
    let turn_id = || "t1".to_owned();
    action(SessionChange::Ready, r#""type":"session/ready""#);
    action(
        SessionChange::CreationFailed { error: error() },
        &format!(r#""type":"session/creationFailed","error":{ERROR}"#),
    );
    action(
        SessionChange::TurnStarted { turn_id: turn_id(), user_message: message("hi") },
        r#""type":"session/turnStarted","turnId":"t1","userMessage":{"text":"hi"}"#,
    );
    action(
        SessionChange::Delta { turn_id: turn_id(), content: "a".into() },
        r#""type":"session/delta","turnId":"t1","content":"a""#,
    );
    action(
        SessionChange::ResponsePart { turn_id: turn_id(), part: ResponsePart::Markdown { content: "a".into() } },
        r#""type":"session/responsePart","turnId":"t1","part":{"kind":"markdown","content":"a"}"#,
    );
    action(
        SessionChange::ToolStart { turn_id: turn_id(), tool_call: call() },
        &format!(r#""type":"session/toolStart","turnId":"t1","toolCall":{CALL}"#),
    );
    action(
        SessionChange::ToolComplete {
            turn_id: turn_id(),
            tool_call_id: "c1".into(),
            result: ToolCallResult { success: true, past_tense_message: "Ran ls".into(), tool_output: None },
        },
        r#""type":"session/toolComplete","turnId":"t1","toolCallId":"c1","result":{"success":true,"pastTenseMessage":"Ran ls"}"#,
    );
    action(
        SessionChange::PermissionRequest { turn_id: turn_id(), request: request() },
        r#""type":"session/permissionRequest","turnId":"t1","request":{"requestId":"r1","permissionKind":"shell"}"#,
    );
    action(
        SessionChange::PermissionResolved {
            turn_id: turn_id(),
            request_id: "r1".into(),
            approved: false,
            policy_rule: None,
        },
        r#""type":"session/permissionResolved","turnId":"t1","requestId":"r1","approved":false"#,
    );
    action(SessionChange::TurnComplete { turn_id: turn_id() }, r#""type":"session/turnComplete","turnId":"t1""#);
    action(SessionChange::TurnCancelled { turn_id: turn_id() }, r#""type":"session/turnCancelled","turnId":"t1""#);
    action(
        SessionChange::Error { turn_id: turn_id(), error: error() },
        &format!(r#""type":"session/error","turnId":"t1","error":{ERROR}"#),
    );
    action(SessionChange::TitleChanged { title: "Name".into() }, r#""type":"session/titleChanged","title":"Name""#);
    let none = UsageInfo { input_tokens: None, output_tokens: None, model: None, cache_read_tokens: None };
    action(
        SessionChange::Usage { turn_id: turn_id(), usage: none },
        r#""type":"session/usage","turnId":"t1","usage":{}"#,
    );
    action(
        SessionChange::Reasoning { turn_id: turn_id(), content: "hm".into() },
        r#""type":"session/reasoning","turnId":"t1","content":"hm""#,
    );
    action(SessionChange::ModelChanged { model: "gpt".into() }, r#""type":"session/modelChanged","model":"gpt""#);
}

#[test]
fn the_root_action_has_its_shape() {
    let json = r#"{"type":"root/agentsChanged","agents":[{"provider":"copilot","displayName":"Copilot","description":"An agent","models":[]}]}"#;
    let agent = AgentInfo {
        provider: "copilot".into(),
        display_name: "Copilot".into(),
        description: "An agent".into(),
        models: vec![],
    };
    let action = RootAction::AgentsChanged { agents: vec![agent] };
    shape(action.clone(), json);
    let parsed = Action::parse(&RawValue::from_string(json.into()).unwrap()).unwrap();
    assert_eq!(parsed, Action::Root(action));
    assert_eq!(serde_json::to_string(&parsed).unwrap(), json);
}

#[test]
fn types_are_named_both_ways() {
    for kind in ActionType::ALL {
        assert_eq!(ActionType::named(kind.as_str()), Some(*kind));
    }
    for kind in NotificationType::ALL {
        assert_eq!(NotificationType::named(kind.as_str()), Some(*kind));
    }
    for method in Method::ALL {
        assert_eq!(Method::named(method.as_str()), Some(*method));
    }
    assert_eq!(ActionType::named("session/unheardOf"), None);
    assert_eq!(NotificationType::named("session/ready"), None);
    assert_eq!(Method::named("dispatchAction"), None);
}

#[test]
fn both_notifications_have_their_shape() {
    let added = Notification::SessionAdded { summary: summary() };
    let removed = Notification::SessionRemoved { session: "copilot:/1".into() };
    assert_eq!((added.kind(), removed.kind()), (NotificationType::SessionAdded, NotificationType::SessionRemoved));
    shape(
        NotificationParams { notification: added },
        &format!(r#"{{"notification":{{"type":"notify/sessionAdded","summary":{SUMMARY}}}}}"#),
    );
    shape(
        NotificationParams { notification: removed },
        r#"{"notification":{"type":"notify/sessionRemoved","session":"copilot:/1"}}"#,
    );
}

#[test]
fn an_envelope_has_its_origin_and_its_rejection_only_where_there_are_any() {
    kept::<ActionEnvelope<SessionAction>>(
        r#"{"action":{"session":"copilot:/1","type":"session/ready"},"serverSeq":5}"#,
    );
    kept::<ActionParams<SessionAction>>(
        r#"{"envelope":{"action":{"session":"copilot:/1","type":"session/turnCancelled","turnId":"t1"},"serverSeq":6,"origin":{"clientId":"me","clientSeq":1},"rejectionReason":"turn t1 is not the active turn"}}"#,
    );
}

#[test]
fn an_action_frame_gives_its_envelope_back() {
    let envelope = ActionEnvelope {
        action: Action::Session(SessionAction {
            session: "copilot:/1".into(),
            change: SessionChange::Delta { turn_id: "t1".into(), content: "}}".into() },
            timestamp: None,
        }),
        server_seq: 3,
        origin: None,
        rejection_reason: None,
    };
    let frame = action_frame(&envelope).unwrap();
    let json =
        r#"{"action":{"session":"copilot:/1","type":"session/delta","turnId":"t1","content":"}}"},"serverSeq":3}"#;
    assert_eq!(frame, format!(r#"{{"jsonrpc":"2.0","method":"action","params":{{"envelope":{json}}}}}"#));
    assert_eq!(frame, grove_wire::jsonrpc::notification(notify::ACTION, &ActionParams { envelope }).unwrap());
    assert_eq!(envelope_in(&frame), Some(json));
    assert_eq!(envelope_in("{}"), None);
}

#[test]
fn root_state_agents_and_models_have_their_shape() {
    let model = |max_context_window, supports_vision| ModelInfo {
        id: "gpt".into(),
        provider: "copilot".into(),
        name: "GPT".into(),
        max_context_window,
        supports_vision,
    };
    shape(model(None, None), r#"{"id":"gpt","provider":"copilot","name":"GPT"}"#);
    shape(
        model(Some(128_000), Some(false)),
        r#"{"id":"gpt","provider":"copilot","name":"GPT","maxContextWindow":128000,"supportsVision":false}"#,
    );
    shape(RootState { agents: vec![] }, r#"{"agents":[]}"#);
    let agent = AgentInfo {
        provider: "copilot".into(),
        display_name: "Copilot".into(),
        description: String::new(),
        models: vec![model(None, None)],
    };
    shape(
        RootState { agents: vec![agent] },
        r#"{"agents":[{"provider":"copilot","displayName":"Copilot","description":"","models":[{"id":"gpt","provider":"copilot","name":"GPT"}]}]}"#,
    );
}

#[test]
fn a_summary_has_its_shape() {
    shape(summary(), SUMMARY);
    let full = SessionSummary {
        status: SessionStatus::Idle,
        model: Some("gpt".into()),
        working_directory: Some("/project".into()),
        ..summary()
    };
    shape(
        full,
        r#"{"resource":"copilot:/1","provider":"copilot","title":"Name","status":"idle","createdAt":1,"modifiedAt":2,"model":"gpt","workingDirectory":"/project"}"#,
    );
}

#[test]
fn words_of_fixed_sets_are_spelled_as_ever() {
    shape([SessionStatus::Idle, SessionStatus::InProgress, SessionStatus::Error], r#"["idle","in-progress","error"]"#);
    shape(
        [Lifecycle::Creating, Lifecycle::Ready, Lifecycle::CreationFailed],
        r#"["creating","ready","creationFailed"]"#,
    );
    shape([TurnState::Complete, TurnState::Cancelled, TurnState::Error], r#"["complete","cancelled","error"]"#);
    shape(
        [ToolCallStatus::Running, ToolCallStatus::PendingPermission, ToolCallStatus::Completed, ToolCallStatus::Failed],
        r#"["running","pending-permission","completed","failed"]"#,
    );
    shape(
        [PermissionKind::Shell, PermissionKind::Write, PermissionKind::Mcp, PermissionKind::Read, PermissionKind::Url],
        r#"["shell","write","mcp","read","url"]"#,
    );
    shape(
        [AttachmentKind::File, AttachmentKind::Directory, AttachmentKind::Selection],
        r#"["file","directory","selection"]"#,
    );
    shape([ToolKind::Terminal], r#"["terminal"]"#);
    shape([Encoding::Base64, Encoding::Utf8], r#"["base64","utf-8"]"#);
    shape([EntryKind::File, EntryKind::Directory], r#"["file","directory"]"#);
    unread::<SessionStatus>(r#""inProgress""#);
    unread::<Lifecycle>(r#""creation-failed""#);
}

#[test]
fn a_session_state_has_its_shape() {
    let bare = SessionState {
        summary: summary(),
        lifecycle: Lifecycle::Creating,
        creation_error: None,
        turns: vec![],
        active_turn: None,
    };
    shape(bare.clone(), &format!(r#"{{"summary":{SUMMARY},"lifecycle":"creating","turns":[]}}"#));
    let active = ActiveTurn {
        id: "t1".into(),
        user_message: message("hi"),
        streaming_text: String::new(),
        response_parts: vec![],
        tool_calls: Default::default(),
        pending_permissions: Default::default(),
        reasoning: String::new(),
        usage: None,
    };
    let full = SessionState {
        lifecycle: Lifecycle::CreationFailed,
        creation_error: Some(error()),
        active_turn: Some(active),
        ..bare
    };
    shape(
        full,
        &format!(
            r#"{{"summary":{SUMMARY},"lifecycle":"creationFailed","creationError":{ERROR},"turns":[],"activeTurn":{{"id":"t1","userMessage":{{"text":"hi"}},"streamingText":"","responseParts":[],"toolCalls":{{}},"pendingPermissions":{{}},"reasoning":""}}}}"#
        ),
    );
}

#[test]
fn calls_and_permissions_of_an_active_turn_are_objects_keyed_by_id() {
    let usage = UsageInfo {
        input_tokens: Some(1),
        output_tokens: Some(2),
        model: Some("gpt".into()),
        cache_read_tokens: Some(3),
    };
    let active = ActiveTurn {
        id: "t1".into(),
        user_message: message("hi"),
        streaming_text: "so".into(),
        response_parts: vec![ResponsePart::Markdown { content: "a".into() }],
        tool_calls: [("z".to_owned(), call()), ("a".to_owned(), call())].into(),
        pending_permissions: [("r1".to_owned(), request())].into(),
        reasoning: "hm".into(),
        usage: Some(usage),
    };
    shape(
        active,
        &format!(
            r#"{{"id":"t1","userMessage":{{"text":"hi"}},"streamingText":"so","responseParts":[{{"kind":"markdown","content":"a"}}],"toolCalls":{{"z":{CALL},"a":{CALL}}},"pendingPermissions":{{"r1":{{"requestId":"r1","permissionKind":"shell"}}}},"reasoning":"hm","usage":{{"inputTokens":1,"outputTokens":2,"model":"gpt","cacheReadTokens":3}}}}"#
        ),
    );
}

#[test]
fn a_finished_turn_has_its_shape() {
    let bare = Turn {
        id: "t1".into(),
        user_message: message("hi"),
        response_parts: vec![],
        tool_calls: vec![],
        usage: None,
        state: TurnState::Complete,
        error: None,
    };
    shape(
        bare.clone(),
        r#"{"id":"t1","userMessage":{"text":"hi"},"responseParts":[],"toolCalls":[],"state":"complete"}"#,
    );
    let done = CompletedToolCall {
        tool_call_id: "c1".into(),
        tool_name: "shell".into(),
        display_name: "Shell".into(),
        success: false,
        past_tense_message: "Ran ls".into(),
        tool_output: None,
    };
    let none = UsageInfo { input_tokens: None, output_tokens: None, model: None, cache_read_tokens: None };
    let full = Turn {
        response_parts: vec![ResponsePart::Markdown { content: "a".into() }],
        tool_calls: vec![done.clone(), CompletedToolCall { tool_output: Some("x".into()), ..done }],
        usage: Some(none),
        state: TurnState::Error,
        error: Some(error()),
        ..bare
    };
    shape(
        full,
        &format!(
            r#"{{"id":"t1","userMessage":{{"text":"hi"}},"responseParts":[{{"kind":"markdown","content":"a"}}],"toolCalls":[{{"toolCallId":"c1","toolName":"shell","displayName":"Shell","success":false,"pastTenseMessage":"Ran ls"}},{{"toolCallId":"c1","toolName":"shell","displayName":"Shell","success":false,"pastTenseMessage":"Ran ls","toolOutput":"x"}}],"usage":{{}},"state":"error","error":{ERROR}}}"#
        ),
    );
}

#[test]
fn messages_parts_calls_and_permissions_have_their_shapes() {
    let attachment = |display_name| Attachment { kind: AttachmentKind::File, path: "/a".into(), display_name };
    let attached = vec![attachment(None), attachment(Some("a".into()))];
    shape(
        UserMessage { text: String::new(), attachments: Some(attached) },
        r#"{"text":"","attachments":[{"type":"file","path":"/a"},{"type":"file","path":"/a","displayName":"a"}]}"#,
    );
    let content =
        |size_hint, mime_type| ResponsePart::ContentRef { uri: "grove-content://1/abc".into(), size_hint, mime_type };
    shape(content(None, None), r#"{"kind":"contentRef","uri":"grove-content://1/abc"}"#);
    shape(
        content(Some(70_000), Some("text/plain".into())),
        r#"{"kind":"contentRef","uri":"grove-content://1/abc","sizeHint":70000,"mimeType":"text/plain"}"#,
    );
    let full = ToolCallState {
        tool_input: Some("ls".into()),
        tool_kind: Some(ToolKind::Terminal),
        language: Some("sh".into()),
        status: ToolCallStatus::Completed,
        success: Some(true),
        past_tense_message: Some("Ran ls".into()),
        tool_output: Some("x".into()),
        ..call()
    };
    shape(
        full,
        r#"{"toolCallId":"c1","toolName":"shell","displayName":"Shell","invocationMessage":"Running ls","toolInput":"ls","toolKind":"terminal","language":"sh","status":"completed","success":true,"pastTenseMessage":"Ran ls","toolOutput":"x"}"#,
    );
    shape(
        ToolCallResult { success: false, past_tense_message: "No".into(), tool_output: Some("x".into()) },
        r#"{"success":false,"pastTenseMessage":"No","toolOutput":"x"}"#,
    );
    let full = PermissionRequest {
        tool_call_id: Some("c1".into()),
        path: Some("/a".into()),
        full_command_text: Some("ls".into()),
        intention: Some("look".into()),
        ..request()
    };
    shape(
        full,
        r#"{"requestId":"r1","permissionKind":"shell","toolCallId":"c1","path":"/a","fullCommandText":"ls","intention":"look"}"#,
    );
    shape(
        ErrorInfo { stack: Some("at 1".into()), ..error() },
        r#"{"errorType":"agent","message":"broke","stack":"at 1"}"#,
    );
}

#[test]
fn every_command_has_its_params() {
    kept::<InitializeParams>(r#"{"protocolVersion":1,"clientId":"me"}"#);
    kept::<InitializeParams>(r#"{"protocolVersion":-1,"clientId":"me","initialSubscriptions":["agenthost:root"]}"#);
    kept::<InitializeParams>(
        r#"{"protocolVersion":1,"clientId":"me","clientInfo":{"name":"me","version":"1","title":"Me"}}"#,
    );
    kept::<ReconnectParams>(r#"{"clientId":"me","lastSeenServerSeq":9,"subscriptions":["copilot:/1"]}"#);
    kept::<SubscribeParams>(r#"{"resource":"copilot:/1"}"#);
    kept::<UnsubscribeParams>(r#"{"resource":"copilot:/1"}"#);
    kept::<CreateSessionParams>(r#"{"session":"copilot:/1"}"#);
    kept::<CreateSessionParams>(
        r#"{"session":"copilot:/1","provider":"copilot","model":"gpt","workingDirectory":"/project"}"#,
    );
    kept::<DisposeSessionParams>(r#"{"session":"copilot:/1"}"#);
    kept::<ListSessionsParams>("{}");
    kept::<ListSessionsParams>(r#"{"filter":{}}"#);
    kept::<ListSessionsParams>(
        r#"{"filter":{"provider":"copilot","workingDirectory":"/project","status":"idle","modifiedSince":5,"history":true}}"#,
    );
    kept::<FetchTurnsParams>(r#"{"session":"copilot:/1"}"#);
    kept::<FetchTurnsParams>(r#"{"session":"copilot:/1","before":"t1","limit":10}"#);
    kept::<FetchContentParams>(r#"{"uri":"grove-content://1/abc"}"#);
    kept::<BrowseDirectoryParams>(r#"{"uri":"file:///project"}"#);
}

#[test]
fn params_without_a_needed_field_are_not_read_and_unknown_fields_are_passed_over() {
    unread::<InitializeParams>(r#"{"clientId":"me"}"#);
    unread::<InitializeParams>(r#"{"protocolVersion":1}"#);
    unread::<ReconnectParams>(r#"{"clientId":"me"}"#);
    unread::<SubscribeParams>("{}");
    unread::<CreateSessionParams>(r#"{"provider":"copilot"}"#);
    unread::<FetchTurnsParams>(r#"{"before":"t1"}"#);
    unread::<DispatchActionParams>(r#"{"clientSeq":1}"#);
    unread::<DispatchActionParams>(r#"{"action":{}}"#);
    let filter: SessionFilter = serde_json::from_str(r#"{"colour":"green","provider":"copilot"}"#).unwrap();
    assert_eq!(filter.provider.as_deref(), Some("copilot"));
}

#[test]
fn a_dispatched_action_is_kept_as_it_came() {
    let json = r#"{"clientSeq":4,"action":{ "type" : "session/unheardOf", "z":1e2 }}"#;
    let params: DispatchActionParams = serde_json::from_str(json).unwrap();
    assert_eq!((params.client_seq, params.action.get()), (4, r#"{ "type" : "session/unheardOf", "z":1e2 }"#));
}

#[test]
fn every_command_has_its_result() {
    kept::<InitializeResult<RootState>>(r#"{"protocolVersion":1,"serverSeq":0,"snapshots":[]}"#);
    kept::<InitializeResult<RootState>>(
        r#"{"protocolVersion":1,"serverSeq":7,"snapshots":[{"resource":"agenthost:root","state":{"agents":[]},"fromSeq":7}],"defaultDirectory":"/home/me"}"#,
    );
    type Reconnected = ReconnectResult<ActionEnvelope<SessionAction>, RootState>;
    kept::<Reconnected>(
        r#"{"type":"replay","actions":[{"action":{"session":"copilot:/1","type":"session/ready"},"serverSeq":5}]}"#,
    );
    kept::<Reconnected>(
        r#"{"type":"snapshot","snapshots":[{"resource":"agenthost:root","state":{"agents":[]},"fromSeq":7}]}"#,
    );
    kept::<Snapshot<RootState>>(r#"{"resource":"agenthost:root","state":{"agents":[]},"fromSeq":7}"#);
    kept::<ListSessionsResult>(&format!(r#"{{"sessions":[{SUMMARY}]}}"#));
    kept::<FetchTurnsResult>(r#"{"turns":[],"hasMore":false}"#);
    kept::<FetchContentResult>(r#"{"data":"aGk=","encoding":"base64"}"#);
    kept::<FetchContentResult>(r#"{"data":"hi","encoding":"utf-8","mimeType":"text/plain"}"#);
    kept::<BrowseDirectoryResult>(r#"{"entries":[{"name":"src","type":"directory"},{"name":"a","type":"file"}]}"#);
}

#[test]
fn a_filter_takes_the_sessions_that_meet_all_its_wishes() {
    let summary = SessionSummary { working_directory: Some("/project".into()), ..summary() };
    let takes = |json: &str| serde_json::from_str::<SessionFilter>(json).unwrap().takes(&summary);
    for wanted in [
        "{}",
        r#"{"provider":"copilot"}"#,
        r#"{"workingDirectory":"/project"}"#,
        r#"{"status":"in-progress"}"#,
        r#"{"modifiedSince":2}"#,
        r#"{"provider":"copilot","status":"in-progress","history":true}"#,
    ] {
        assert!(takes(wanted), "{wanted}");
    }
    for other in [
        r#"{"provider":"claude"}"#,
        r#"{"workingDirectory":"/"}"#,
        r#"{"status":"idle"}"#,
        r#"{"modifiedSince":3}"#,
        r#"{"provider":"copilot","status":"error"}"#,
    ] {
        assert!(!takes(other), "{other}");
    }
}

#[test]
fn the_root_has_two_spellings_and_content_uris_name_session_and_body() {
    assert!(is_root("agenthost:root") && is_root("agenthost:/root"));
    assert!(!is_root("agenthost:") && !is_root("agenthost:/root/"));
    let uri = project::content_uri(&"s1".into(), &"abc".into());
    assert_eq!(uri, "grove-content://s1/abc");
    assert_eq!(project::parse_content_uri(&uri), Some(("s1".into(), "abc".into())));
    for other in ["grove-content://s1", "grove-content://s1/", "grove-content:///abc", "file:///s1/abc", ""] {
        assert_eq!(project::parse_content_uri(other), None, "{other}");
    }
}
