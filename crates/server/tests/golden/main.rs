//! Goldens: the data folders and frames that a fixed course of events gives, byte for byte.
//!
//! Names of Rust types and fields may change; names on disk and on the wire may not. Each scenario runs a host on a clock,
//! randomness and storage of its own, and its files are compared with `data/<scenario>/`. The upgrade tests start a host on
//! copies of the committed folders, as a newer version does. `GROVE_GOLDEN_WRITE=1` writes the goldens again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod agent;
mod client;
mod folder;
mod kinds;
mod scenarios;
mod timed_fs;
mod upgrade;
mod world;

use std::collections::BTreeSet;
use std::path::Path;

use timed_fs::run_paused;
use world::World;

/// Runs a scenario in a world of its own.
async fn run(scenario: &str) -> World {
    let mut world = World::new();
    match scenario {
        "events" => scenarios::events(&world).await,
        "tree" => scenarios::tree(&world).await,
        "killed" => scenarios::killed(&world).await,
        "stored-by-client" => scenarios::stored_by_client(&mut world).await,
        other => panic!("no scenario {other}"),
    }
    world
}

async fn same_bytes(scenario: &str) {
    folder::compare(scenario, &run(scenario).await.files().await);
}

#[test]
fn every_kind_of_event_gives_the_same_bytes_and_frames() {
    run_paused(async {
        same_bytes("events").await;
    });
}

#[test]
fn trees_forks_and_moves_give_the_same_bytes_and_frames() {
    run_paused(async {
        same_bytes("tree").await;
    });
}

#[test]
fn a_host_killed_in_mid_turn_leaves_the_same_bytes_and_frames() {
    run_paused(async {
        same_bytes("killed").await;
    });
}

#[test]
fn a_session_stored_by_a_client_gives_the_same_bytes_and_frames() {
    run_paused(async {
        let files = run("stored-by-client").await.files().await;
        folder::compare_normalized("stored-by-client", &files, without_order);
    });
}

/// Frames without their order, and a journal without its numbers.
///
/// The host asks the storage client and answers it side by side, so both differ from run to run.
fn without_order(path: &Path, bytes: &[u8]) -> Vec<u8> {
    let is_frames = path.starts_with("frames");
    if !is_frames && !path.starts_with("data/journal") {
        return bytes.to_vec();
    }
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let mut lines: Vec<String> = text.lines().map(|line| without_numbers(line, is_frames)).collect();
    if is_frames {
        lines.sort_unstable();
    }
    lines.join("\n").into_bytes()
}

/// A line without its sequence numbers, which have sixteen digits, and a record without its checksum.
fn without_numbers(line: &str, is_frame: bool) -> String {
    let text = if is_frame { line } else { &line[line.find('{').unwrap()..] };
    text.split_inclusive(|c: char| !c.is_ascii_digit()).fold(String::new(), |text, piece| {
        let digits = piece.trim_end_matches(|c: char| !c.is_ascii_digit());
        match digits.len() {
            16 => text + "NUMBER" + &piece[16..],
            _ => text + piece,
        }
    })
}

#[test]
fn the_journals_have_every_kind_of_record_and_event() {
    let (mut records, mut events) = (BTreeSet::new(), BTreeSet::new());
    for scenario in upgrade::SCENARIOS {
        let files = folder::read(&folder::root(scenario));
        let journals = files.iter().filter(|(path, _)| path.starts_with("data/journal"));
        for (_, bytes) in journals {
            let seen = kinds::seen(&world::records(bytes));
            records.extend(seen.0);
            events.extend(seen.1);
        }
    }
    assert_eq!(records.iter().map(String::as_str).collect::<Vec<_>>(), kinds::RECORDS);
    assert_eq!(events.iter().map(String::as_str).collect::<Vec<_>>(), kinds::EVENTS);
}
