//! Replays and suggestions over past requests.

use std::time::{Duration, Instant};

use grove_policy::replay::{Answer, PastRequest, replay};
use grove_policy::suggest::{offers, suggest};
use grove_policy::{Policy, RequestAction, RuleSet};

use crate::{policy, request, shell};

fn past(command: &str, answer: Answer) -> PastRequest {
    PastRequest { request: shell(command), answer: Some(answer) }
}

#[test]
fn a_replay_counts_and_lists_what_differs_from_the_answers() {
    let policy =
        policy("[[rules]]\nallow = \"shell\"\ncommand = \"git *\"\n[[rules]]\ndeny = \"shell\"\ncommand = \"rm *\"\n");
    let history = [
        past("git status", Answer::Approved),
        past("git push", Answer::Denied),
        past("rm x", Answer::Denied),
        past("rm y", Answer::Approved),
        past("make", Answer::Approved),
        PastRequest { request: shell("git log"), answer: None },
    ];
    let report = replay(&policy, &history);
    assert_eq!((report.requests, report.allowed, report.denied, report.asked, report.agreed), (6, 3, 2, 1, 2));
    let differing: Vec<_> = report.differences.iter().map(|difference| difference.index).collect();
    assert_eq!(differing, [1, 3]);
}

#[test]
fn suggestions_are_few_and_contradict_no_answer() {
    let mut history = vec![
        past("git push", Answer::Denied),
        past("git push", Answer::Denied),
        past("cargo publish", Answer::Denied),
        past("rm a", Answer::Approved),
        past("rm b", Answer::Approved),
    ];
    for at in 0..5 {
        history.push(past(&format!("git diff HEAD~{at} && cargo test -p crate{at}"), Answer::Approved));
        history.push(past(&format!("cargo test -p other{at}"), Answer::Approved));
        let paths = vec![format!("src/deep/file{at}.rs")];
        history.push(PastRequest { request: request(RequestAction::Edit { paths }), answer: Some(Answer::Approved) });
    }
    let suggestions = suggest(&history);
    let lines: Vec<_> = suggestions.iter().map(|suggestion| suggestion.rule.to_string()).collect();
    assert_eq!(
        lines,
        [
            "allow shell \"cargo test *\"",
            "allow edit \"src/deep/**\"",
            "allow shell \"git diff *\"",
            "deny shell \"git push\""
        ]
    );
    let policy = Policy::from_iter([RuleSet::of_session(suggestions.into_iter().map(|suggestion| suggestion.rule))]);
    let report = replay(&policy, &history);
    assert_eq!((report.differences.len(), report.agreed), (0, 17));
}

#[test]
fn a_wide_rule_that_a_denial_contradicts_is_not_suggested() {
    let mut history: Vec<_> = (0..4).map(|at| past(&format!("npm run test -- {at}"), Answer::Approved)).collect();
    history.push(past("npm run test -- --update", Answer::Denied));
    history.push(past("npm run test -- 0", Answer::Approved));
    let lines: Vec<_> = suggest(&history).iter().map(|suggestion| suggestion.rule.to_string()).collect();
    assert_eq!(lines, ["allow shell \"npm run test -- 0\""]);
}

#[test]
fn the_offers_offer_is_exact_and_the_next_one_covers_other_arguments() {
    let lines = |command: &str| -> Vec<Vec<String>> {
        offers(&shell(command)).iter().map(|rules| rules.iter().map(ToString::to_string).collect()).collect()
    };
    assert_eq!(lines("cd src && cargo test -p 'a b' > target/x"), [[""; 0]; 0], "the file is in another folder");
    assert_eq!(
        lines("git diff && cargo test -p 'a b' > target/x"),
        [
            ["allow edit \"target/x\"", "allow shell \"git diff\" \"cargo test -p 'a b'\""],
            ["allow edit \"target/**\"", "allow shell \"git diff *\" \"cargo test *\""],
        ]
    );
    assert_eq!(lines("rm -r x"), [["allow shell \"rm -r x\""]], "its arguments decide everything");
    for unknown in ["git $x", "eval x", "PATH=/x ls", "a 'b"] {
        assert_eq!(lines(unknown), [[""; 0]; 0], "{unknown}");
    }
    assert_eq!(offers(&request(RequestAction::Unknown { kind: None })), [[]; 0]);
}

#[test]
fn ten_thousand_requests_are_replayed_and_learned_from_in_seconds() {
    let rules = include_str!("corpus.toml");
    let corpus: Vec<&str> =
        include_str!("corpus.txt").lines().filter(|line| line.len() > 7).map(|line| &line[7..]).collect();
    let history: Vec<_> = (0..10_000)
        .map(|at| {
            let command = format!("{} {}", corpus[at % corpus.len()], at % 700);
            past(&command, if at % 9 == 0 { Answer::Denied } else { Answer::Approved })
        })
        .collect();
    let policy = policy(rules);
    let start = Instant::now();
    let report = replay(&policy, &history);
    let replayed = start.elapsed();
    let start = Instant::now();
    let suggestions = suggest(&history);
    let learned = start.elapsed();
    assert_eq!(report.requests, 10_000);
    let rules = suggestions.into_iter().map(|suggestion| suggestion.rule);
    let contradicted = replay(&Policy::from_iter([RuleSet::of_session(rules)]), &history).differences;
    assert!(contradicted.is_empty(), "{contradicted:?}");
    // An unoptimized build on a busy machine is many times slower than the program.
    let bound = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 2 });
    assert!(replayed < bound && learned < bound, "{replayed:?} {learned:?}");
}
