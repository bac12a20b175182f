//! Turns become entries and turns again without loss, whatever happened in them.

use std::sync::Arc;

use grove_core::*;
use grove_fs::{MemoryFs, SessionFs};
use grove_tree::turns::{
    EntryRange, TurnAttribution, TurnLimit, header_line, locate_turn, name_line, newest, newest_turns_in, turn_lines,
    turns, turns_of_all_branches,
};
use grove_tree::{EntryType, Log, Rules, open};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::random::{self, Dice};

/// A session's log with these turns.
fn log_of(session: &Session, turns: &[Arc<Turn>]) -> Log {
    branched_log_of(session, turns, Some)
}

/// A session's log with these turns, each after the turn that `after` says, given the latest one.
fn branched_log_of(session: &Session, turns: &[Arc<Turn>], mut after: impl FnMut(usize) -> Option<usize>) -> Log {
    let mut bytes = header_line(session);
    let (mut leaves, mut spent) = (Vec::<Option<String>>::new(), None);
    for turn in turns {
        let leaf = leaves.len().checked_sub(1).and_then(&mut after).and_then(|turn| leaves[turn].clone());
        let model = session.model.as_ref();
        let origin = TurnAttribution { session: &session.id, agent: &session.agent, model, spent, seen_end: None };
        let log = open(bytes.clone(), &mut || unreachable!()).unwrap();
        let lines = turn_lines(turn, origin, leaf.as_deref(), &|id| log.index().find(id).is_some());
        bytes.extend(lines.bytes);
        leaves.push(lines.leaf);
        spent = turn.usage.as_ref().and_then(|usage| usage.cost.as_ref()).or(spent);
    }
    open(bytes, &mut || unreachable!()).unwrap()
}

/// A session after random commands.
fn lived(steps: &[u64]) -> Session {
    let agent = random::agent();
    let mut session = Session::new(&random::new_session(), Timestamp(1_000));
    for (number, step) in steps.iter().enumerate() {
        let command = random::command(&session, &mut Dice::new(*step));
        advance(&mut session, Some(&agent), command, Timestamp(2_000 + number as u64)).ok();
    }
    session
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_of_a_turn_is_read_as_the_same_turn(steps in vec(any::<u64>(), 1..400)) {
        let session = lived(&steps);
        let finished = &session.chats[0].turns;
        let log = log_of(&session, finished);
        prop_assert!(log.index().damage().is_empty(), "{:?}", log.index().damage());
        prop_assert_eq!(&turns(&log), finished);
    }

    #[test]
    fn the_turns_of_all_branches_are_read_once_each(steps in vec(any::<u64>(), 1..400), branches in vec(any::<u64>(), 60)) {
        let session = lived(&steps);
        let finished = &session.chats[0].turns;
        let mut parents = vec![None];
        // Each turn comes after a turn of any branch, or begins the conversation again.
        let after = |latest: usize| {
            let dice = Dice::new(branches[latest % branches.len()]).below(latest + 3);
            let parent = if dice <= latest { Some(dice) } else { (dice == latest + 1).then_some(latest) };
            parents.push(parent);
            parent
        };
        let log = branched_log_of(&session, finished, after);
        prop_assert_eq!(&turns_of_all_branches(&log), finished);
        let mut branch: Vec<_> = std::iter::successors(finished.len().checked_sub(1), |turn| parents[*turn]).collect();
        branch.reverse();
        let branch: Vec<_> = branch.into_iter().map(|turn| finished[turn].clone()).collect();
        prop_assert_eq!(turns(&log), branch);
    }

    #[test]
    fn a_window_of_turns_is_what_reading_all_of_them_gives(
        steps in vec(any::<u64>(), 50..400), limit in 1..6usize, before in any::<prop::sample::Index>()
    ) {
        let session = lived(&steps);
        let finished = &session.chats[0].turns;
        let log = log_of(&session, finished);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let fs = MemoryFs::default();
            fs.write_file("log", log.bytes()).await.unwrap();
            let limit = TurnLimit { turns: limit, bytes: u64::MAX };
            let window = newest(&fs, "log", log.index(), None, limit).await.unwrap();
            let start = finished.len().saturating_sub(limit.turns);
            assert_eq!(window.turns, finished[start..]);
            assert_eq!(window.older, start > 0);
            if finished.is_empty() {
                return;
            }
            let before = before.index(finished.len());
            let place = locate_turn(&fs, "log", log.index(), &finished[before].id).await.unwrap().unwrap();
            let window = newest(&fs, "log", log.index(), Some(place.first), limit).await.unwrap();
            let start = before.saturating_sub(limit.turns);
            assert_eq!(window.turns, finished[start..before]);
            assert_eq!(window.older, start > 0);
            let behind = EntryRange::to(log.index().leaf()).above(Some(place.last));
            let window = newest_turns_in(&fs, "log", log.index(), behind, limit).await.unwrap();
            let start = finished.len().saturating_sub(limit.turns).max(before + 1);
            assert_eq!(window.turns, finished[start..], "nothing but what comes behind it");
            assert_eq!(window.older, start > before + 1);
            // The log of a fork of a fork has entries that were named by neither.
            let other = String::from_utf8(log.bytes().to_vec()).unwrap().replacen(session.id.as_str(), "another", 1);
            fs.write_file("other", other.as_bytes()).await.unwrap();
            let other = open(other.into_bytes(), &mut || unreachable!()).unwrap();
            let found = locate_turn(&fs, "other", other.index(), &finished[before].id).await.unwrap();
            assert_eq!(found.map(|place| place.first), Some(place.first));
            assert_eq!(locate_turn(&fs, "log", log.index(), &"nobody's".into()).await.unwrap(), None);
        });
    }

    /// The log's part of the log law, for Grove's own lines.
    #[test]
    fn a_log_cut_anywhere_gives_the_turns_whose_end_is_in_it(steps in vec(any::<u64>(), 50..200), cuts in vec(any::<prop::sample::Index>(), 20)) {
        let session = lived(&steps);
        let finished = &session.chats[0].turns;
        let bytes = log_of(&session, finished).bytes().to_vec();
        for cut in cuts {
            let cut = cut.index(bytes.len() + 1);
            let Ok(log) = open(bytes[..cut].to_vec(), &mut || unreachable!()) else { continue };
            let read = turns(&log);
            prop_assert_eq!(&read[..], &finished[..read.len()]);
            let ends = String::from_utf8_lossy(&bytes[..cut]).lines().filter(|line| {
                line.contains("grove.turnEnd") && serde_json::from_str::<serde_json::Value>(line).is_ok()
            }).count();
            prop_assert_eq!(read.len(), ends);
        }
    }
}

