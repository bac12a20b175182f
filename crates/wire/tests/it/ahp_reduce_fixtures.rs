//! The cases of version 0.6, the only published ones, run by the reducers of 1.0.
//!
//! They are outside the repository ([`grove_fixtures`]). Deliberate changes of later versions are in [`CHANGES`], case
//! by case; each of those cases is also rewritten for the change, and must then pass.

use grove_fixtures::outside;
use grove_wire::ahp::Action;
use serde_json::{Value, json};

use crate::ahp_reduce_support::{ours, theirs, without_nulls};

/// A change of a later version, the cases that differ because of it, and the rewriting of such a case.
struct Change {
    what: &'static str,
    port: fn(&mut Case),
    cases: &'static [&'static str],
}

const CHANGES: &[Change] = &[
    Change {
        what: "`modifiedAt` is derived from `startedAt` and `duration`: reducers have no clock, and only turns count",
        port: clock,
        cases: &[
            "005-session-turnstarted",
            "006-turnstarted-with-queuedmessageid-removes-from-queuedmessages",
            "007-turnstarted-with-queuedmessageid-removes-last-queued-message",
            "008-turnstarted-with-queuedmessageid-removes-matching-steering-message",
            "009-turnstarted-without-queuedmessageid-does-not-touch-pending-messages",
            "063-session-truncated-keeps-turns-up-to-turnid",
            "064-session-truncated-keeps-all-when-turnid-is-last",
            "065-session-truncated-keeps-only-first-when-turnid-is-first",
            "066-session-truncated-clears-all-when-turnid-omitted",
            "067-session-truncated-drops-active-turn",
            "068-session-truncated-drops-active-turn-even-when-clearing-all",
            "075-turnstarted-clears-isread",
            "105-session-input-full-draft-and-complete-flow",
            "106-session-input-requested-with-drafts-status",
            "108-session-input-upsert-and-clear-answer",
            "110-session-input-completion-and-truncation-filtering",
            "234-chat-truncated-clears-turns-next-cursor-when-clearing-all",
            "235-session-input-completion-records-declined-request-in-turn",
            "240-turn-duration-is-clamped-to-zero",
            "250-turncomplete-force-cancels-auth-required-tool-call",
        ],
    },
    Change {
        what: "a session that could not be created is `failed`",
        port: lifecycle,
        cases: &["004-session-creationfailed"],
    },
    Change {
        what: "an error is a part of the answer, no field of the turn",
        port: error_part,
        cases: &["016-session-error-finalizes-turn-with-error"],
    },
    Change {
        what: "a terminal has a `lifecycle` with the exit code in it, and a session's claim names the chat",
        port: terminal,
        cases: &[
            "071-root-terminalschanged",
            "072-terminal-data-appends",
            "073-terminal-input-noop",
            "074-terminal-resized",
            "075-terminal-claimed-client",
            "076-terminal-claimed-session",
            "077-terminal-claimed-release",
            "078-terminal-titlechanged",
            "079-terminal-cwdchanged",
            "081-terminal-exited",
            "082-terminal-cleared",
            "083-terminal-full-lifecycle",
            "089-terminal-unknown-action-type-is-no-op",
            "119-terminal-commandexecuted-appends-part",
            "120-terminal-data-appends-to-command-output",
            "121-terminal-commandfinished-completes-part",
            "122-terminal-data-after-complete-creates-unclassified",
            "123-terminal-command-full-lifecycle",
            "124-terminal-cleared-resets-content-parts",
            "125-terminal-commanddetectionavailable",
        ],
    },
    Change {
        what: "an annotation has an `origin`, no `turnId`",
        port: annotation_origin,
        cases: &[
            "210-annotations-set-appends-new-annotation",
            "211-annotations-set-replaces-existing-annotation",
            "212-annotations-removed-drops-matching-annotation",
            "213-annotations-entryset-appends-and-replaces",
            "214-annotations-entryset-unknown-annotation-is-no-op",
            "215-annotations-entryremoved-drops-matching-entry",
            "216-annotations-updated-resolves-and-preserves-entries",
            "217-annotations-unknown-action-type-is-no-op",
            "218-annotations-updated-reanchors-turn-and-range",
            "219-annotations-updated-unknown-annotation-is-no-op",
        ],
    },
    Change {
        what: "plugins and MCP servers keep who decided (`enablement`), no `enabled`",
        port: enablement,
        cases: &[
            "058-session-customizationschanged-replaces-entire-list",
            "059-session-customizationschanged-replaces-existing-customizations",
            "060-session-customizationtoggled-toggles-by-id",
            "061-session-customizationtoggled-is-no-op-for-unknown-id",
            "062-session-customizationtoggled-is-no-op-when-customizations-undefined",
            "137-session-customizationupdated-replaces-existing-container",
            "138-session-customizationupdated-appends-unknown-id",
            "152-session-customizationremoved-removes-container-and-children",
            "153-session-customizationremoved-removes-child",
            "154-session-customizationremoved-noop-unknown-id",
            "159-session-mcpserverstatechanged-upserts-top-level-server",
            "160-session-mcpserverstatechanged-upserts-container-child",
            "161-session-mcpserverstatechanged-noop-unknown-id",
            "162-session-mcpserverstatechanged-noop-non-mcp-id",
            "225-session-customizationtoggled-toggles-child-by-id",
            "226-session-customizationtoggled-is-no-op-for-unknown-child-id",
            "235-session-mcpserverstartrequested-starts-top-level-server",
            "236-session-mcpserverstoprequested-stops-auth-required-server",
            "237-session-mcpserverstoprequested-stops-container-child",
            "239-session-mcpserverstartrequested-no-op-unknown-id",
        ],
    },
    Change {
        what: "a call that a client executes waits for nobody, so it needs no input",
        port: client_execution,
        cases: &["225-session-inputneededset-replaces-existing"],
    },
    Change {
        what: "`changeset/contentChanged` carries no error",
        port: content_error,
        cases: &["159-changeset-contentchanged-updates-error"],
    },
];

