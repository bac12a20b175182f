//! `web/vectors/reducers.json`: states, actions and expected results, for reducers in another language.
//!
//! Cases are written there by hand, except `expected`: `UPDATE_VECTORS=1` fills that in and sorts the file. The result
//! must also be that of the protocol's own crate, unless that has a known bug there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use grove_wire::ahp::{ChatAction, RootAction, SessionAction};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ahp_reduce_oracle::Bug;
use crate::ahp_reduce_support::{json_of, ours, state, step, theirs};

#[derive(Deserialize)]
struct Case {
    name: String,
    reducer: String,
    initial: Value,
    actions: Vec<Value>,
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/vectors/reducers.json")
}

fn cases() -> Vec<Case> {
    serde_json::from_slice(&std::fs::read(path()).unwrap()).unwrap()
}

/// With sorted keys, whichever map serde_json was built with.
fn sorted(value: &Value) -> Value {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted
}

/// A few lines for each case, so that a difference can be read.
fn written(case: &Case) -> String {
    let expected = ours(&case.reducer, &case.initial, &case.actions).unwrap();
    let (name, reducer) = (json!(case.name), json!(case.reducer));
    let (initial, actions, expected) = (sorted(&case.initial), sorted(&json!(case.actions)), sorted(&expected));
    format!(
        "{{\"name\":{name},\"reducer\":{reducer},\n \"initial\":{initial},\n \"actions\":{actions},\n \
         \"expected\":{expected}}}"
    )
}

#[test]
fn the_vectors_are_what_the_reducers_do() {
    let lines: Vec<String> = cases().iter().map(written).collect();
    let written = format!("[\n{}\n]\n", lines.join(",\n"));
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::write(path(), written).unwrap();
        return;
    }
    let found = std::fs::read_to_string(path()).unwrap();
    assert!(found == written, "{} has drifted: UPDATE_VECTORS=1 rewrites it", path().display());
}

#[test]
fn the_vectors_have_every_action_doing_something_and_doing_nothing() {
    let mut seen = BTreeSet::new();
    for case in cases() {
        let mut state = state(&case.reducer, &case.initial).unwrap();
        for action in &case.actions {
            let outcome = step(&mut state, action).unwrap();
            seen.insert((action["type"].as_str().unwrap().to_owned(), outcome.is_changed()));
        }
    }
    for (kind, _) in [RootAction::KINDS, SessionAction::KINDS, ChatAction::KINDS].concat() {
        assert!(seen.contains(&(kind.to_owned(), true)), "{kind} never does something");
        assert!(seen.contains(&(kind.to_owned(), false)), "{kind} never does nothing");
    }
}

#[test]
fn every_vector_has_a_name_of_its_own() {
    let names: BTreeSet<String> = cases().into_iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases().len());
}

#[test]
fn the_protocols_own_reducers_agree_on_the_vectors() {
    for case in cases() {
        let mut state = state(&case.reducer, &case.initial).unwrap();
        let mut bugs = Vec::new();
        for action in &case.actions {
            bugs.extend(Bug::met(&json_of(&state), action));
            step(&mut state, action).unwrap();
        }
        let theirs = theirs(&case.reducer, &case.initial, &case.actions).unwrap();
        assert_eq!(json_of(&state) == theirs, bugs.is_empty(), "{}: {bugs:?}, {theirs}", case.name);
    }
}
