//! Random runs: commands that mostly fit the state they meet, and events that mostly do not.
//!
//! Plain functions over a small generator, so that a step is one number: a failing run shrinks by losing steps.
//! The tests of `grove-wire` and `grove-tree` include this folder as well; it uses nothing but `grove_core` and
//! `serde_json`.

mod commands;
mod events;
mod session;
mod turn;

use grove_core::*;

pub(crate) use self::commands::command;
pub(crate) use self::events::event;
#[allow(unused_imports, reason = "the tests of `grove-wire` and `grove-tree` use them")]
pub(crate) use self::{
    events::{chat_event, session_event},
    turn::message,
};

/// The decisions of one step, drawn from one number.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// True in `percent` of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn one_of<T>(&mut self, mut from: Vec<T>) -> Option<T> {
        if from.is_empty() {
            return None;
        }
        let at = self.below(from.len());
        Some(from.swap_remove(at))
    }

    pub(crate) fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.chance(50) { Some(make(self)) } else { None }
    }

    /// A short text, sometimes empty, sometimes with characters that JSON must escape.
    pub(crate) fn text(&mut self) -> String {
        let words = ["", "a", "word ", "two words", "\"quoted\"\n", "naïve 🌲", "</x>", "{\"k\":[]}"];
        self.pick(&words).to_owned()
    }

    /// A known id, or an unknown one.
    fn id(&mut self, prefix: &str) -> String {
        match self.below(12) {
            0 => String::new(),
            1 => "nonsense".to_owned(),
            number => format!("{prefix}{}", [0, 0, 0, 0, 1, 1, 1, 2, 2, 3][number - 2]),
        }
    }
}

/// The models that [`agent`] lists.
pub(crate) const MODELS: [&str; 2] = ["small", "large"];

pub(crate) fn agent() -> AgentInfo {
    let model = |id: &&str| ModelInfo {
        id: ModelId::from(*id),
        name: format!("Model {id}"),
        max_context_window: Some(1_000),
        supports_vision: None,
    };
    AgentInfo {
        id: "scripted".into(),
        display_name: "Scripted".into(),
        description: "Plays a script".into(),
        models: MODELS.iter().map(model).collect(),
    }
}

pub(crate) fn new_session() -> NewSession {
    NewSession {
        id: "s1".into(),
        uri: "scripted:/s1".into(),
        agent: "scripted".into(),
        model: None,
        working_directories: vec!["/project".into()],
        config: Some(SessionConfig::of(extra("mode", "ask"))),
        store: StoreName::default(),
    }
}

fn extra(name: &str, value: &str) -> Extra {
    Extra::from_iter([(name.to_owned(), value.into())])
}

/// Further data of a dialect: some that a dialect reads, some that it cannot read in this place, or some that no
/// dialect knows.
fn any_extra(dice: &mut Dice) -> Option<Extra> {
    use serde_json::json;
    if !dice.chance(20) {
        return None;
    }
    let text = dice.text();
    let (name, value) = dice.pick(&[
        ("mode", json!(text)),
        ("note", json!(text)),
        ("_meta", json!({"k": text, "turns": []})),
        ("reasonMessage", json!(text)),
        ("userSuggestion", json!({"text": text, "origin": {"kind": "user"}})),
        ("structuredContent", json!({"k": [text]})),
        ("error", json!({"message": text})),
        ("content", json!([{"type": "text", "text": text}])),
        ("pastTenseMessage", json!({"markdown": text})),
        ("title", json!(text)),
        ("outputSchema", json!({"type": "object"})),
        ("annotations", json!({"title": text, "readOnlyHint": true})),
        ("customizations", json!([])),
        ("modelConfig", json!({"effort": text})),
        ("agent", json!({"uri": text})),
        ("attachments", json!([{"type": "simple", "label": text}])),
    ]);
    let value = if dice.chance(90) { value } else { json!(dice.text()) };
    Some(Extra::from_iter([(name.to_owned(), value)]))
}
