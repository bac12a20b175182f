//! The types of the Agent Host Protocol: they read and write the same as the published crate, and they are strict where
//! it is not.

use std::collections::BTreeSet;
use std::fmt::Debug;

use ahp_types as published;
use grove_wire::ahp::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::ahp_samples as samples;

/// Checks that `T` reads `json` and writes it back, from a value and from text.
fn kept<T: Serialize + DeserializeOwned + PartialEq + Debug>(what: &str, json: &Value) -> T {
    let read: T = serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(&serde_json::to_value(&read).unwrap(), json, "{what}");
    let from_text: T = serde_json::from_str(&json.to_string()).unwrap();
    assert_eq!(from_text, read, "{what}");
    read
}

/// Checks that the published type reads `json` without its own unknown, and writes it back.
///
/// One thing fails: its tool call that waits for a token wants `status` both as tag and as field, so it never reads
/// one. Such a sample is only compared.
fn published<T: Serialize + DeserializeOwned + Debug>(what: &str, json: &Value) {
    let read: T = serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(&serde_json::to_value(&read).unwrap(), json, "{what}");
    if !json.to_string().contains(r#""status":"auth-required""#) {
        assert!(!format!("{read:?}").contains("Unknown("), "{what} is unknown to the published types: {read:?}");
    }
}

#[test]
fn every_action_is_the_published_one_in_both_directions() {
    let mut seen = BTreeSet::new();
    for sample in samples::actions() {
        let kind = sample["type"].as_str().unwrap().to_owned();
        let action: Action = kept(&kind, &sample);
        assert!(!matches!(action, Action::Unknown(_)), "{kind}");
        assert_eq!(action.kind(), kind);
        assert_eq!(Action::parse(&sample.to_string()).unwrap(), action, "{kind}");
        published::<published::actions::StateAction>(&kind, &sample);

        let envelope = json!({ "channel": "c", "action": sample, "serverSeq": 1 });
        kept::<ActionEnvelope>(&kind, &envelope);
        published::<published::actions::ActionEnvelope>(&kind, &envelope);
        seen.insert(kind);
    }
    let known: BTreeSet<String> = Action::kinds().map(|(kind, _)| kind.to_owned()).collect();
    assert_eq!(seen, known);
    assert_eq!(known.len(), 96, "106 in the protocol, less nine of automations and one of canvases");
}

#[test]
fn every_state_is_the_published_one() {
    for sample in samples::snapshots() {
        let what = sample["resource"].as_str().unwrap();
        let snapshot: Snapshot = kept(what, &sample);
        assert!(!matches!(snapshot.state, SnapshotState::Unknown(_)), "{what}");
        published::<published::state::Snapshot>(what, &sample);
    }
}

