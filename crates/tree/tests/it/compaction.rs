//! The kept part of a compaction, and the summarizer's prompt.

use grove_core::Timestamp;
use grove_tree::compaction::{CompactionPlan, SummaryKind, SummaryOptions, estimate, plan, summary_prompt};
use grove_tree::conversation::{
    Block, MessageRole, ModelMessage, messages_of, model_messages, render_transcript, transcript_at,
};
use grove_tree::entries::{Compaction, SummaryOrigin};
use grove_tree::tree_edit::{self, NewEntry};
use grove_tree::{Log, Rules};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{log_of, opened};

/// A chain of messages, each a child of the one before, with the ids 0, 1, …
fn talk(messages: &[Value]) -> Log {
    let lines: Vec<Value> = messages
        .iter()
        .enumerate()
        .map(|(number, message)| {
            json!({
                "type": "message", "id": number.to_string(), "parentId": number.checked_sub(1).map(|n| n.to_string()),
                "timestamp": "2026-01-02T03:04:05.000Z", "message": message,
            })
        })
        .collect();
    opened(log_of(&lines))
}

fn said(role: &str, tokens: usize) -> Value {
    json!({"role": role, "content": "word".repeat(tokens)})
}

fn calling(ids: &[&str]) -> Value {
    let calls =
        ids.iter().map(|id| json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": "ls"}}));
    json!({"role": "assistant", "content": calls.collect::<Vec<_>>(), "stopReason": "toolUse"})
}

fn result(call: &str, tokens: usize) -> Value {
    let content = json!([{"type": "text", "text": "word".repeat(tokens)}]);
    json!({"role": "toolResult", "toolCallId": call, "toolName": "bash", "content": content})
}

fn planned(log: &Log, keep: u64) -> Option<CompactionPlan> {
    plan(log.index(), log, log.index().leaf(), keep).unwrap()
}

fn ids(log: &Log, plan: &CompactionPlan) -> (String, Vec<String>) {
    let id = |entry| log.index().id(entry).into_owned();
    (id(plan.first_kept), plan.to_summarize.iter().map(|entry| id(*entry)).collect())
}

fn messages(log: &Log, rules: Rules) -> Vec<ModelMessage> {
    model_messages(&log.context(rules, log.index().leaf()))
}

#[test]
fn the_newest_messages_that_fit_are_kept() {
    let log = talk(&[said("user", 10), said("assistant", 10), said("user", 10), said("assistant", 10)]);
    for (keep, first) in [(0, "3"), (10, "3"), (19, "3"), (20, "2"), (30, "1"), (39, "1")] {
        let plan = planned(&log, keep).unwrap();
        assert_eq!(ids(&log, &plan).0, first, "{keep}");
        assert_eq!(plan.tokens_before, 40);
    }
    assert_eq!(planned(&log, 40), None, "all of it fits");
    assert_eq!(planned(&talk(&[]), 0), None);
    assert_eq!(planned(&talk(&[said("user", 10)]), 0), None, "there is nothing before it");
}

#[test]
fn a_call_is_never_split_from_its_result() {
    let log = talk(&[
        said("user", 1),
        calling(&["a", "b"]),
        result("a", 100),
        result("b", 100),
        said("assistant", 10),
        said("user", 10),
    ]);
    for keep in [20, 100, 150, 219] {
        let plan = planned(&log, keep).unwrap();
        assert_eq!(ids(&log, &plan), ("4".into(), ["0", "1", "2", "3"].map(String::from).to_vec()), "{keep}");
    }
    assert_eq!(ids(&log, &planned(&log, 230).unwrap()).0, "1");
    let at_the_end = talk(&[said("user", 1), calling(&["a"]), result("a", 100)]);
    assert_eq!(ids(&at_the_end, &planned(&at_the_end, 10).unwrap()).0, "1", "a result stays with its call");
}

#[test]
fn what_was_compacted_before_is_summarized_with_the_rest_and_not_alone() {
    let log = talk(&[said("user", 10), said("assistant", 10), said("user", 10)]);
    let first = planned(&log, 20).unwrap();
    let kept = log.index().id(first.first_kept).into_owned();
    let compaction = Compaction {
        summary: &"word".repeat(50),
        first_kept: Some(&kept),
        tokens_before: first.tokens_before,
        details: None,
        origin: SummaryOrigin::Host,
    };
    let line =
        tree_edit::compact(log.index(), &compaction, NewEntry { id: "c", at: Timestamp(0) }).unwrap().line.unwrap();
    let log = opened([log.bytes(), &line, b"\n"].concat());
    let again = planned(&log, 10).unwrap();
    assert_eq!(ids(&log, &again), ("2".into(), ["c", "1"].map(String::from).to_vec()));
    assert!(again.messages[0].content[0] != Block::Text(String::new()));
    assert_eq!(planned(&log, 25), None, "a summary alone is not summarized again");
}

#[test]
fn tokens_are_characters_by_four() {
    let log = talk(&[
        json!({"role": "user", "content": "äöüß".repeat(10)}),
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "1234"},
            {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"a": 1}},
        ]}),
        json!({"role": "toolResult", "toolCallId": "c", "content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]}),
    ]);
    let messages = messages(&log, Rules::Grove);
    assert_eq!(estimate(&messages[..1]), 10);
    assert_eq!(estimate(&messages[1..2]), 4);
    assert_eq!(estimate(&messages[2..]), 1_200);
}

