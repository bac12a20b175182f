//! The fuzz body of the Agent Host Protocol.

use grove_wire::ahp::Action;
use grove_wire::ahp::reduce::{State, reduce};

/// A state of every channel, with content.
const STATES: &[&str] = &[
    r#"{"agents":[],"config":{"schema":{"type":"object","properties":{}},"values":{}}}"#,
    r#"{"provider":"p","title":"","status":1,"lifecycle":"creating","activeClients":[],"chats":[],
        "config":{"schema":{"type":"object","properties":{}},"values":{}},"workingDirectories":["file:///a"]}"#,
    r#"{"resource":"ahp-chat:/1","title":"","status":8,"modifiedAt":"","turns":[],"activeTurn":{"id":"t","startedAt":
        "2026-01-01T00:00:00Z","message":{"text":"hi","origin":{"kind":"user"}},"responseParts":[]}}"#,
    r#"{"title":"sh","content":[],"lifecycle":{"status":"running"},"claim":{"kind":"client","clientId":"k"}}"#,
    r#"{"status":"computing","files":[],"operations":[{"id":"o","label":"O","scopes":[],"status":"idle"}]}"#,
    r#"{"annotations":[]}"#,
    r#"{"root":"file:///a","recursive":true}"#,
];

/// Any actions in any order, one per line: each is parsed or refused, and survives a round trip.
///
/// They are reduced; the reducer reports changes correctly, and states stay readable for clients.
pub fn ahp(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut states: Vec<State> = STATES.iter().map(|text| serde_json::from_str(text).expect("a state")).collect();
    for action in text.lines().filter_map(parsed_ahp_action) {
        for state in &mut states {
            let before = state.clone();
            let outcome = reduce(state, &action);
            assert_eq!(outcome.is_changed(), *state != before, "{action:?} on {before:?}");
        }
    }
    for state in states {
        let written = serde_json::to_string(&state).expect("a state can be written");
        assert_eq!(serde_json::from_str::<State>(&written).expect("and read"), state);
    }
}

/// Parses an action.
pub fn parsed_ahp_action(text: &str) -> Option<Action> {
    let action = Action::parse(text).ok()?;
    let written = serde_json::to_string(&action).expect("what was read can be written");
    assert_eq!(Action::parse(&written).as_ref(), Ok(&action), "{written}");
    Some(action)
}