#[test]
fn every_request_is_the_published_one() {
    use published::commands as theirs;
    for (method, params) in samples::requests() {
        macro_rules! same {
            ($ours:ty, $theirs:ty) => {{
                kept::<$ours>(method, &params);
                published::<$theirs>(method, &params);
            }};
        }
        match Method::named(method).unwrap() {
            Method::Initialize => same!(InitializeParams, theirs::InitializeParams),
            Method::Ping => drop(kept::<ChannelParams>(method, &params)),
            Method::Reconnect => same!(ReconnectParams, theirs::ReconnectParams),
            Method::Subscribe => same!(SubscribeParams, theirs::SubscribeParams),
            Method::ListSessions => same!(ListSessionsParams, theirs::ListSessionsParams),
            Method::CreateSession => same!(CreateSessionParams, theirs::CreateSessionParams),
            Method::DisposeSession => same!(ChannelParams, theirs::DisposeSessionParams),
            Method::CreateChat => same!(CreateChatParams, theirs::CreateChatParams),
            Method::DisposeChat => same!(ChannelParams, theirs::DisposeChatParams),
            Method::MoveChat => same!(MoveChatParams, theirs::MoveChatParams),
            Method::FetchTurns => same!(FetchTurnsParams, theirs::FetchTurnsParams),
            Method::Completions => same!(CompletionsParams, theirs::CompletionsParams),
            Method::ResolveSessionConfig => same!(ResolveSessionConfigParams, theirs::ResolveSessionConfigParams),
            Method::SessionConfigCompletions => {
                same!(SessionConfigCompletionsParams, theirs::SessionConfigCompletionsParams)
            }
            Method::Authenticate => same!(AuthenticateParams, theirs::AuthenticateParams),
            Method::CreateTerminal => same!(CreateTerminalParams, theirs::CreateTerminalParams),
            Method::DisposeTerminal => same!(ChannelParams, theirs::DisposeTerminalParams),
            Method::ResourceRead => same!(ResourceReadParams, theirs::ResourceReadParams),
            Method::ResourceWrite => same!(ResourceWriteParams, theirs::ResourceWriteParams),
            Method::ResourceList => same!(ResourceListParams, theirs::ResourceListParams),
            Method::ResourceResolve => same!(ResourceResolveParams, theirs::ResourceResolveParams),
            Method::ResourceMkdir => same!(ResourceMkdirParams, theirs::ResourceMkdirParams),
            Method::ResourceDelete => same!(ResourceDeleteParams, theirs::ResourceDeleteParams),
            Method::ResourceCopy => same!(ResourceCopyParams, theirs::ResourceCopyParams),
            Method::ResourceMove => same!(ResourceMoveParams, theirs::ResourceMoveParams),
            Method::ResourceRequest => same!(ResourceRequestParams, theirs::ResourceRequestParams),
            Method::CreateResourceWatch => same!(CreateResourceWatchParams, theirs::CreateResourceWatchParams),
            Method::InvokeChangesetOperation => {
                same!(InvokeChangesetOperationParams, theirs::InvokeChangesetOperationParams)
            }
            Method::ListAutomationTriggerDefinitions | Method::RunAutomation | Method::FetchAutomationRuns => {
                panic!("automations are not spoken")
            }
        }
    }
    let unsubscribe = json!({ "channel": "c" });
    kept::<UnsubscribeParams>("unsubscribe", &unsubscribe);
    published::<theirs::UnsubscribeParams>("unsubscribe", &unsubscribe);
}

#[test]
fn every_result_is_the_published_one() {
    use published::commands as theirs;
    for (method, result) in samples::results() {
        macro_rules! same {
            ($ours:ty, $theirs:ty) => {{
                kept::<$ours>(method, &result);
                published::<$theirs>(method, &result);
            }};
        }
        match Method::named(method).unwrap() {
            Method::Initialize => same!(InitializeResult, theirs::InitializeResult),
            Method::Reconnect => same!(ReconnectResult, theirs::ReconnectResult),
            Method::Subscribe => same!(SubscribeResult, theirs::SubscribeResult),
            Method::ListSessions => same!(ListSessionsResult, theirs::ListSessionsResult),
            Method::MoveChat => same!(MoveChatResult, theirs::MoveChatResult),
            Method::FetchTurns => same!(EmptyResult, theirs::FetchTurnsResult),
            Method::Completions => same!(CompletionsResult, theirs::CompletionsResult),
            Method::ResolveSessionConfig => same!(ResolveSessionConfigResult, theirs::ResolveSessionConfigResult),
            Method::SessionConfigCompletions => {
                same!(SessionConfigCompletionsResult, theirs::SessionConfigCompletionsResult)
            }
            Method::Authenticate => same!(EmptyResult, theirs::AuthenticateResult),
            Method::ResourceRead => same!(ResourceReadResult, theirs::ResourceReadResult),
            Method::ResourceWrite => same!(EmptyResult, theirs::ResourceWriteResult),
            Method::ResourceList => same!(ResourceListResult, theirs::ResourceListResult),
            Method::ResourceResolve => same!(ResourceResolveResult, theirs::ResourceResolveResult),
            Method::ResourceMkdir => same!(EmptyResult, theirs::ResourceMkdirResult),
            Method::ResourceDelete => same!(EmptyResult, theirs::ResourceDeleteResult),
            Method::ResourceCopy => same!(EmptyResult, theirs::ResourceCopyResult),
            Method::ResourceMove => same!(EmptyResult, theirs::ResourceMoveResult),
            Method::ResourceRequest => same!(EmptyResult, theirs::ResourceRequestResult),
            Method::CreateResourceWatch => same!(CreateResourceWatchResult, theirs::CreateResourceWatchResult),
            Method::InvokeChangesetOperation => {
                same!(InvokeChangesetOperationResult, theirs::InvokeChangesetOperationResult)
            }
            _ => kept::<()>(method, &result),
        }
    }
}

