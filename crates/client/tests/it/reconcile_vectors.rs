//! `web/vectors/reconcile.json`: test vectors of reconciliation, which the page's tests use, too.
//!
//! `UPDATE_VECTORS=1` writes the file again.

use std::path::Path;

use grove_client::reconcile::ReconciledState;
use grove_client::{Ahp, dialect::ahp::ResourceState};
use grove_wire::ahp::{Action, ActionEnvelope, ChatState, Snapshot};
use serde_json::{Value, json};

const CHAT: &str = "ahp-chat:/s";
/// The client whose actions are own.
const ME: &str = "me";

fn idle() -> Value {
    json!({"resource": CHAT, "title": "Chat", "status": 1, "modifiedAt": "2026-11-15T00:00:00.000Z", "turns": []})
}

/// A chat whose turn `t` runs, with some text.
fn running() -> Value {
    let mut chat = idle();
    chat["status"] = json!(8);
    chat["activeTurn"] = json!({
        "id": "t", "startedAt": "2026-11-15T00:00:00.000Z",
        "message": {"text": "hi", "origin": {"kind": "user"}},
        "responseParts": [{"kind": "markdown", "id": "p", "content": "He"}],
    });
    chat
}

fn start(turn: &str) -> Value {
    json!({
        "type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T00:00:01.000Z",
        "message": {"text": turn, "origin": {"kind": "user"}},
    })
}

fn draft(text: &str) -> Value {
    json!({"type": "chat/draftChanged", "draft": {"text": text, "origin": {"kind": "user"}}})
}

fn queue(id: &str) -> Value {
    json!({
        "type": "chat/pendingMessageSet", "kind": "queued", "id": id,
        "message": {"text": id, "origin": {"kind": "user"}},
    })
}

fn delta(content: &str) -> Value {
    json!({"type": "chat/delta", "turnId": "t", "partId": "p", "content": content})
}

fn cancelled(turn: &str) -> Value {
    json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 5})
}

fn dispatch(client_seq: u64, action: Value) -> Value {
    json!({"dispatch": {"clientSeq": client_seq, "action": action}})
}

fn from_host(server_seq: u64, action: Value) -> Value {
    json!({"envelope": {"channel": CHAT, "action": action, "serverSeq": server_seq}})
}

fn from(client: &str, client_seq: u64, server_seq: u64, action: Value) -> Value {
    let origin = json!({"clientId": client, "clientSeq": client_seq});
    json!({"envelope": {"channel": CHAT, "action": action, "serverSeq": server_seq, "origin": origin}})
}

fn echo(client_seq: u64, server_seq: u64, action: Value) -> Value {
    from(ME, client_seq, server_seq, action)
}

fn rejected(client_seq: u64, server_seq: u64, action: Value) -> Value {
    let mut step = echo(client_seq, server_seq, action);
    step["envelope"]["rejectionReason"] = json!("not now");
    step
}

fn snapshot(from_seq: u64, state: Value) -> Value {
    json!({"snapshot": {"resource": CHAT, "state": state, "fromSeq": from_seq}})
}

/// Each rule of reconciliation as a scene.
fn scenes() -> Vec<(&'static str, Value, Vec<Value>)> {
    vec![
        ("an action of this client is seen at once", idle(), vec![dispatch(1, start("t"))]),
        ("its echo confirms it", idle(), vec![dispatch(1, start("t")), echo(1, 1, start("t"))]),
        (
            "what the host says of it counts, which may be more than was sent",
            idle(),
            vec![dispatch(1, draft("mine")), echo(1, 1, draft("as the host has it"))],
        ),
        ("a rejection takes its effect away", idle(), vec![dispatch(1, start("t")), rejected(1, 1, start("t"))]),
        (
            "a rejection of somebody else's action is no news",
            idle(),
            vec![dispatch(1, start("t")), {
                let mut step = from("other", 1, 1, start("u"));
                step["envelope"]["rejectionReason"] = json!("not now");
                step
            }],
        ),
        (
            "what others do is taken under what is pending",
            running(),
            vec![dispatch(1, draft("mine")), from_host(1, delta("llo")), from("other", 1, 2, queue("q"))],
        ),
        (
            "of two who start a turn the first wins, and the other's effect is gone",
            idle(),
            vec![dispatch(1, start("mine")), from("other", 1, 1, start("theirs")), rejected(1, 2, start("mine"))],
        ),
        (
            "a foreign turn under a pending one that does not fit any more",
            idle(),
            vec![dispatch(1, start("mine")), from("other", 1, 1, start("theirs"))],
        ),
        (
            "what stands on a rejected action is folded in again without it",
            running(),
            vec![
                dispatch(1, draft("first")),
                dispatch(2, queue("q")),
                dispatch(3, cancelled("t")),
                rejected(1, 1, draft("first")),
            ],
        ),
        (
            "echoes come in any order",
            running(),
            vec![
                dispatch(1, queue("a")),
                dispatch(2, queue("b")),
                dispatch(3, queue("c")),
                echo(2, 1, queue("b")),
                echo(1, 2, queue("a")),
            ],
        ),
        (
            "the same clientSeq of another client is another action",
            idle(),
            vec![dispatch(1, draft("mine")), from("other", 1, 1, draft("theirs"))],
        ),
        (
            "an action that the state has already changes nothing",
            running(),
            vec![
                from_host(1, delta("l")),
                from_host(2, delta("l")),
                from_host(2, delta("l")),
                from_host(1, delta("l")),
            ],
        ),
        (
            "an echo that is known already still retires the pending action",
            idle(),
            vec![snapshot(5, running()), dispatch(1, draft("mine")), echo(1, 5, draft("mine"))],
        ),
        (
            "an echo without a change retires the pending action",
            idle(),
            vec![from("other", 7, 1, draft("same")), dispatch(1, draft("same")), echo(1, 2, draft("same"))],
        ),
        (
            "an action of a type that nobody knows changes nothing",
            idle(),
            vec![dispatch(1, draft("mine")), from_host(1, json!({"type": "chat/fromTheFuture", "x": 1}))],
        ),
        (
            "a snapshot replaces what is confirmed and leaves what is pending",
            idle(),
            vec![dispatch(1, draft("mine")), from_host(1, start("old")), snapshot(9, running())],
        ),
        (
            "what comes after a snapshot is taken, what came before is not",
            idle(),
            vec![snapshot(9, running()), from_host(9, delta("?")), from_host(10, delta("y"))],
        ),
        (
            "a snapshot of a host that starts counting again is accepted",
            idle(),
            vec![from_host(40, start("old")), snapshot(2, running()), from_host(3, delta("y"))],
        ),
    ]
}

