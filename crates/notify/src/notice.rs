//! The reason to tell a person something, and how much of it may leave the host.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use grove_core::{ChatId, SessionId};
use serde::{Deserialize, Serialize};

/// The longest title that leaves the host, in characters; the rest is left out.
pub const MAX_TITLE_CHARS: usize = 120;
/// The longest text that leaves the host, in characters; the rest is left out.
pub const MAX_TEXT_CHARS: usize = 160;

/// The reason to tell a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NoticeKind {
    /// A permission request or a question waits.
    Waiting,
    /// A turn has finished.
    Finished,
    /// A turn has failed, or the end of the host cut it off.
    Failed,
}

impl NoticeKind {
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Finished, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            NoticeKind::Waiting => "waiting",
            NoticeKind::Finished => "finished",
            NoticeKind::Failed => "failed",
        }
    }
}

impl FromStr for NoticeKind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or(UnknownKind)
    }
}

/// The name is none of `waiting`, `finished` and `failed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the events are `waiting`, `finished` and `failed`")]
pub struct UnknownKind;

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindSet([bool; NoticeKind::ALL.len()]);

impl KindSet {
    pub const ALL: Self = Self([true; NoticeKind::ALL.len()]);
    pub const NONE: Self = Self([false; NoticeKind::ALL.len()]);

    /// Reads names. The same name may occur twice.
    pub fn read<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownKind> {
        let mut set = Self::NONE;
        for name in names {
            let kind: NoticeKind = name.parse()?;
            set = set.with(kind);
        }
        Ok(set)
    }

    #[must_use]
    pub const fn with(self, kind: NoticeKind) -> Self {
        let Self(mut kinds) = self;
        kinds[kind as usize] = true;
        Self(kinds)
    }

    pub const fn contains(self, kind: NoticeKind) -> bool {
        self.0[kind as usize]
    }

    pub fn names(self) -> Vec<String> {
        NoticeKind::ALL.into_iter().filter(|kind| self.contains(*kind)).map(|kind| kind.as_str().to_owned()).collect()
    }
}

/// How much of a session a message may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detail {
    /// That something happened in a session, and nothing of it.
    None,
    /// The title of the session.
    #[default]
    Title,
    /// The title, and the name of the tool or the text of the question that waits.
    Text,
}

impl Detail {
    pub const fn as_str(self) -> &'static str {
        match self {
            Detail::None => "none",
            Detail::Title => "title",
            Detail::Text => "text",
        }
    }
}

/// Something to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub kind: NoticeKind,
    pub session: SessionId,
    /// The session's URI, as pages know it.
    pub uri: String,
    pub chat: ChatId,
    pub title: String,
    /// The name of a tool, or the text of a question. Never a tool's input or output.
    pub text: Option<String>,
    /// Milliseconds since 1970.
    pub at: u64,
}

impl Notice {
    /// The notice as it may leave the host.
    #[must_use]
    pub fn limited_to(&self, detail: Detail) -> Self {
        let enforced = grove_checks::Check::NoticeDetail.is_enforced();
        let title =
            if detail == Detail::None && enforced { String::new() } else { shown(&self.title, MAX_TITLE_CHARS) };
        let text = self.text.as_deref().filter(|_| detail == Detail::Text || !enforced);
        Self { title, text: text.map(|text| shown(text, MAX_TEXT_CHARS)), ..self.clone() }
    }

    /// The name under which a newer notice replaces this one.
    pub fn tag(&self) -> String {
        tag(&self.session, self.kind)
    }
}

/// The name of the one notification of a session and a kind.
pub(crate) fn tag(session: &SessionId, kind: NoticeKind) -> String {
    format!("{session}/{}", kind.as_str())
}

/// A text on one line, without control characters, with at most so many characters.
fn shown(text: &str, most: usize) -> String {
    let line: Vec<&str> = text.split(|letter: char| letter.is_whitespace() || letter.is_control()).collect();
    let line = line.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some(_) => line.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// The party that is told: the webhook or a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetId {
    Webhook,
    Device(String),
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetId::Webhook => f.write_str("the webhook"),
            TargetId::Device(id) => write!(f, "device {id}"),
        }
    }
}

/// The parties that were told, or are not told yet.
pub(crate) type TargetSet = BTreeSet<TargetId>;

#[cfg(test)]
mod tests {
    use super::*;

    fn notice() -> Notice {
        Notice {
            kind: NoticeKind::Waiting,
            session: "s".into(),
            uri: "ahp-session:/s".to_owned(),
            chat: "main".into(),
            title: "Fix\n the\u{7} tests".to_owned(),
            text: Some("x".repeat(500)),
            at: 0,
        }
    }

    #[test]
    fn a_message_contains_no_more_than_the_detail_allows() {
        let none = notice().limited_to(Detail::None);
        assert_eq!((none.title.as_str(), none.text), ("", None));
        let title = notice().limited_to(Detail::Title);
        assert_eq!((title.title.as_str(), title.text), ("Fix the tests", None));
        let text = notice().limited_to(Detail::Text).text.unwrap();
        assert_eq!((text.chars().count(), text.ends_with('…')), (MAX_TEXT_CHARS, true));
    }

    #[test]
    fn kinds_are_read_by_their_names_alone() {
        let set = KindSet::read(["waiting", "failed", "waiting"]).unwrap();
        assert_eq!(set.names(), ["waiting", "failed"]);
        assert_eq!(KindSet::read(["Waiting"]), Err(UnknownKind));
        assert_eq!(KindSet::read([]).unwrap(), KindSet::NONE);
    }
}
