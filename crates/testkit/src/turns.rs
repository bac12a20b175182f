//! Uniform turns, for sessions of any length.

use grove_core::*;
use serde_json::json;

/// A question, a call with its result, and an answer. Result and answer have so many words.
pub fn read_only_turn(number: u64, at: Timestamp, result: usize, answer: usize) -> Turn {
    let result = ToolResult {
        success: true,
        past_tense_message: "Looked".to_owned(),
        output: Some(words(number, result)),
        attached: Vec::new(),
        extra: None,
    };
    let call = ToolCall {
        id: format!("call-{number}").into(),
        name: "look".to_owned(),
        display_name: "Look".to_owned(),
        kind: None,
        language: None,
        invocation_message: "Looks".to_owned(),
        intention: None,
        client: None,
        input: Some(json!({"path": format!("src/{number}.rs")}).to_string()),
        confirmed: None,
        output: None,
        status: ToolCallStatus::Completed(result),
        ready_rank: Some(0),
        announced: None,
        extra: None,
        running_since: None,
        ran_ms: None,
    };
    let text = TextPart { id: "answer".into(), content: words(number, answer), delivery: Delivery::Streamed };
    Turn {
        id: format!("turn-{number}").into(),
        message: Message::user(format!("What is in file {number}?")),
        parts: vec![Part::ToolCall(Box::new(call)), Part::Text(text)],
        usage: None,
        outcome: Outcome::Complete,
        started_at: at,
        ended_at: at,
        derived: DerivedCache::default(),
    }
}

fn words(number: u64, count: usize) -> String {
    const WORDS: [&str; 8] = ["the", "entry", "returns", "fn open()", "of", "index", "line", "and"];
    let word = |at: usize| WORDS.get((at * 7 + number as usize) % WORDS.len()).copied().unwrap_or_default();
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}
