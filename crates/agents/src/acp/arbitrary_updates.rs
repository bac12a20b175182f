//! Arbitrary updates of an agent: none makes the translation panic, and nothing said of a tool call is lost.

use agent_client_protocol_schema::v1 as acp;
use grove_core::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::map::{self, UpdateContent};
use super::recorded::assert_nothing_lost;
use super::settings::AgentSettings;
use super::{content, elicit};
use crate::agent::*;

/// Names that mean something somewhere, so that random values get past the first checks.
const NAMES: &str = "\
    toolCallId title name kind status content type text locations path line rawInput rawOutput _meta terminals \
    terminalId oldText newText data mimeType resource uri blob output stdout command commands entries priority \
    plan planId availableCommands input hint description currentModeId configOptions used size cost amount \
    currency severity compactionId summary error modes models availableModes availableModels modelId id \
    currentModelId currentValue options value category group mode message requestedSchema properties required \
    enum enumNames oneOf anyOf const items minItems default url minimum optionId label contentType attachments \
    selection range start end";

const WORDS: &str = "\
    text image audio resource resource_link content diff terminal pending in_progress completed failed execute \
    other edit select boolean mode model form url string number integer array object AQID ? high allow_once \
    items markdown file info embeddedResource simple image/png text/plain file:///a";

const KINDS: &str = "\
    user_message_chunk agent_message_chunk agent_thought_chunk tool_call tool_call_update plan plan_update \
    plan_removed available_commands_update current_mode_update config_option_update session_info_update \
    usage_update notice compaction_update compaction_summary_chunk other";

fn one_of(words: &'static str) -> impl Strategy<Value = String> {
    select(words.split_whitespace().collect::<Vec<_>>()).prop_map(str::to_owned)
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => one_of(WORDS), 1 => "\\PC{0,8}", 1 => Just("a\u{1f332}b\n".to_owned())]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![8 => one_of(NAMES), 1 => "[a-z]{1,4}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => word().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<i16>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => object(inner),
        ]
    })
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    vec((name(), value), 0..6).prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// A content block that shows something, or almost does.
fn block() -> impl Strategy<Value = Value> {
    let content = |kind: &'static str, with: &'static str| {
        (word(), value()).prop_map(move |(text, more)| {
            json!({"type": "content", "content": {"type": kind, with: text, "mimeType": "x/y", "_meta": more}})
        })
    };
    prop_oneof![
        content("text", "text"),
        content("image", "data"),
        (word(), value(), value())
            .prop_map(|(path, old, new)| { json!({"type": "diff", "path": path, "oldText": old, "newText": new}) }),
        value().prop_map(|id| json!({"type": "terminal", "terminalId": id})),
        value(),
    ]
}

fn call() -> impl Strategy<Value = Value> {
    (object(value()), vec(block(), 0..4)).prop_map(|(mut call, blocks)| {
        call["toolCallId"] = json!("c");
        call["content"] = Value::from(blocks);
        call
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_update_makes_the_translation_panic(kind in one_of(KINDS), update in object(value())) {
        let mut update = update;
        update["sessionUpdate"] = json!(kind);
        match map::update(json!({"sessionId": "s", "update": update})) {
            Ok(_) => {}
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn no_value_makes_any_reader_panic(value in value()) {
        drop(map::update(value.clone()));
        drop(map::permission(value.clone(), "q".into(), oneshot::channel().0));
        let mut settings = AgentSettings::of(&value);
        let session = acp::SessionId::new("s");
        for change in ["mode", "model"].iter().filter_map(|name| settings.change(&session, name, &value)).collect::<Vec<_>>() {
            settings.made(&change);
        }
        drop((settings.event(), settings.models()));
        let able = acp::PromptCapabilities::new();
        let mut message = Message::user("hi");
        message.extra = value.as_object().cloned();
        prop_assert!(!content::blocks(&message, &able).is_empty());
    }

    #[test]
    fn nothing_said_of_a_tool_call_is_lost(call in call(), kind in select(&["tool_call", "tool_call_update"][..])) {
        let mut update = call;
        update["sessionUpdate"] = json!(kind);
        let content = map::update(json!({"sessionId": "s", "update": update})).unwrap().content;
        let UpdateContent::Events(events) = content else { panic!("{content:?}") };
        let [AgentEvent::Tool(tool_update)] = &events[..] else { panic!("{events:?}") };
        assert_nothing_lost(&update, tool_update);
    }

    #[test]
    fn any_form_can_be_answered_or_is_refused(schemas in vec((word(), object(value())), 0..4), message in word()) {
        let properties: serde_json::Map<_, _> = schemas.into_iter().collect();
        let elicitation = json!({"sessionId": "s", "mode": "form", "message": message,
            "requestedSchema": {"type": "object", "properties": properties}});
        let request = elicit::request(&elicitation, "q".into()).expect("what is not required is left out");
        let answers = request.questions.iter().map(|question| (question.id.clone(), Answer::text("x"))).collect();
        let answered = InputResponse { outcome: InputOutcome::Accepted, answers };
        let response = serde_json::to_value(elicit::response(&elicitation, Some(&answered))).unwrap();
        prop_assert_eq!(&response["action"], "accept");
    }
}