#[test]
fn every_notification_is_the_published_one() {
    use published::notifications as theirs;
    for (method, params) in samples::notifications() {
        let method = NotificationMethod::named(method).unwrap();
        let read = Notification::parse(method, &params.to_string()).unwrap();
        assert_eq!(read.method(), method);
        assert_eq!(serde_json::to_value(&read).unwrap(), params);
        match method {
            NotificationMethod::SessionAdded => published::<theirs::SessionAddedParams>("added", &params),
            NotificationMethod::SessionRemoved => published::<theirs::SessionRemovedParams>("removed", &params),
            NotificationMethod::SessionSummaryChanged => {
                published::<theirs::SessionSummaryChangedParams>("changed", &params);
            }
            NotificationMethod::Progress => published::<theirs::ProgressParams>("progress", &params),
            NotificationMethod::AuthRequired => published::<theirs::AuthRequiredParams>("auth", &params),
        }
    }
    assert_eq!(samples::notifications().len(), NotificationMethod::ALL.len());
}

#[test]
fn errors_are_the_published_ones() {
    use published::errors::{ahp_error_codes as theirs, json_rpc_error_codes as rpc};
    for error in samples::errors() {
        kept::<ErrorObject>("error", &error);
    }
    let pairs = [
        (error_code::PARSE_ERROR, rpc::PARSE_ERROR),
        (error_code::INVALID_REQUEST, rpc::INVALID_REQUEST),
        (error_code::METHOD_NOT_FOUND, rpc::METHOD_NOT_FOUND),
        (error_code::INVALID_PARAMS, rpc::INVALID_PARAMS),
        (error_code::INTERNAL_ERROR, rpc::INTERNAL_ERROR),
        (error_code::SESSION_NOT_FOUND, theirs::SESSION_NOT_FOUND),
        (error_code::PROVIDER_NOT_FOUND, theirs::PROVIDER_NOT_FOUND),
        (error_code::SESSION_ALREADY_EXISTS, theirs::SESSION_ALREADY_EXISTS),
        (error_code::TURN_IN_PROGRESS, theirs::TURN_IN_PROGRESS),
        (error_code::UNSUPPORTED_PROTOCOL_VERSION, theirs::UNSUPPORTED_PROTOCOL_VERSION),
        (error_code::AUTH_REQUIRED, theirs::AUTH_REQUIRED),
        (error_code::NOT_FOUND, theirs::NOT_FOUND),
        (error_code::PERMISSION_DENIED, theirs::PERMISSION_DENIED),
        (error_code::ALREADY_EXISTS, theirs::ALREADY_EXISTS),
        (error_code::CONFLICT, theirs::CONFLICT),
    ];
    for (ours, theirs) in pairs {
        assert_eq!(ours, i64::from(theirs));
    }
}