fn dollars(amount: f64) -> Cost {
    Cost { amount: Number::from_f64(amount).unwrap(), currency: "USD".into() }
}

fn plan(status: PlanStatus) -> Vec<PlanEntry> {
    vec![PlanEntry { content: "Look it up".into(), priority: PlanPriority::High, status }]
}

/// Attachments of a call beside text.
fn attached() -> Vec<ToolAttachment> {
    let body = |id: &str| ContentRef { id: id.into(), size: 9, mime_type: Some("text/plain".into()) };
    let (before, after) = (Some(body("before")), Some(body("after")));
    vec![
        ToolAttachment::Edit(FileChange { path: "/project/b".into(), before, after, added: 2, removed: 1 }),
        ToolAttachment::Content(body("picture")),
    ]
}

/// A turn with everything that the format has no counterpart for.
fn eventful_turn() -> Turn {
    let extra = |value: &str| Some(Extra::from_iter([("note".to_owned(), value.into())]));
    let option = |allows| PermissionOption { id: "always".into(), label: "Always".into(), allows, lasting: true };
    let call = |id: &str, status| {
        Part::ToolCall(Box::new(ToolCall {
            id: id.into(),
            name: "browser".into(),
            display_name: "Browse".into(),
            kind: Some(ToolKind::Fetch),
            language: None,
            invocation_message: "Opening b".into(),
            intention: Some("Look it up".into()),
            client: Some("page".into()),
            input: Some(r#"{"url":"b"}"#.into()),
            confirmed: Some(Confirmation { by: ConfirmationReason::Setting, option: Some(option(true)) }),
            output: None,
            status,
            ready_rank: Some(0),
            announced: Some(Box::new(Invocation { message: "Opening a".into(), input: None })),
            extra: extra("call"),
            running_since: None,
            ran_ms: Some(2_500),
        }))
    };
    let result = ToolResult {
        success: true,
        past_tense_message: "Opened b".into(),
        output: Some("b".into()),
        attached: attached(),
        extra: extra("result"),
    };
    let skipped = Cancellation { reason: CancelReason::Skipped, option: Some(option(false)), extra: extra("not now") };
    let asked = PermissionRequest {
        id: "r1".into(),
        kind: PermissionKind::Url,
        path: None,
        full_command_text: None,
        intention: None,
        title: Some("Open it?".into()),
        options: vec![option(true)],
        edits: vec![],
        editable: true,
    };
    let mut running = call("c4", ToolCallStatus::Running);
    if let Part::ToolCall(call) = &mut running {
        call.output = Some(ToolOutput { text: "half".into(), pieces: Some(vec!["half".into()]), attached: attached() });
    }
    let values = [
        AnswerValue::Text("this".into()),
        AnswerValue::Number(Number::from(7)),
        AnswerValue::YesOrNo(true),
        AnswerValue::One { id: "a".into(), freeform: vec!["rather b".into()] },
        AnswerValue::Several { ids: vec!["a".into(), "b".into()], freeform: vec![] },
    ];
    let mut answers: Answers = (0..)
        .map(|number| QuestionId::from(format!("q{number}")))
        .zip(values.into_iter().map(Answer::Submitted))
        .collect();
    answers.insert("answer".into(), Answer::Draft(AnswerValue::Text("th".into())));
    answers.insert("passed".into(), Answer::Skipped { freeform: vec!["no idea".into()] });
    let question = InputRequest {
        message: Some("About b".into()),
        url: Some("https://example.org".into()),
        answers,
        outcome: Some(InputOutcome::Declined),
        ..InputRequest::ask("q".into(), "Which one?")
    };
    Turn {
        id: "t1".into(),
        message: Message { extra: extra("message"), ..Message::user("go") },
        parts: vec![
            Part::Notice("Trying again".into()),
            call("c1", ToolCallStatus::Completed(result.clone())),
            Part::Plan(plan(PlanStatus::InProgress)),
            call("c2", ToolCallStatus::PendingResultConfirmation(result)),
            call("c3", ToolCallStatus::Cancelled(skipped)),
            running,
            call("c5", ToolCallStatus::PendingConfirmation(asked)),
            Part::Plan(plan(PlanStatus::Completed)),
            Part::InputRequest(question),
            Part::Notice("The last one".into()),
        ],
        usage: Some(Usage {
            input_tokens: Some(1),
            output_tokens: Some(2),
            model: Some("small".into()),
            cache_read_tokens: Some(3),
            cache_write_tokens: Some(4),
            reasoning_tokens: Some(5),
            context: Some(ContextUsage { used: 6, size: 7 }),
            cost: Some(dollars(0.25)),
        }),
        outcome: Outcome::Cancelled,
        // A clock that is far ahead.
        started_at: Timestamp(5_000_000_000_000),
        ended_at: Timestamp(5_000_000_000_030),
        derived: DerivedCache::default(),
    }
}

#[test]
fn what_the_format_has_no_word_for_is_read_as_it_was_written() {
    let written = [Arc::new(eventful_turn())];
    let log = log_of(&lived(&[]), &written);
    assert!(log.index().damage().is_empty(), "{:?}", log.index().damage());
    assert_eq!(turns(&log), written);
}

#[test]
fn a_model_is_told_what_came_of_every_call() {
    let log = log_of(&lived(&[]), &[Arc::new(eventful_turn())]);
    let lines = String::from_utf8(log.bytes().to_vec()).unwrap();
    let values = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let results: Vec<_> = values.filter(|line| line["message"]["role"] == "toolResult").collect();
    let told: Vec<_> = results.iter().map(|line| line["message"]["content"][0]["text"].as_str().unwrap()).collect();
    let interrupted = "The call was interrupted.";
    assert_eq!(told, ["b", "b", "The user skipped this.", interrupted, interrupted]);
}

/// The messages of a log as other programs read them: without Grove's data.
fn messages(log: &Log) -> Vec<serde_json::Value> {
    let lines = String::from_utf8(log.bytes().to_vec()).unwrap();
    let values = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    values.filter(|line| line["type"] == "message").map(|line| line["message"].clone()).collect()
}

fn turn_of(parts: Vec<Part>, usage: Option<Usage>) -> Turn {
    Turn { parts, usage, outcome: Outcome::Complete, ..eventful_turn() }
}

#[test]
fn plans_and_notices_change_nothing_of_what_a_model_would_be_told() {
    let text = |id: &str| Part::Text(TextPart { id: id.into(), content: "b".into(), delivery: Delivery::Streamed });
    let eventful = eventful_turn().parts;
    let noticed = || [Part::Plan(plan(PlanStatus::Pending)), Part::Notice("Trying again".into())];
    for said in [vec![text("a")], eventful.clone(), [eventful, vec![text("a")]].concat()] {
        let is_told = |part: &Part| !matches!(part, Part::Plan(_) | Part::Notice(_));
        let silent: Vec<Part> = said.into_iter().filter(is_told).collect();
        let noisy: Vec<Part> = silent.iter().flat_map(|part| noticed().into_iter().chain([part.clone()])).collect();
        let noisy = [noisy, noticed().to_vec()].concat();
        let logs = [silent, noisy].map(|parts| log_of(&lived(&[]), &[Arc::new(turn_of(parts, None))]));
        assert_eq!(messages(&logs[0]), messages(&logs[1]));
        let contexts = logs.map(|log| {
            let context = log.context(Rules::Grove, log.index().leaf());
            context.messages.iter().map(|message| message.json.get().to_owned()).collect::<Vec<_>>()
        });
        assert_eq!(contexts[0], contexts[1]);
    }
}

/// The usage on the last message of each of these turns.
fn usages(turns: impl IntoIterator<Item = Option<Usage>>) -> Vec<serde_json::Value> {
    let text = Part::Text(TextPart { id: "a".into(), content: "b".into(), delivery: Delivery::Whole });
    let turn = |(number, usage)| {
        let id = TurnId::from(format!("t{number}"));
        Arc::new(Turn { id, ..turn_of(vec![text.clone()], usage) })
    };
    let turns: Vec<_> = turns.into_iter().enumerate().map(turn).collect();
    let messages = messages(&log_of(&lived(&[]), &turns)).into_iter();
    messages.filter(|message| message["role"] == "assistant").map(|message| message["usage"].clone()).collect()
}

#[test]
fn a_message_has_the_tokens_of_its_turn_and_all_of_them_together() {
    let [usage] = &usages([eventful_turn().usage])[..] else { panic!("one message") };
    let tokens = ["input", "output", "cacheRead", "cacheWrite", "totalTokens"].map(|name| usage[name].clone());
    assert_eq!(tokens, [1, 2, 3, 4, 10].map(serde_json::Value::from));
    let most = Some(u64::MAX);
    let many = Usage { input_tokens: most, output_tokens: most, ..Usage::default() };
    assert_eq!(usages([Some(many)])[0]["totalTokens"], u64::MAX);
}

#[test]
fn what_the_messages_cost_adds_up_to_what_the_chat_cost_in_dollars() {
    let used = |cost: Option<Cost>| Some(Usage { cost, ..Usage::default() });
    let totals = |costs: Vec<Option<Cost>>| -> Vec<f64> {
        usages(costs.into_iter().map(used)).iter().map(|usage| usage["cost"]["total"].as_f64().unwrap()).collect()
    };
    let euros = Cost { currency: "EUR".into(), ..dollars(5.0) };
    let told = vec![Some(dollars(0.1)), None, Some(dollars(0.3)), Some(dollars(0.3)), Some(dollars(0.7))];
    assert_eq!(totals(told), [0.1, 0.0, 0.2, 0.0, 0.4]);
    assert_eq!(totals(vec![Some(dollars(0.5)), Some(dollars(0.2))]), [0.5, 0.2], "an agent that restarts its count");
    assert_eq!(totals(vec![Some(euros.clone()), Some(dollars(0.2))]), [0.0, 0.2]);
    assert_eq!(totals(vec![Some(dollars(0.5)), Some(euros)]), [0.5, 0.0]);
}

#[test]
fn the_first_message_has_no_parent_and_groves_own_entries_are_nobodys() {
    let session = lived(&(0..400).collect::<Vec<u64>>());
    assert!(session.chats[0].turns.len() > 2, "a session worth looking at");
    let log = log_of(&session, &session.chats[0].turns);
    let index = log.index();
    let first = index.entries().next().unwrap();
    assert_eq!(index.parent_id(first), None);
    assert!(index.branch(index.leaf().unwrap()).iter().all(|entry| index.kind(*entry) == EntryType::Message));
    let context = log.context(Rules::Pi, index.leaf());
    assert!(!context.messages.is_empty());
}

#[test]
fn writing_a_turn_twice_gives_the_same_entries() {
    let session = lived(&(0..200).collect::<Vec<u64>>());
    let turn = session.chats[0].turns.first().unwrap();
    let origin =
        TurnAttribution { session: &session.id, agent: &session.agent, model: None, spent: None, seen_end: None };
    let once = turn_lines(turn, origin, None, &|_| false);
    assert_eq!(once, turn_lines(turn, origin, None, &|_| false));
    let again = turn_lines(turn, origin, None, &|id| id.len() == 8);
    assert_ne!(once, again, "an id that is taken is not used again");
}

#[test]
fn no_id_is_ever_used_twice_however_many_are_taken() {
    let session = lived(&[]);
    let mut taken = std::collections::HashSet::new();
    for _ in 0..100 {
        let lines = name_line(&session.id, "name", Timestamp(5), None, &|id| taken.contains(id));
        assert!(taken.insert(lines.leaf.unwrap()));
    }
}

/// The texts of all turns of a log, read page by page like a client.
fn texts_in_pages(file: &str, limit: usize) -> Vec<String> {
    let log = open(file.as_bytes().to_vec(), &mut || unreachable!()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let fs = MemoryFs::default();
        fs.write_file("log", log.bytes()).await.unwrap();
        let limit = TurnLimit { turns: limit, bytes: u64::MAX };
        let mut window = newest(&fs, "log", log.index(), None, limit).await.unwrap();
        let mut texts = Vec::new();
        loop {
            texts.splice(..0, window.turns.iter().map(|turn| turn.message.text.clone()));
            assert!(texts.len() < 100, "the pages never end: {texts:?}");
            let Some(first) = window.turns.first().filter(|_| window.older) else { return texts };
            let place = locate_turn(&fs, "log", log.index(), &first.id).await.unwrap().unwrap();
            window = newest(&fs, "log", log.index(), Some(place.first), limit).await.unwrap();
        }
    })
}