struct Case {
    name: String,
    reducer: String,
    initial: Value,
    actions: Vec<Value>,
    expected: Value,
}

impl Case {
    /// Every object in the case, at any depth.
    fn each_object(&mut self, change: impl Fn(&mut Value)) {
        each_object(&mut self.initial, &change);
        self.actions.iter_mut().for_each(|action| each_object(action, &change));
        each_object(&mut self.expected, &change);
    }
}

fn each_object(value: &mut Value, change: &impl Fn(&mut Value)) {
    match value {
        Value::Object(object) => object.values_mut().for_each(|value| each_object(value, change)),
        Value::Array(items) => items.iter_mut().for_each(|item| each_object(item, change)),
        _ => {}
    }
    // Last, so that an inserted value is not changed again.
    if value.is_object() {
        change(value);
    }
}

fn take(object: &mut Value, key: &str) -> Option<Value> {
    object.as_object_mut().and_then(|object| object.remove(key))
}

/// A chat's modification time is the time when its last turn began or ended.
fn clock(case: &mut Case) {
    let mut active = case.initial["activeTurn"].clone();
    let mut modified_at = case.initial["modifiedAt"].clone();
    for action in &case.actions {
        match action["type"].as_str() {
            Some("chat/turnStarted") => {
                active = json!({"id": action["turnId"], "startedAt": action["startedAt"]});
                modified_at = action["startedAt"].clone();
            }
            Some("chat/turnComplete" | "chat/turnCancelled" | "chat/error") if active["id"] == action["turnId"] => {
                let start: jiff::Timestamp = active["startedAt"].as_str().unwrap().parse().unwrap();
                let duration = action["duration"].as_i64().unwrap().max(0);
                modified_at = json!(format!("{:.3}", start + jiff::SignedDuration::from_millis(duration)));
                active = Value::Null;
            }
            Some("chat/truncated") => active = Value::Null,
            _ => {}
        }
    }
    case.expected["modifiedAt"] = modified_at;
}

fn lifecycle(case: &mut Case) {
    case.each_object(|object| {
        if object["lifecycle"] == "creationFailed" {
            object["lifecycle"] = json!("failed");
        }
    });
}

fn error_part(case: &mut Case) {
    let part = |error: Value| json!({"kind": "error", "error": error});
    case.each_object(|object| {
        if object["type"] == "chat/error"
            && let Some(error) = take(object, "error")
        {
            object["part"] = part(error);
        }
        if object["state"] == "error"
            && let Some(error) = take(object, "error")
        {
            object["responseParts"].as_array_mut().unwrap().push(part(error));
        }
    });
}

fn terminal(case: &mut Case) {
    case.each_object(|object| {
        if object["claim"]["kind"] == "session" {
            object["claim"]["chat"] = json!("ahp-chat:/1");
        }
        // A terminal or its row; the action that claims one has no title.
        if object["claim"].is_object() && object["title"].is_string() {
            object["lifecycle"] = match take(object, "exitCode") {
                Some(exit_code) => json!({"status": "exited", "exitCode": exit_code}),
                None => json!({"status": "running"}),
            };
        }
    });
}