fn wish(of: SummaryKind, instructions: Option<&str>) -> SummaryOptions<'_> {
    SummaryOptions { of, instructions, replaces: false, context: &[] }
}

#[test]
fn a_summarizer_is_told_what_to_do_and_the_conversation() {
    let log = talk(&[said("user", 2), calling(&["a"]), result("a", 2)]);
    let messages = messages(&log, Rules::Grove);
    let past = summary_prompt(&wish(SummaryKind::Past, Some("the tests")), &messages, 10_000);
    assert!(past.contains("the tests") && past.contains("## Open"));
    assert!(past.ends_with(
        "<conversation>\nUser:\nwordword\n\nAssistant:\n[calls bash with {\"command\":\"ls\"}]\n\nResult of bash:\nwordword\n</conversation>\n"
    ));
    let branch = summary_prompt(&wish(SummaryKind::Branch, None), &messages, 10_000);
    assert!(branch.contains("leaves it") && !branch.contains("in particular"));
    let context = ["The build is green.".to_owned()];
    let own = SummaryOptions { replaces: true, context: &context, ..wish(SummaryKind::Past, Some("Only names.")) };
    let own = summary_prompt(&own, &messages, 10_000);
    assert!(own.starts_with("Only names.\nThe build is green.\n\n<conversation>"), "{own}");
}

#[test]
fn the_messages_of_a_branch_are_those_of_its_entries_alone() {
    let log = talk(&[said("user", 1), said("assistant", 1), said("user", 2), calling(&["a"]), result("a", 2)]);
    let end = log.index().leaf().unwrap();
    let branch = log.index().branch(end);
    let messages = messages_of(log.index(), &log, end, &branch[2..]).unwrap();
    let entries: Vec<_> = messages.iter().map(|message| message.entry).collect();
    assert_eq!(entries, branch[2..]);
    assert_eq!(messages_of(log.index(), &log, end, &[]).unwrap(), []);
}

#[test]
fn a_story_is_bounded_and_keeps_the_newest() {
    let log = talk(&[said("user", 100), said("assistant", 100), said("user", 100)]);
    let messages = messages(&log, Rules::Grove);
    let transcript = render_transcript(&messages, 900);
    assert!(transcript.starts_with("(What was said before is left out here.)\n\nAssistant:"), "{transcript}");
    assert!(transcript.len() < 1_000);
    let short = render_transcript(&messages, 10);
    assert!(short.ends_with("User:\nword"), "{short}");
    let long = talk(&[calling(&["a"]), result("a", 10_000)]);
    let messages = model_messages(&long.context(Rules::Grove, long.index().leaf()));
    let transcript = render_transcript(&messages, 1_000_000);
    assert!(transcript.len() < 2_200 && transcript.contains("[… 38000 bytes …]"), "{}", transcript.len());
}

/// A conversation with a compacted older part, and `newer` messages after it.
fn compacted(summary: &str, newer: usize) -> Log {
    let message = |id: usize, parent: &str| {
        json!({
            "type": "message", "id": format!("m{id}"), "parentId": parent, "timestamp": "2026-01-02T03:04:05.000Z",
            "message": {"role": if id.is_multiple_of(2) { "user" } else { "assistant" }, "content": format!("number {id}.")},
        })
    };
    let mut lines = vec![
        json!({"type": "message", "id": "old", "parentId": null, "message": {"role": "user", "content": "forgotten"}}),
        json!({"type": "compaction", "id": "c", "parentId": "old", "summary": summary, "firstKeptEntryId": "m0"}),
    ];
    lines.extend((0..newer).map(|id| message(id, &id.checked_sub(1).map_or("c".to_owned(), |id| format!("m{id}")))));
    opened(log_of(&lines))
}

fn recalled(log: &Log, limit: usize) -> Option<String> {
    transcript_at(log.index(), log, log.index().leaf(), limit).unwrap()
}

#[test]
fn a_summary_that_a_conversation_begins_with_is_told_whatever_is_left_out() {
    // Fewer messages than the first read has, and more.
    for newer in [20, 1_000] {
        let log = compacted("the gist of it", newer);
        let (last, limit) = (format!("number {}.", newer - 1), 250);
        for transcript in [recalled(&log, limit).unwrap(), render_transcript(&messages(&log, Rules::Grove), limit)] {
            let (lead, rest) = transcript.split_once("\n\n(What came next is left out here.)\n\n").expect(&transcript);
            assert!(lead.starts_with("User:\n") && lead.contains("the gist of it"), "{transcript}");
            assert!(
                rest.ends_with(&last) && !rest.contains("number 0.") && !transcript.contains("forgotten"),
                "{transcript}"
            );
            assert!(transcript.len() < limit + 50, "{}", transcript.len());
        }
    }
}