fn chat(value: &Value) -> ResourceState {
    let chat: ChatState = serde_json::from_value(value.clone()).unwrap();
    ResourceState::Chat(Box::new(chat))
}

/// The result of a scene.
fn play(initial: &Value, steps: &[Value]) -> Value {
    let mut state = ReconciledState::<Ahp>::new(chat(initial), 0);
    for step in steps {
        if let Some(sent) = step.get("dispatch") {
            let action: Action = serde_json::from_value(sent["action"].clone()).unwrap();
            state.dispatched(sent["clientSeq"].as_u64().unwrap(), action);
        } else if let Some(envelope) = step.get("envelope") {
            let envelope: ActionEnvelope = serde_json::from_value(envelope.clone()).unwrap();
            let own = envelope.origin.as_ref().filter(|origin| origin.client_id == ME).map(|origin| origin.client_seq);
            match (envelope.rejection_reason, own) {
                (None, own) => drop(state.take(envelope.server_seq, own, &envelope.action)),
                (Some(_), Some(own)) => drop(state.settle(own)),
                (Some(_), None) => {}
            }
        } else {
            let snapshot: Snapshot = serde_json::from_value(step["snapshot"].clone()).unwrap();
            state.replace(snapshot.state, snapshot.from_seq);
        }
    }
    let pending: Vec<u64> = state.pending().map(|pending| pending.client_seq).collect();
    let confirmed = serde_json::to_value(state.confirmed()).unwrap();
    json!({"confirmed": confirmed, "optimistic": state.optimistic(), "pending": pending})
}

#[test]
fn the_vectors_for_the_page_are_what_this_client_does() {
    let vectors: Vec<Value> = scenes()
        .into_iter()
        .map(|(name, initial, steps)| {
            let expected = play(&initial, &steps);
            let mut vector = json!({"name": name, "clientId": ME, "reducer": "chat", "initial": initial,
                "steps": steps, "expected": expected});
            // With sorted keys, whichever map serde_json uses.
            vector.sort_all_objects();
            vector
        })
        .collect();
    let text = format!("{}\n", serde_json::to_string_pretty(&vectors).unwrap());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/vectors/reconcile.json");
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "web/vectors/reconcile.json is not what this client does: run with UPDATE_VECTORS=1");
}

#[test]
fn a_vector_says_what_is_meant() {
    let outcome = |name: &str| {
        let (_, initial, steps) = scenes().into_iter().find(|(scene, ..)| scene.starts_with(name)).unwrap();
        play(&initial, &steps)
    };
    let scene = outcome("of two who start a turn");
    assert_eq!(scene["optimistic"]["activeTurn"]["id"], "theirs");
    assert_eq!(scene["pending"], json!([]));
    let scene = outcome("what others do");
    assert_eq!(scene["optimistic"]["draft"]["text"], "mine");
    assert_eq!(scene["confirmed"]["activeTurn"]["responseParts"][0]["content"], "Hello");
    assert_eq!(scene["confirmed"]["draft"], Value::Null);
    let scene = outcome("an action that the state has already");
    assert_eq!(scene["confirmed"]["activeTurn"]["responseParts"][0]["content"], "Hell");
    let scene = outcome("a snapshot replaces");
    assert_eq!((&scene["pending"], &scene["optimistic"]["draft"]["text"]), (&json!([1]), &json!("mine")));
}
