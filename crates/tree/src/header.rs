//! The header: the first readable line of a log.

use crate::object::{JsonObject, quoted};
use crate::scan::{lossy, text_of};

/// The version that Grove writes.
pub const VERSION: u32 = 3;

/// The header of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The raw line.
    pub(crate) line: Vec<u8>,
    /// The line before it, in which oh-my-pi keeps the title.
    pub(crate) slot: Option<Vec<u8>>,
}

impl Header {
    /// The raw line of the file.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    pub fn id(&self) -> Option<String> {
        self.text("id")
    }

    pub fn timestamp(&self) -> Option<String> {
        self.text("timestamp")
    }

    pub fn cwd(&self) -> Option<String> {
        self.text("cwd")
    }

    /// The parent session of a fork, named by the program that made it: a path or an id.
    pub fn parent_session(&self) -> Option<String> {
        self.text("parentSession")
    }

    /// The title that oh-my-pi keeps in the line before the header, or in the header itself.
    pub fn title(&self) -> Option<String> {
        let slot = self.slot.as_deref().and_then(JsonObject::parse);
        let title = slot.and_then(|slot| slot.get("title").and_then(lossy));
        title.or_else(|| self.text("title")).filter(|title| !title.is_empty())
    }

    fn text(&self, name: &str) -> Option<String> {
        JsonObject::parse(&self.line)?.get(name).and_then(lossy)
    }

    /// The header as one JSON object, with the title of the line before it.
    pub fn to_json(&self) -> Vec<u8> {
        let Some(mut header) = JsonObject::parse(&self.line) else { return self.line.clone() };
        if let Some(slot) = self.slot.as_deref().and_then(JsonObject::parse)
            && let Some(title) = slot.text("title").filter(|title| !title.is_empty())
        {
            header.set("title", quoted(&title));
            if let Some(source) = slot.text("source") {
                header.set("titleSource", quoted(&source));
            }
        }
        header.render()
    }
}

/// The version that a header names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FormatVersion {
    One,
    Two,
    Three,
    Unknown(String),
}

impl FormatVersion {
    /// Reads the field like the format's own programs: without one it is 1, and below 3 the log is migrated.
    pub(crate) fn of(value: Option<&[u8]>) -> Self {
        let text = match value {
            None | Some(b"null") => return FormatVersion::One,
            Some(value) => String::from_utf8_lossy(value).into_owned(),
        };
        match text.parse::<f64>() {
            Ok(number) if number < 2.0 => FormatVersion::One,
            Ok(number) if number < 3.0 => FormatVersion::Two,
            Ok(3.0) => FormatVersion::Three,
            _ => FormatVersion::Unknown(text),
        }
    }

    pub(crate) fn number(&self) -> Option<u32> {
        match self {
            FormatVersion::One => Some(1),
            FormatVersion::Two => Some(2),
            FormatVersion::Three => Some(3),
            FormatVersion::Unknown(_) => None,
        }
    }
}

/// True if an incomplete line could be the start of a header, or of the title line before it.
pub(crate) fn could_become_header(line: &[u8]) -> bool {
    let begins = |start: &[u8]| line.starts_with(start) || start.starts_with(line);
    begins(br#"{"type":"session","#) || begins(br#"{"type":"title","#)
}

/// True if a line's `type` is this.
pub(crate) fn is_type(value: Option<&[u8]>, name: &str) -> bool {
    value.and_then(text_of).is_some_and(|text| text.as_ref() == name.as_bytes())
}