#[test]
fn a_summary_leaves_half_the_room_to_what_is_newest() {
    let log = compacted(&"gist ".repeat(1_000), 2);
    let transcript = recalled(&log, 400).unwrap();
    assert!(transcript.starts_with("User:") && transcript.matches("gist ").count() > 40, "{transcript}");
    assert!(transcript.ends_with("number 1.") && transcript.len() < 450, "{transcript}");
}

#[test]
fn a_story_tells_as_much_as_it_has_room_for() {
    let log = compacted("the gist of it", 1_000);
    let all = recalled(&log, 1 << 20).unwrap();
    assert!(all.contains("number 0.") && !all.contains("left out"), "all of it has room");
    assert_eq!(recalled(&talk(&[]), 1_000), None);
    let uncompacted = talk(&[said("user", 1)]);
    assert_eq!(recalled(&uncompacted, 1_000).as_deref(), Some("User:\nword"));
}

#[test]
fn summaries_custom_messages_and_commands_are_the_users_by_every_rule() {
    let lines = [
        json!({"type": "compaction", "id": "c", "parentId": null, "summary": "so far", "firstKeptEntryId": "c"}),
        json!({"type": "branch_summary", "id": "b", "parentId": "c", "summary": "left", "fromId": "root"}),
        json!({"type": "custom_message", "id": "m", "parentId": "b", "customType": "x", "content": "note"}),
        json!({"type": "message", "id": "s", "parentId": "m", "message":
            {"role": "bashExecution", "command": "ls", "output": "a b", "exitCode": 0}}),
        json!({"type": "message", "id": "h", "parentId": "s", "message":
            {"role": "bashExecution", "command": "secret", "output": "", "excludeFromContext": true}}),
        json!({"type": "message", "id": "y", "parentId": "h", "message": {"role": "system", "content": "be kind"}}),
    ];
    let log = opened(log_of(&lines));
    for rules in [Rules::Pi, Rules::Omp, Rules::Grove] {
        let messages = messages(&log, rules);
        let shown: Vec<_> = messages
            .iter()
            .map(|message| match message.content.as_slice() {
                [Block::Text(text)] => {
                    (message.speaker.clone(), log.index().id(message.entry).into_owned(), text.as_str())
                }
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            (MessageRole::User, "c", "What was said before this point, in short:\n\n<summary>\nso far\n</summary>"),
            (
                MessageRole::User,
                "b",
                "What happened on another branch of this conversation, in short:\n\n<summary>\nleft\n</summary>",
            ),
            (MessageRole::User, "m", "note"),
            (MessageRole::User, "s", "I ran this myself:\nls\n\nIt gave:\na b"),
            (MessageRole::System, "y", "be kind"),
        ];
        assert_eq!(shown, expected.map(|(speaker, id, text)| (speaker, id.to_owned(), text)), "{rules:?}");
    }
}

#[test]
fn results_say_which_call_they_answer_and_whether_it_failed() {
    let mut failed = result("a", 1);
    failed["isError"] = json!(true);
    let log = talk(&[calling(&["a"]), failed]);
    let messages = messages(&log, Rules::Grove);
    let call = Block::Call { id: "a".into(), name: "bash".into(), arguments: r#"{"command":"ls"}"#.into() };
    assert_eq!(messages[0].content, [call]);
    assert_eq!(messages[1].speaker, MessageRole::Tool { call_id: "a".into(), name: "bash".into(), is_error: true });
    assert!(render_transcript(&messages, 1_000).contains("bash failed:\nword"));
}

fn any_message() -> impl Strategy<Value = Value> {
    let id = || (0u8..4).prop_map(|id| id.to_string());
    prop_oneof![
        2 => (0usize..30).prop_map(|tokens| said("user", tokens)),
        1 => (0usize..30).prop_map(|tokens| said("assistant", tokens)),
        2 => proptest::collection::vec(id(), 1..3)
            .prop_map(|ids| calling(&ids.iter().map(String::as_str).collect::<Vec<_>>())),
        3 => (id(), 0usize..30).prop_map(|(id, tokens)| result(&id, tokens)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_kept_can_be_given_to_a_model(said in proptest::collection::vec(any_message(), 0..30), keep in 0u64..120) {
        let log = talk(&said);
        let Some(plan) = planned(&log, keep) else { return Ok(()) };
        let first = log.index().id(plan.first_kept).into_owned();
        let compaction =
            Compaction { summary: "s", first_kept: Some(&first), tokens_before: 0, details: None, origin: SummaryOrigin::Host };
        let line = tree_edit::compact(log.index(), &compaction, NewEntry { id: "c", at: Timestamp(0) }).unwrap().line.unwrap();
        let after = opened([log.bytes(), &line, b"\n"].concat());
        // Everything from before is summarized or kept: no call or result is lost.
        let before: Vec<_> = messages(&log, Rules::Grove);
        let after = messages(&after, Rules::Grove);
        prop_assert_eq!(&before[..plan.messages.len()], plan.messages.as_slice());
        prop_assert_eq!(&before[plan.messages.len()..], &after[1..]);
        let is_result = matches!(after[1].speaker, MessageRole::Tool { .. });
        prop_assert!(!is_result);
    }
}
