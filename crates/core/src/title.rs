//! Titles of sessions and chats: normalisation and sources.

use grove_checks::Check;
use serde::{Deserialize, Deserializer, Serialize};

use crate::state::Session;

/// The maximum number of characters of a title. Longer ones are cut.
pub const MAX_TITLE: usize = 200;

/// Normalises a title: trimmed, in one line, without control characters, at most [`MAX_TITLE`] characters. `None` if
/// nothing is left.
pub fn normalized_title(text: &str) -> Option<String> {
    let mut title = String::new();
    for piece in text.split(is_break) {
        let piece: String = piece.chars().filter(|one| !is_unprintable(*one)).collect();
        let piece = piece.trim();
        if !piece.is_empty() {
            if !title.is_empty() {
                title.push(' ');
            }
            title.push_str(piece);
        }
        // Enough for any title, so that a text of many megabytes costs no more than a short one.
        if title.chars().take(MAX_TITLE + 1).count() > MAX_TITLE {
            break;
        }
    }
    let end = title.char_indices().nth(MAX_TITLE).map_or(title.len(), |(end, _)| end);
    let title = title[..end].trim_end();
    (!title.is_empty()).then(|| title.to_owned())
}

/// The end of a fork's title.
const FORK_SUFFIX: &str = " (fork)";

/// The title from a session's first prompt: its first line that is not empty.
pub fn title_of_prompt(text: &str) -> Option<String> {
    text.split(is_line_break).find_map(normalized_title)
}

/// True for a character that ends a line.
fn is_line_break(one: char) -> bool {
    matches!(one, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// True for a character that is replaced by a blank.
fn is_break(one: char) -> bool {
    one == '\t' || is_line_break(one)
}

/// True for a character that controls a terminal or the direction of the text around it.
///
/// Line breaks and tabs are among them. Text of agents and other machines is shown without such characters: with them,
/// a tool's name could look like a question of Grove.
pub fn is_unprintable(one: char) -> bool {
    Check::ControlCharacters.is_enforced() && one.is_control()
        || Check::TextDirection.is_enforced()
            && matches!(one, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A text without unprintable characters, except for line breaks and tabs.
pub fn printable(text: &str) -> String {
    text.chars().filter(|one| matches!(one, '\n' | '\t') || !is_unprintable(*one)).collect()
}

/// The source of a session's title. A later one in this list may replace an earlier one, not the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TitleSource {
    /// The session has no title.
    #[default]
    None,
    /// The first line of the first prompt.
    Prompt,
    /// The agent.
    Agent,
    /// A person, or a program on behalf of one.
    Person,
}

/// A normalised title of a session with its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionTitle {
    text: String,
    source: TitleSource,
}

impl SessionTitle {
    /// Creates a title. An empty text, and the name of sessions without a title, mean none.
    pub fn new(text: &str, source: TitleSource) -> Self {
        match normalized_title(text).filter(|text| text != Session::UNTITLED && source != TitleSource::None) {
            Some(text) => Self { text, source },
            None => Self { text: Session::UNTITLED.to_owned(), source: TitleSource::None },
        }
    }

    /// Creates a title that a person gave.
    pub fn given(text: &str) -> Self {
        Self::new(text, TitleSource::Person)
    }

    /// The default title of a fork. A fork of a session without a title has none either.
    pub fn of_fork(&self) -> Self {
        if self.is_none() {
            return self.clone();
        }
        let room = MAX_TITLE - FORK_SUFFIX.len();
        let end = self.text.char_indices().nth(room).map_or(self.text.len(), |(end, _)| end);
        Self { text: format!("{}{FORK_SUFFIX}", self.text[..end].trim_end()), source: self.source }
    }

    /// The title as it is shown; [`Session::UNTITLED`] if there is none.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn source(&self) -> TitleSource {
        self.source
    }

    pub fn is_none(&self) -> bool {
        self.source == TitleSource::None
    }
}

impl From<&str> for SessionTitle {
    fn from(text: &str) -> Self {
        Self::given(text)
    }
}

impl From<String> for SessionTitle {
    fn from(text: String) -> Self {
        Self::given(&text)
    }
}

impl<'de> Deserialize<'de> for SessionTitle {
    /// Reads titles, which older versions stored as bare texts. Those have no known source, so they count as given by a
    /// person.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum StoredTitle {
            Text(String),
            Whole { text: String, source: TitleSource },
        }
        Ok(match StoredTitle::deserialize(deserializer)? {
            StoredTitle::Text(text) => Self::given(&text),
            StoredTitle::Whole { text, source } => Self::new(&text, source),
        })
    }
}

/// Reads a chat's title, which may have been stored before titles were normalised.
pub fn stored_chat_title<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(normalized_title(&text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_trimmed_line_without_control_characters() {
        let cases = [
            ("My session ", Some("My session")),
            ("\u{a0} x\t", Some("x")),
            ("Fix the bug\n", Some("Fix the bug")),
            ("a\r\n  b\tc", Some("a b c")),
            ("a\u{2028}b\u{85}c", Some("a b c")),
            ("\u{1b}[31mred\u{7}", Some("[31mred")),
            ("\u{202e}abc\u{2069}", Some("abc")),
            ("two  blanks", Some("two  blanks")),
            ("", None),
            (" \n\t\u{0}", None),
        ];
        for (text, expected) in cases {
            assert_eq!(normalized_title(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_title_has_at_most_so_many_characters_and_never_ends_in_a_blank() {
        let long = format!("{} {}", "ä".repeat(MAX_TITLE - 1), "b".repeat(4 << 20));
        assert_eq!(normalized_title(&long).unwrap(), "ä".repeat(MAX_TITLE - 1));
        let title = normalized_title(&"x ".repeat(MAX_TITLE)).unwrap();
        assert!(title.chars().count() <= MAX_TITLE);
        assert_eq!(normalized_title(&title).as_deref(), Some(title.as_str()), "normalising twice changes nothing");
    }

    #[test]
    fn the_first_line_of_a_prompt_that_says_something_is_its_title() {
        assert_eq!(title_of_prompt("\n \n  Fix the bug \nin a.rs").as_deref(), Some("Fix the bug"));
        assert_eq!(title_of_prompt(" \n"), None);
    }

    #[test]
    fn a_fork_shows_that_it_is_one_however_long_its_title_is() {
        let long = SessionTitle::new(&"x".repeat(MAX_TITLE), TitleSource::Agent).of_fork();
        assert!(long.text().ends_with("x (fork)") && long.text().len() == MAX_TITLE, "{long:?}");
        assert_eq!(long.source(), TitleSource::Agent);
        assert!(SessionTitle::given("").of_fork().is_none());
    }

    #[test]
    fn titles_that_were_stored_as_they_came_are_normalised_when_they_are_read() {
        let title = |json: &str| serde_json::from_str::<SessionTitle>(json).unwrap();
        assert_eq!(title(r#""My session ""#), SessionTitle::given("My session"));
        assert!(title(r#"" ""#).is_none());
        let agents = SessionTitle::new("x", TitleSource::Agent);
        assert_eq!(title(&serde_json::to_string(&agents).unwrap()), agents);
    }
}