fn annotation_origin(case: &mut Case) {
    case.each_object(|object| {
        if let Some(turn_id) = take(object, "turnId") {
            object["origin"] = json!({"session": "ahp-session:/1", "turnId": turn_id});
        }
    });
}

/// A customization that is enabled by default needs no decision.
fn enablement(case: &mut Case) {
    let decisions = |enabled: &Value| match enabled {
        Value::Bool(true) => json!([]),
        off => json!([{"kind": "session", "enabled": off}]),
    };
    case.each_object(|object| match object["type"].as_str() {
        Some("session/customizationToggled") => {
            let enabled = take(object, "enabled").unwrap();
            object["enablement"] = decisions(&enabled);
        }
        Some("plugin" | "mcpServer") => {
            if let Some(enabled @ Value::Bool(false)) = take(object, "enabled") {
                object["enablement"] = decisions(&enabled);
            }
        }
        _ => {}
    });
}

fn client_execution(case: &mut Case) {
    assert!(case.expected["inputNeeded"].as_array().unwrap().iter().all(|need| need["kind"] == "toolClientExecution"));
    case.expected["status"] = json!(8);
}

fn content_error(case: &mut Case) {
    for action in &mut case.actions {
        take(action, "error");
    }
    case.expected["error"] = case.initial["error"].clone();
}

fn cases() -> Vec<Case> {
    let folder = outside("ahp-0.6/test-cases/reducers");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let cases = paths.into_iter().map(|path| {
        let mut case: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        Case {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            reducer: case["reducer"].as_str().unwrap().to_owned(),
            initial: without_nulls(&case["initial"]),
            actions: case["actions"].as_array_mut().unwrap().iter().map(without_nulls).collect(),
            expected: without_nulls(&case["expected"]),
        }
    });
    let cases: Vec<Case> = cases.collect();
    assert_eq!(cases.len(), 232, "the published cases are not complete");
    cases
}

fn change_of(name: &str) -> Option<&'static Change> {
    CHANGES.iter().find(|change| change.cases.contains(&name))
}

/// Runs a case; the error says why it does not pass.
fn run(case: &Case) -> Result<(), String> {
    let state = ours(&case.reducer, &case.initial, &case.actions).map_err(|error| error.to_string())?;
    if state == case.expected { Ok(()) } else { Err(format!("expected {}\n     got {state}", case.expected)) }
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn a_case_of_0_6_passes_unless_a_later_version_changed_it() {
    let mut wrong = Vec::new();
    for case in cases() {
        match (run(&case), change_of(&case.name)) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Ok(()), Some(change)) => wrong.push(format!("{} passes, but \"{}\"", case.name, change.what)),
            (Err(why), None) => wrong.push(format!("{}: {why}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn a_case_that_a_later_version_changed_passes_as_that_version_writes_it() {
    let mut wrong = Vec::new();
    for mut case in cases() {
        let Some(change) = change_of(&case.name) else { continue };
        (change.port)(&mut case);
        if let Err(why) = run(&case) {
            wrong.push(format!("{}: {why}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn every_change_names_cases_that_there_are() {
    let cases = cases();
    for name in CHANGES.iter().flat_map(|change| change.cases) {
        assert!(cases.iter().any(|case| case.name == *name), "{name}");
    }
}

/// None of the cases meets a bug that [`crate::ahp_reduce_oracle`] lists.
#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn the_protocols_own_reducers_agree_on_every_case() {
    let agree = |case: &Case| {
        let ours = ours(&case.reducer, &case.initial, &case.actions);
        let theirs = theirs(&case.reducer, &case.initial, &case.actions).map(|state| without_nulls(&state));
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs, "{}", case.name),
            (Err(_), Err(_)) => {}
            (ours, theirs) => panic!("{}: one of them cannot read it: {ours:?}, {theirs:?}", case.name),
        }
    };
    for mut case in cases() {
        agree(&case);
        if let Some(change) = change_of(&case.name) {
            (change.port)(&mut case);
            agree(&case);
        }
    }
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn a_state_of_the_cases_is_written_as_it_was_read() {
    for case in cases().into_iter().filter(|case| change_of(&case.name).is_none()) {
        let written = ours(&case.reducer, &case.initial, &[]).unwrap();
        assert_eq!(written, case.initial, "{}", case.name);
        for action in &case.actions {
            let read: Action = serde_json::from_value(action.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), *action, "{}", case.name);
        }
    }
}
