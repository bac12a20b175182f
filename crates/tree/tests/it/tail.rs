//! The newest messages of a context, and the small part of a log that is read for them.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

use grove_tree::{Context, Log, LogSource, Rules};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{log_of, opened};

const ALL: [Rules; 3] = [Rules::Pi, Rules::Omp, Rules::Grove];

struct Counting<'a>(&'a Log, Cell<usize>);

impl LogSource for Counting<'_> {
    fn read(&self, offset: u64, length: usize) -> Result<Cow<'_, [u8]>, grove_fs::FsError> {
        self.1.set(self.1.get() + length);
        // Like a file: the read bytes belong to the reader.
        self.0.read(offset, length).map(|bytes| Cow::Owned(bytes.into_owned()))
    }
}

fn chain(entries: impl Iterator<Item = Value>) -> Log {
    let lines: Vec<Value> = entries
        .enumerate()
        .map(|(number, mut entry)| {
            entry["id"] = json!(format!("e{number}"));
            entry["parentId"] = json!(number.checked_sub(1).map(|number| format!("e{number}")));
            entry["timestamp"] = json!("2026-01-02T03:04:05.000Z");
            entry
        })
        .collect();
    opened(log_of(&lines))
}

fn message(message: Value) -> Value {
    json!({"type": "message", "message": message})
}

fn shown(context: &Context<'_>) -> (Vec<String>, Value) {
    let messages = context.messages.iter().map(|message| format!("{:?} {}", message.entry, message.json.get()));
    let mut settings = serde_json::to_value(context).unwrap();
    settings["messages"].take();
    (messages.collect(), settings)
}

#[test]
fn the_newest_messages_are_read_without_the_rest() {
    let turns = (0..10_000).map(|number| match number {
        5 => json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
        6 => json!({"type": "mode_change", "mode": "plan"}),
        7 => json!({"type": "ttsr_injection", "injectedRules": ["no-force"]}),
        8 => json!({"type": "model_change", "provider": "acme", "modelId": "oak", "model": "acme/oak"}),
        _ if number % 3 == 0 => message(json!({"role": "user", "content": "x".repeat(500)})),
        _ if number % 3 == 1 => message(json!({
            "role": "assistant", "provider": "p", "model": "m",
            "content": [{"type": "toolCall", "id": format!("c{number}"), "name": "t", "arguments": {}}],
        })),
        _ => message(json!({"role": "toolResult", "toolCallId": format!("c{}", number - 1), "content": []})),
    });
    let log = chain(turns);
    for rules in ALL {
        let source = Counting(&log, Cell::new(0));
        let tail = Context::tail(log.index(), &source, rules, log.index().leaf(), 200).unwrap();
        // One less if the first would be a tool's result.
        assert!(tail.messages.len() == 200 || rules == Rules::Grove && tail.messages.len() == 199, "{rules:?}");
        assert!(source.1.get() < 200_000, "{rules:?} reads {} of {} bytes", source.1.get(), log.bytes().len());
        let whole = shown(&log.context(rules, log.index().leaf()));
        let tail = shown(&tail);
        assert_eq!(tail.1, whole.1, "{rules:?}: settings are those of the whole branch");
        assert_eq!(tail.0, whole.0[whole.0.len() - tail.0.len()..]);
    }
}

#[test]
fn before_the_last_compaction_nothing_is_read() {
    let entries = (0..1_000).map(|number| match number {
        900 => json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "e890"}),
        _ => message(json!({"role": "user", "content": "x".repeat(500)})),
    });
    let log = chain(entries);
    let source = Counting(&log, Cell::new(0));
    let context = Context::at(log.index(), &source, Rules::Grove, log.index().leaf()).unwrap();
    assert_eq!(context.messages.len(), 1 + 10 + 99);
    assert!(source.1.get() < 130 * 700, "{}", source.1.get());
}