#[test]
fn turns_in_a_cycle_of_parents_are_read_once_each() {
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/"}"#;
    let user = |id: &str, parent: &str| {
        let message = serde_json::json!({"role": "user", "content": id});
        serde_json::json!({"type": "message", "id": id, "parentId": parent, "message": message}).to_string()
    };
    let label = |id: &str, parent: &str| {
        serde_json::json!({"type": "label", "id": id, "parentId": parent, "targetId": "x", "label": "l"}).to_string()
    };
    let cases: [(Vec<String>, &[&str]); 4] = [
        (vec![label("x", "y"), label("y", "x")], &[]),
        (vec![user("x", "y"), label("y", "x")], &["x"]),
        (vec![user("x", "z"), user("y", "x"), user("z", "y")], &["x", "y", "z"]),
        // The path to the leaf enters the cycle at y.
        (
            vec![user("x", "z"), user("y", "x"), user("z", "y"), user("l", "y"), user("m", "l")],
            &["z", "x", "y", "l", "m"],
        ),
    ];
    for (lines, expected) in cases {
        let file = format!("{header}\n{}\n", lines.join("\n"));
        for limit in 1..6 {
            assert_eq!(texts_in_pages(&file, limit), expected, "{limit} a page of {file}");
        }
    }
}

#[test]
fn a_name_is_an_entry_that_becomes_the_leaf() {
    let session = lived(&[]);
    let lines = name_line(&session.id, "A “name”", Timestamp(5), None, &|_| false);
    let log = open([header_line(&session), lines.bytes].concat(), &mut || unreachable!()).unwrap();
    assert_eq!(log.index().name().as_deref(), Some("A “name”"));
    assert_eq!(log.index().id(log.index().leaf().unwrap()), lines.leaf.unwrap());
}

