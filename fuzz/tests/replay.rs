//! Every body over its corpus, then over random mutations of it for `FUZZ_SECONDS` (1 by default).
//!
//! A failure prints the input and the seed; `FUZZ_SEED=<seed>` runs it again. Add the input to the corpus.
//! `FUZZ_BODY=<name>` runs one body alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::panic::catch_unwind;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use grove_fuzz::{BODIES, Body};
use grove_wire::v1::ActionType;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

/// A small and reproducible generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 16
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// An input of the corpus with a few bytes changed, or several inputs in a row.
fn mutated(corpus: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    const TOKENS: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        "\"",
        ",",
        ":",
        "\\",
        "\\u",
        "null",
        "true",
        "1",
        "-",
        "1e999",
        "\"id\":",
        "\"type\":",
        "\"2.0\"",
        " ",
        "🌲",
        "\0",
        "\n",
        "../",
        "%2e",
        "/",
    ];
    let mut bytes = dice.pick(corpus).clone();
    if dice.below(4) == 0 {
        for _ in 0..dice.below(40) {
            bytes.push(b'\n');
            bytes.extend(dice.pick(corpus).iter().filter(|byte| **byte != b'\n'));
        }
    }
    for _ in 0..dice.below(6) {
        let at = dice.below(bytes.len() + 1);
        let until = (at + dice.below(8)).min(bytes.len());
        match dice.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 => drop(bytes.drain(at..until)),
            2 => bytes.truncate(at),
            3 => {
                let other = dice.pick(corpus);
                let from = dice.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend(&other[from..]);
            }
            4 => {
                let again = bytes[at..until].to_vec();
                bytes.splice(at..at, again);
            }
            _ => drop(bytes.splice(at..until, dice.pick(TOKENS).bytes())),
        }
    }
    bytes
}

fn replay(body: &Body) {
    let given = corpus(body.name);
    given.iter().for_each(|input| (body.run)(input));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = setting("FUZZ_SEED").unwrap_or(now.as_micros() as u64);
    let mut dice = Dice(seed);
    let end = Instant::now() + Duration::from_secs(setting("FUZZ_SECONDS").unwrap_or(1));
    while Instant::now() < end {
        let input = mutated(&given, &mut dice);
        let run = body.run;
        let outcome = catch_unwind(|| run(&input));
        assert!(outcome.is_ok(), "{}: FUZZ_SEED={seed} makes {:?}", body.name, String::from_utf8_lossy(&input));
    }
}

#[test]
fn no_input_makes_a_parser_panic() {
    let only = std::env::var("FUZZ_BODY").ok();
    let wanted = BODIES.iter().filter(|body| only.as_ref().is_none_or(|name| body.name == name));
    assert!(wanted.clone().count() > 0, "there is no body {only:?}");
    wanted.for_each(replay);
}

#[test]
fn every_line_of_the_corpus_of_params_has_a_shape() {
    for file in corpus("params") {
        for line in std::str::from_utf8(&file).unwrap().lines() {
            assert!(grove_fuzz::params_shapes(line) > 0, "{line}");
        }
    }
}

#[test]
fn the_corpus_has_actions_of_every_type() {
    let actions = corpus("action");
    let texts = actions.iter().map(|bytes| String::from_utf8_lossy(bytes));
    let kinds: Vec<ActionType> = texts.filter_map(|text| Some(grove_fuzz::parsed_action(&text)?.kind())).collect();
    assert!(ActionType::ALL.iter().all(|kind| kinds.contains(kind)));
}

#[test]
fn the_corpus_has_actions_of_every_type_of_the_agent_host_protocol() {
    let files = corpus("ahp");
    let texts = files.iter().map(|bytes| std::str::from_utf8(bytes).unwrap());
    let actions: Vec<_> = texts.flat_map(str::lines).filter_map(grove_fuzz::parsed_ahp_action).collect();
    assert!(grove_wire::ahp::Action::kinds().all(|(kind, _)| actions.iter().any(|action| action.kind() == kind)));
}

#[test]
fn the_corpus_has_updates_of_agents_and_some_that_are_none() {
    let files = corpus("acp");
    let texts = files.iter().map(|bytes| std::str::from_utf8(bytes).unwrap());
    let updates: Vec<_> = texts.flat_map(str::lines).map(grove_agents::acp::read_update).collect();
    assert_eq!(updates.iter().filter(|update| update.is_err()).count(), 3);
    assert!(updates.iter().flatten().flatten().count() > 20);
}

#[test]
fn every_line_of_the_copilot_corpus_has_a_shape() {
    for file in corpus("copilot") {
        for line in std::str::from_utf8(&file).unwrap().lines() {
            assert!(grove_fuzz::copilot_shapes(line) > 0, "{line}");
        }
    }
}

#[test]
fn the_corpus_of_connections_is_understood_in_every_dialect() {
    for file in corpus("connection") {
        let answers = grove_fuzz::connection_answers(&file);
        assert!(answers[0]["result"].is_object(), "{}", answers[0]);
        assert!(answers.iter().all(|answer| answer["error"]["code"] != -32601), "{answers:?}");
    }
}

#[test]
fn the_corpus_of_the_copilot_port_is_understood() {
    // The last file has the client store its sessions. The port keeps to that.
    for file in corpus("copilot_port") {
        let answers = grove_fuzz::copilot_port_answers(&file);
        assert!(answers[0]["result"].is_object(), "{}", answers[0]);
        assert!(answers.iter().all(|answer| answer["error"]["code"] != -32601), "{answers:?}");
    }
}

#[test]
fn the_corpus_of_requests_reaches_every_route() {
    let statuses = corpus("http").into_iter().map(|file| {
        let request = String::from_utf8_lossy(&file).into_owned();
        let route = request.split([' ', '?']).nth(1).unwrap().to_owned();
        (route, grove_fuzz::http_answer(&file).split(' ').nth(1).unwrap().parse::<u16>().unwrap())
    });
    let statuses: Vec<_> = statuses.collect();
    for route in ["/healthz", "/metrics", "/ticket", "/proof"] {
        assert!(statuses.contains(&(route.to_owned(), 200)), "{route}: {statuses:?}");
    }
    // These have a secret that no corpus can have.
    for (route, status) in [("/pair", 401), ("/ws", 401), ("/x-grove", 403)] {
        assert!(statuses.contains(&(route.to_owned(), status)), "{route}: {statuses:?}");
    }
}

#[test]
fn every_body_has_a_target_for_cargo_fuzz() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("libfuzzer/Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).unwrap();
    for body in BODIES {
        assert!(manifest.contains(&format!("name = \"{}\"", body.name)), "{} has none", body.name);
    }
}
