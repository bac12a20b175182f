//! The fuzz bodies of version 1, scripts, URIs and the journal.

use std::sync::Arc;

use grove_core::SessionUri;
use grove_fs::MemoryFs;
use grove_storage::Stores;
use grove_tree::turns::TurnLimit;
use grove_wire::jsonrpc::{self, Frame, InvalidMessage};
use grove_wire::v1::{self, Action, ActionError, SessionState, decode, project};
use serde_json::value::RawValue;

/// Any text as a frame: it is parsed or refused, and survives a round trip.
pub fn frame(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match jsonrpc::parse(text) {
        Err(error) => assert!(!error.message.is_empty()),
        Ok(Frame::Single(message)) => written_again(message),
        Ok(Frame::Batch(messages)) => messages.into_iter().for_each(written_again),
    }
}

fn written_again(message: Result<jsonrpc::RpcMessage<'_>, InvalidMessage>) {
    let written = match &message {
        Ok(jsonrpc::RpcMessage::Request(request)) => jsonrpc::request(&request.id, &request.method, &request.params),
        Ok(jsonrpc::RpcMessage::Notification { method, params }) => jsonrpc::notification(method, params),
        Ok(jsonrpc::RpcMessage::Response { id, outcome: Ok(result) }) => jsonrpc::response(id, result),
        Ok(jsonrpc::RpcMessage::Response { id, outcome: Err(error) }) => Ok(jsonrpc::error(Some(id), error)),
        Err(invalid) => Ok(jsonrpc::error(invalid.id.as_ref(), &invalid.error)),
    };
    let written = written.expect("what was read can be written");
    let Ok(Frame::Single(Ok(reread))) = jsonrpc::parse(&written) else { panic!("{written} cannot be read") };
    let raw = |params: Option<&RawValue>| params.map(|params| params.get().to_owned());
    match (message, reread) {
        (Ok(jsonrpc::RpcMessage::Request(was)), jsonrpc::RpcMessage::Request(is)) => {
            assert_eq!((was.id.as_json(), &was.method), (is.id.as_json(), &is.method));
            assert_eq!(raw(was.params), raw(is.params));
        }
        (
            Ok(jsonrpc::RpcMessage::Notification { method: was, params: given }),
            jsonrpc::RpcMessage::Notification { method: is, params: kept },
        ) => assert_eq!((was, raw(given)), (is, raw(kept))),
        (
            Ok(jsonrpc::RpcMessage::Response { id: was, outcome: given }),
            jsonrpc::RpcMessage::Response { id: is, outcome: kept },
        ) => {
            assert_eq!(was.as_json(), is.as_json());
            match (given, kept) {
                (Ok(was), Ok(is)) => assert_eq!(was.get(), is.get()),
                (Err(was), Err(is)) => assert_eq!((was.code, was.message), (is.code, is.message)),
                (was, is) => panic!("{was:?} became {is:?}"),
            }
        }
        (Err(_), jsonrpc::RpcMessage::Response { outcome: Err(_), .. }) => {}
        (was, is) => panic!("{was:?} became {is:?}"),
    }
}

/// Any text as an action: it is parsed or refused.
///
/// It survives a round trip, and is a command exactly if clients may dispatch it.
pub fn action(data: &[u8]) {
    let Some(action) = std::str::from_utf8(data).ok().and_then(parsed_action) else { return };
    let kind = action.kind();
    let written = serde_json::to_string(&action).expect("what was read can be written");
    assert_eq!(parsed_action(&written).as_ref(), Some(&action), "{written}");
    assert_eq!(decode::command(action).is_ok(), kind.client_may_dispatch());
}

/// Parses an action.
pub fn parsed_action(text: &str) -> Option<Action> {
    let raw = RawValue::from_string(text.to_owned()).ok()?;
    match Action::parse(&raw) {
        Ok(action) => Some(action),
        Err(ActionError::UnknownType(kind)) => {
            assert_eq!(v1::ActionType::named(&kind), None);
            None
        }
        Err(ActionError::Malformed(_)) => None,
    }
}