#[test]
fn entries_of_other_programs_become_turns_by_their_messages() {
    let file = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":[{"type":"text","text":"q\ud800"}]}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"ls"}}],"stopReason":"toolUse","usage":{"input":3,"output":4}}}
{"type":"message","id":"c","parentId":"b","timestamp":"2026-01-02T03:04:08.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"out"}],"isError":true}}
{"type":"message","id":"d","parentId":"c","timestamp":"2026-01-02T03:04:09.000Z","message":{"role":"assistant","content":"done","stopReason":"aborted"}}
"#;
    let log = open(file.as_bytes().to_vec(), &mut || unreachable!()).unwrap();
    let turns = turns(&log);
    assert_eq!(turns.len(), 1);
    let turn = &turns[0];
    assert_eq!((turn.id.as_str(), turn.message.text.as_str()), ("a", "q\u{fffd}"));
    assert_eq!(turn.outcome, Outcome::Cancelled);
    assert_eq!(turn.usage.as_ref().unwrap().output_tokens, Some(4));
    let Part::ToolCall(call) = &turn.parts[1] else { panic!("{:?}", turn.parts) };
    assert_eq!(call.input.as_deref(), Some(r#"{"command":"ls"}"#));
    assert!(
        matches!(&call.status, ToolCallStatus::Completed(result) if !result.success && result.output.as_deref() == Some("out"))
    );
    assert!(matches!(&turn.parts[2], Part::Text(text) if text.content == "done"));
}