#[test]
fn words_are_the_published_ones() {
    use published::notifications::AuthRequiredReason as TheirReason;
    use published::state as theirs;
    for (name, words) in samples::words() {
        for word in words {
            let word = json!(word);
            macro_rules! same {
                ($ours:ty, $theirs:ty) => {{
                    let ours = kept::<$ours>(name, &word);
                    assert!(!format!("{ours:?}").contains("Unknown("), "{name} {word}");
                    published::<$theirs>(name, &word);
                }};
            }
            match name {
                "SessionLifecycle" => same!(SessionLifecycle, theirs::SessionLifecycle),
                "ChangesetStatus" => same!(ChangesetStatus, theirs::ChangesetStatus),
                "McpAuthRequiredReason" => same!(McpAuthRequiredReason, theirs::McpAuthRequiredReason),
                "AuthRequiredReason" => same!(AuthRequiredReason, TheirReason),
                "ChatInputResponseKind" => same!(ChatInputResponseKind, theirs::ChatInputResponseKind),
                "ChatInteractivity" => same!(ChatInteractivity, theirs::ChatInteractivity),
                "CustomizationType" => same!(CustomizationType, theirs::CustomizationType),
                "ToolCallCancellationReason" => same!(ToolCallCancellationReason, theirs::ToolCallCancellationReason),
                other => panic!("there is no list {other}"),
            }
        }
    }
}

#[test]
fn status_bits_are_the_published_ones() {
    use published::state::SessionStatus as Theirs;
    let pairs = [
        (status::IDLE, Theirs::Idle),
        (status::ERROR, Theirs::Error),
        (status::IN_PROGRESS, Theirs::InProgress),
        (status::INPUT_NEEDED, Theirs::InputNeeded),
        (status::IS_READ, Theirs::IsRead),
        (status::IS_ARCHIVED, Theirs::IsArchived),
    ];
    for (ours, theirs) in pairs {
        assert_eq!(ours, theirs.bits());
    }
    let strange = 1 << 31 | status::IS_READ | status::INPUT_NEEDED;
    assert_eq!(status::with_activity(strange, status::IDLE), 1 << 31 | status::IS_READ | status::IDLE);
    assert_eq!(status::with_flag(strange, status::IS_READ, false), 1 << 31 | status::INPUT_NEEDED);
}

#[test]
fn there_are_thirty_one_methods_and_each_is_found_by_its_name() {
    assert_eq!(Method::ALL.len(), 31);
    for method in Method::ALL {
        assert_eq!(Method::named(method.as_str()), Some(*method));
    }
    assert_eq!(Method::named("fetchContent"), None);
}

#[test]
fn a_known_action_without_a_field_that_it_must_have_is_an_error_that_names_it() {
    for sample in samples::actions() {
        let kind = sample["type"].as_str().unwrap();
        for (key, left) in samples::without_each_key(&sample) {
            let read = serde_json::from_value::<Action>(left.clone());
            assert_eq!(read.is_ok(), Action::parse(&left.to_string()).is_ok(), "{kind} without {key}");
            match read {
                // It may be absent: then it stays absent.
                Ok(action) => assert_eq!(serde_json::to_value(&action).unwrap(), left),
                Err(error) => {
                    assert!(error.to_string().contains(&format!("`{key}`")), "{kind} without {key}: {error}");
                }
            }
        }
    }
}

#[test]
fn a_known_action_with_a_field_of_the_wrong_type_is_an_error_that_says_where() {
    let malformed = [
        (json!({ "type": "chat/turnCancelled", "turnId": "t", "duration": "soon" }), "duration"),
        (json!({ "type": "root/activeSessionsChanged", "activeSessions": -1 }), "activeSessions"),
        (json!({ "type": "session/isReadChanged", "isRead": null }), "isRead"),
        (json!({ "type": "chat/responsePart", "turnId": "t", "part": { "kind": "markdown", "id": 4 } }), "part"),
        (json!({ "type": "chat/responsePart", "turnId": "t", "part": { "kind": "markdown", "id": "p" } }), "content"),
        (json!({ "type": "chat/responsePart", "turnId": "t", "part": { "id": "p" } }), "kind"),
        (json!({ "type": "chat/error", "turnId": "t", "duration": 1, "part": { "kind": "markdown" } }), "part"),
        (json!({ "type": "session/chatAdded", "summary": { "resource": "r", "title": 1 } }), "summary.title"),
        (
            json!({
                "type": "chat/turnStarted", "turnId": "t", "startedAt": "", "message": { "text": "", "origin": {} },
            }),
            "message.origin",
        ),
        (json!({ "type": 4 }), "type"),
        (json!({ "title": "x" }), "type"),
        (json!("session/ready"), "type"),
    ];
    for (action, place) in malformed {
        for error in [
            serde_json::from_value::<Action>(action.clone()).unwrap_err().to_string(),
            Action::parse(&action.to_string()).unwrap_err().to_string(),
        ] {
            assert!(error.contains(place), "{action}: {error}");
        }
    }
}