fn any_entry() -> impl Strategy<Value = Value> {
    let id = || (0u8..4).prop_map(|id| id.to_string());
    let calls = |ids: Vec<String>| {
        let calls = ids.iter().map(|id| json!({"type": "toolCall", "id": id, "name": "t", "arguments": {}}));
        calls.collect::<Vec<_>>()
    };
    let assistant = move |(ids, stop, text): (Vec<String>, u8, bool)| {
        let stop = ["toolUse", "stop", "aborted", "error"][usize::from(stop)];
        let mut content = calls(ids);
        if text {
            content.push(json!({"type": "text", "text": "said"}));
        }
        let mut answer = json!({"role": "assistant", "content": content, "stopReason": stop, "model": stop});
        if text && stop == "stop" {
            answer["retryRecovery"] = json!({"status": "recovered"});
        }
        message(answer)
    };
    prop_oneof![
        6 => "[a-z]{1,3}".prop_map(|text| message(json!({"role": "user", "content": text}))),
        4 => (proptest::collection::vec(id(), 0..3), 0u8..4, any::<bool>()).prop_map(assistant),
        5 => id().prop_map(|id| message(json!({"role": "toolResult", "toolCallId": id, "content": []}))),
        1 => Just(message(json!({"role": "system", "content": "s"}))),
        1 => Just(json!({"type": "custom_message", "customType": "interrupted-thinking", "content": "x"})),
        1 => Just(json!({"type": "branch_summary", "summary": "left", "fromId": "root"})),
        1 => (0u8..30).prop_map(|first| json!({
            "type": "compaction", "summary": "s", "firstKeptEntryId": format!("e{first}"),
            "systemMessage": if first % 2 == 0 { json!({"role": "system", "content": "t"}) } else { Value::Null },
        })),
        1 => Just(json!({"type": "reset_boundary"})),
        1 => (0u8..30, any::<bool>()).prop_map(|(target, removed)| json!({
            "type": "context_edit", "targetId": format!("e{target}"),
            "replacement": if removed { Value::Null } else { json!({"content": "edited"}) },
        })),
        1 => (id(), any::<bool>()).prop_map(|(model, small)| json!({
            "type": "model_change", "model": format!("p/{model}"), "role": if small { "small" } else { "default" },
        })),
        1 => id().prop_map(|rule| json!({"type": "ttsr_injection", "injectedRules": [rule]})),
    ]
}

/// The same entries, with unique call ids like agents give them. A result belongs to the newest call of its name.
fn with_own_ids(entries: Vec<Value>) -> Vec<Value> {
    let mut newest: HashMap<String, String> = HashMap::new();
    let mut named = entries;
    for (number, entry) in named.iter_mut().enumerate() {
        let Some(message) = entry.get_mut("message") else { continue };
        for block in message["content"].as_array_mut().into_iter().flatten().filter(|block| block["type"] == "toolCall")
        {
            let name = block["id"].as_str().unwrap().to_owned();
            let own = format!("{name}-{number}");
            block["id"] = json!(own);
            newest.insert(name, own);
        }
        if let Some(own) = message["toolCallId"].as_str().and_then(|name| newest.get(name)) {
            message["toolCallId"] = json!(own);
        }
    }
    named
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tail_is_the_end_of_the_whole_context(
        entries in proptest::collection::vec(any_entry(), 0..90),
        count in 0usize..20,
    ) {
        let log = chain(with_own_ids(entries).into_iter());
        let source = Counting(&log, Cell::new(0));
        for rules in ALL {
            let whole = shown(&log.context(rules, log.index().leaf()));
            let tail = Context::tail(log.index(), &source, rules, log.index().leaf(), count).unwrap();
            let tail = shown(&tail);
            prop_assert_eq!(&tail.1, &whole.1);
            let mut expected = whole.0[whole.0.len().saturating_sub(count)..].to_vec();
            if rules == Rules::Grove {
                let results = expected.iter().take_while(|message| message.contains("\"role\":\"toolResult\"")).count();
                expected.drain(..results);
            }
            prop_assert_eq!(&tail.0, &expected, "{:?}", rules);
        }
    }

    #[test]
    fn under_groves_rules_every_call_has_its_result_and_every_result_its_call(
        entries in proptest::collection::vec(any_entry(), 0..60),
    ) {
        let log = chain(entries.into_iter());
        let context = log.context(Rules::Grove, log.index().leaf());
        let mut open: Vec<String> = Vec::new();
        for message in &context.messages {
            let message: Value = serde_json::from_str(message.json.get()).unwrap();
            for block in message["content"].as_array().into_iter().flatten() {
                if block["type"] == "toolCall" {
                    open.push(block["id"].as_str().unwrap().to_owned());
                }
            }
            if message["role"] == "toolResult" {
                let id = message["toolCallId"].as_str().unwrap();
                let at = open.iter().position(|call| call == id);
                prop_assert!(at.is_some(), "a result without its call");
                open.remove(at.unwrap());
            }
        }
        prop_assert_eq!(open, Vec::<String>::new());
    }
}