/// Any actions in any order, one per line: they are reduced, and the state stays readable for clients.
pub fn reducers(data: &[u8]) {
    const EMPTY: &str = r#"{"summary":{"resource":"copilot:/1","provider":"copilot","title":"","status":"idle",
        "createdAt":0,"modifiedAt":0},"lifecycle":"creating","turns":[]}"#;
    let text = String::from_utf8_lossy(data);
    let mut session: SessionState = serde_json::from_str(EMPTY).expect("a state");
    let mut root = v1::RootState::default();
    for action in text.lines().filter_map(parsed_action) {
        match action {
            Action::Root(action) => root = v1::root_reducer(root, &action),
            Action::Session(action) => session = v1::session_reducer(session, &action),
        }
        assert_eq!(session.active_turn.is_some(), session.summary.status == v1::SessionStatus::InProgress);
    }
    let written = serde_json::to_string(&session).expect("a state can be written");
    assert_eq!(serde_json::from_str::<SessionState>(&written).expect("and read"), session);
    let written = serde_json::to_string(&root).expect("a root can be written");
    assert_eq!(serde_json::from_str::<v1::RootState>(&written).expect("and read"), root);
}

/// Any text as a script: it is run, or the turn ends in error.
pub fn script(data: &[u8]) {
    use grove_agents::{Agent, AgentStart, ChatSink, OpenSession, Prompt, Report, scripted::ScriptedAgent};

    let text = format!("script:{}", String::from_utf8_lossy(data));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let chat = grove_core::ChatId::from(grove_core::Session::MAIN_CHAT);
        let (sender, mut reports) = tokio::sync::mpsc::channel::<Report>(4);
        let sink = ChatSink::new(chat.clone(), sender);
        let opening = OpenSession {
            session: "s".into(),
            chat,
            model: None,
            working_directories: Vec::new(),
            agent_session_id: None,
            settings: grove_core::Extra::new(),
            reports: sink.clone(),
            spills: std::sync::Arc::new(()),
            start: AgentStart::FirstTurn,
            setup: Arc::default(),
            client_tools: grove_agents::ClientTools::default(),
        };
        let session = ScriptedAgent.open(opening).await.expect("a session");
        let message = grove_core::Message::user(text);
        let prompt = Prompt { message, model: None, client_tools: Vec::new(), memory: std::sync::Arc::new(()) };
        // Scripts may wait for ever: a few reports, or a moment, are enough to see that parsing one does no harm.
        let run = session.prompt(prompt, sink.turn("t".into()));
        let read = async {
            for _ in 0..64 {
                if reports.recv().await.is_none() {
                    break;
                }
            }
        };
        tokio::select! {
            _ = run => {}
            () = read => {}
            () = tokio::time::sleep(std::time::Duration::from_micros(200)) => {}
        }
    });
}

/// Any text as a URI.
///
/// A session's id never leaves its folder, a file's path is absolute, a content's names are complete.
pub fn uri(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(id) = SessionUri::from(text).id() {
        let path = std::path::Path::new("folder").join(id.as_str());
        assert_eq!(path.components().count(), 2, "{text}");
        assert!(!path.components().any(|part| part == std::path::Component::ParentDir), "{text}");
    }
    if let Ok(path) = grove_work::local_path(text) {
        assert!(path.is_absolute(), "{text}");
        assert_eq!(grove_work::local_path(&grove_work::file_uri(&path)).ok(), Some(path), "{text}");
    }
    if let Some((session, content)) = project::parse_content_uri(text) {
        assert_eq!(project::content_uri(&session, &content), text);
    }
}

/// Any bytes as a journal: complete records are used, the rest is damage or a torn end, and the state is usable.
pub fn journal(data: &[u8]) {
    recovered_from(data);
    // Once more with correct checksums, or the code after the check would never be reached.
    let summed: Vec<u8> = data
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.get(9..))
        .flat_map(|json| [format!("{:08x} ", crc32fast::hash(json)).as_bytes(), json, b"\n"].concat())
        .collect();
    recovered_from(&summed);
}

fn recovered_from(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let contents = grove_storage::JournalContents::from_bytes(data);
        let stores = Stores::new(Arc::new(MemoryFs::default()));
        let limit = TurnLimit { turns: 1_000, bytes: 8 << 20 };
        let recovered = grove_storage::recover(contents, &stores, limit).await;
        let recovered = recovered.expect("memory can be read");
        for session in recovered.state.sessions.values() {
            serde_json::to_string(&project::session(session)).expect("a session can be shown");
        }
    });
}