#[test]
fn what_is_unknown_is_kept_as_it_came() {
    let unknown = [
        json!({ "type": "future/newAction", "foo": 42, "deep": { "null": null, "list": [1, 2.5, "x"] } }),
        json!({ "type": "chat/newAction", "turnId": 4 }),
        json!({ "type": "canvas/stateChanged", "canvas": {} }),
        json!({ "type": "automation/removed", "resource": "r" }),
        json!({ "type": "x-vendor" }),
    ];
    for action in unknown {
        let read: Action = kept("unknown", &action);
        assert_eq!(read.kind(), action["type"]);
        assert!(matches!(read, Action::Unknown(_)));
        assert!(!is_client_dispatchable(read.kind()));
        kept::<ActionEnvelope>("unknown", &json!({ "channel": "c", "action": action, "serverSeq": 1 }));
    }
    let part = json!({ "kind": "hologram", "size": [1, 2], "null": null });
    assert_eq!(kept::<ResponsePart>("part", &part), ResponsePart::Unknown(part.clone()));
    kept::<Action>("part", &json!({ "type": "chat/responsePart", "turnId": "t", "part": part }));
    assert_eq!(kept::<MessageKind>("word", &json!("oracle")), MessageKind::Unknown("oracle".into()));
    kept::<SnapshotState>("state", &json!({ "entries": [] }));
}

#[test]
fn a_union_takes_as_unknown_only_what_has_an_unknown_tag() {
    let read = |value: Value| serde_json::from_value::<ToolCallState>(value);
    assert!(matches!(read(json!({ "status": "dreaming" })), Ok(ToolCallState::Unknown(_))));
    for malformed in [
        json!({ "status": "running" }),
        json!({ "status": "streaming", "toolCallId": 1, "toolName": "n", "displayName": "d" }),
        json!({ "status": null }),
        json!({}),
        json!("running"),
        json!(["running"]),
        json!(null),
    ] {
        assert!(read(malformed.clone()).is_err(), "{malformed}");
    }
    // The published types read it as unknown, which is why they are not used here.
    let malformed = json!({ "status": "running" });
    assert!(matches!(
        serde_json::from_value::<published::state::ToolCallState>(malformed),
        Ok(published::state::ToolCallState::Unknown(_))
    ));
}

#[test]
fn keys_that_nobody_knows_are_ignored() {
    let action = json!({ "type": "session/titleChanged", "title": "t", "colour": "red" });
    let read: Action = serde_json::from_value(action).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), json!({ "type": "session/titleChanged", "title": "t" }));
}

