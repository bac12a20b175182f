//! The protocol's own round trips, as they were at 0.6.0.
//!
//! The recordings are outside the repository ([`grove_fixtures`]).

use std::path::PathBuf;

use grove_fixtures::outside;
use grove_wire::ahp::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Cases that a later version changed: the name and the change.
const CHANGED: &[(&str, &str)] = &[(
    "agent-customization-model-and-tools",
    "0.7 put `enablement`, a list of decisions, in the place of a plugin's `enabled`",
)];

fn cases() -> Vec<Value> {
    let files = std::fs::read_dir(outside("ahp-0.6/test-cases/round-trips")).unwrap();
    let mut paths: Vec<PathBuf> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
        .collect();
    paths.sort();
    paths.iter().map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
}

fn through<T: Serialize + DeserializeOwned>(input: &Value) -> Value {
    serde_json::to_value(serde_json::from_value::<T>(input.clone()).unwrap()).unwrap()
}

/// JSON-RPC has no type here: frames are assembled from their parts.
fn frame(input: &Value) -> Value {
    use grove_wire::jsonrpc::{Frame, parse};
    assert!(matches!(parse(&input.to_string()).unwrap(), Frame::Single(Ok(_))), "{input}");
    input.clone()
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn the_protocols_round_trips_hold() {
    let cases = cases();
    assert_eq!(cases.len(), 26);
    for case in cases {
        let (name, input) = (case["name"].as_str().unwrap(), &case["input"]);
        let output = match case["type"].as_str().unwrap() {
            "ActionEnvelope" => through::<ActionEnvelope>(input),
            "StateAction" => through::<Action>(input),
            "Customization" => through::<Customization>(input),
            "SessionStatus" => through::<u32>(input),
            "StringOrMarkdown" => through::<StringOrMarkdown>(input),
            "ChangesetOperationTarget" => through::<ChangesetOperationTarget>(input),
            "ChatInputQuestion" => through::<ChatInputQuestion>(input),
            "SessionSummary" => through::<SessionSummary>(input),
            "SessionAddedParams" => through::<SessionAddedParams>(input),
            "PartialSessionSummary" => through::<PartialSessionSummary>(input),
            "Implementation" => through::<Implementation>(input),
            "InitializeResult" => through::<InitializeResult>(input),
            "JsonRpcMessage" => frame(input),
            other => panic!("{name}: there is no type {other} here"),
        };
        let holds = case["acceptableOutputs"].as_array().unwrap().contains(&output);
        let changed = CHANGED.iter().find(|(changed, _)| *changed == name);
        assert_eq!(holds, changed.is_none(), "{name}: {output} ({changed:?})");
    }
}