#[test]
fn what_a_client_dispatches_is_kept_as_it_was_written() {
    let text = r#"{"channel":"c","clientSeq":3,"action":{"title": "t","colour":"red","type":"session/titleChanged"}}"#;
    let params: DispatchActionParams = serde_json::from_str(text).unwrap();
    assert_eq!(params.action.get(), r#"{"title": "t","colour":"red","type":"session/titleChanged"}"#);
    assert_eq!(params.action().unwrap().kind(), "session/titleChanged");
    let echoed = ActionEnvelope {
        channel: params.channel,
        action: params.action,
        server_seq: 1,
        origin: None,
        rejection_reason: None,
    };
    assert_eq!(
        serde_json::to_string(&echoed).unwrap(),
        r#"{"channel":"c","action":{"title": "t","colour":"red","type":"session/titleChanged"},"serverSeq":1}"#
    );
}

#[test]
fn answers_keep_their_order() {
    let skipped = r#"{"state":"skipped"}"#;
    let answers = format!(r#"{{"z":{skipped},"a":{skipped},"m":{skipped}}}"#);
    let text = format!(r#"{{"type":"chat/inputCompleted","requestId":"r","response":"accept","answers":{answers}}}"#);
    assert_eq!(serde_json::to_string(&Action::parse(&text).unwrap()).unwrap(), text);
}

#[test]
fn reconnect_is_told_apart_by_its_shape() {
    let watermark = json!({ "clientId": "c", "lastSeenServerSeq": 7, "subscriptions": ["a", "b"] });
    let (cursors, result) = samples::cursors();
    let ReconnectParams::Watermark(old) = kept::<ReconnectParams>("watermark", &watermark) else { panic!() };
    assert_eq!(old.channel, None, "VS Code leaves the channel out");
    let new = kept::<ReconnectParams>("cursors", &cursors);
    assert!(matches!(new, ReconnectParams::Cursors(_)));
    assert_eq!(new.cursors(), [ChannelReplayCursor { channel: ROOT.into(), last_seen_server_seq: 0 }]);
    assert_eq!(
        ReconnectParams::Watermark(old).cursors(),
        ["a", "b"].map(|channel| ChannelReplayCursor { channel: channel.into(), last_seen_server_seq: 7 })
    );
    kept::<ReconnectChannelsResult>("cursors", &result);
    for malformed in [
        json!({ "clientId": "c", "subscriptions": ["a"] }),
        json!({
            "clientId": "c", "lastSeenServerSeq": 7, "subscriptions": [{ "channel": "a", "lastSeenServerSeq": 7 }],
        }),
        json!({ "clientId": "c", "lastSeenServerSeq": -7, "subscriptions": ["a"] }),
        json!({ "lastSeenServerSeq": 7, "subscriptions": [] }),
        json!([]),
    ] {
        assert!(serde_json::from_value::<ReconnectParams>(malformed.clone()).is_err(), "{malformed}");
    }
}

#[test]
fn a_token_is_not_in_what_debugging_shows() {
    let params = samples::requests().into_iter().find(|(method, _)| *method == "authenticate").unwrap().1;
    let params: AuthenticateParams = serde_json::from_value(params).unwrap();
    assert!(!format!("{params:?}").contains("secret"));
}

#[test]
fn a_client_may_dispatch_what_the_protocol_lets_it() {
    let may: BTreeSet<&str> =
        Action::kinds().filter(|(kind, _)| is_client_dispatchable(kind)).map(|(kind, _)| kind).collect();
    let wanted: BTreeSet<&str> = [
        "root/configChanged",
        "session/titleChanged",
        "session/isReadChanged",
        "session/isArchivedChanged",
        "session/activeClientSet",
        "session/activeClientRemoved",
        "session/workingDirectorySet",
        "session/workingDirectoryRemoved",
        "session/workingDirectoryReplaced",
        "session/customizationToggled",
        "session/mcpServerStartRequested",
        "session/mcpServerStopRequested",
        "session/mcpServerBackgroundRequested",
        "session/configChanged",
        "chat/turnStarted",
        "chat/toolCallConfirmed",
        "chat/toolCallComplete",
        "chat/toolCallResultConfirmed",
        "chat/toolCallContentChanged",
        "chat/turnCancelled",
        "chat/turnResume",
        "chat/truncated",
        "chat/pendingMessageSet",
        "chat/pendingMessageRemoved",
        "chat/queuedMessagesReordered",
        "chat/draftChanged",
        "chat/inputAnswerChanged",
        "chat/inputCompleted",
        "chat/isReadChanged",
        "chat/isArchivedChanged",
        "chat/workingDirectorySet",
        "chat/workingDirectoryRemoved",
        "terminal/input",
        "terminal/resized",
        "terminal/claimed",
        "terminal/titleChanged",
        "terminal/cleared",
        "changeset/filesReviewChanged",
        "annotations/set",
        "annotations/updated",
        "annotations/removed",
        "annotations/entrySet",
        "annotations/entryRemoved",
    ]
    .into();
    assert_eq!(may, wanted);
}
