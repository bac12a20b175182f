//! The fields of an entry that this crate reads, found in one pass over its line.

use std::borrow::Cow;
use std::ops::ControlFlow;

use crate::scan::{Level, ScanError, Scanner, Shape, text_of};

macro_rules! fields {
    ($(#[$doc:meta])* $name:ident { $($field:ident $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct $name<'a> {
            $(pub(crate) $field: Option<&'a [u8]>,)*
        }

        impl<'a> $name<'a> {
            fn take(&mut self, name: &[u8], value: &'a [u8]) {
                match name {
                    $($text => self.$field = Some(value),)*
                    _ => {}
                }
            }
        }
    };
}

fields! {
    /// A line's own fields as raw values. The last one of a name counts.
    LineFields {
        kind b"type",
        id b"id",
        parent b"parentId",
        timestamp b"timestamp",
        version b"version",
        message b"message",
        custom_type b"customType",
        data b"data",
        content b"content",
        display b"display",
        details b"details",
        attribution b"attribution",
        summary b"summary",
        short_summary b"shortSummary",
        from_id b"fromId",
        first_kept b"firstKeptEntryId",
        tokens_before b"tokensBefore",
        system_message b"systemMessage",
        target b"targetId",
        replacement b"replacement",
        label b"label",
        name b"name",
        title b"title",
        thinking_level b"thinkingLevel",
        provider b"provider",
        model_id b"modelId",
        model b"model",
        role b"role",
        mode b"mode",
        injected_rules b"injectedRules",
        grove b"grove",
    }
}

fields! {
    /// The fields of an entry's message.
    MessageFields {
        role b"role",
        content b"content",
        stop_reason b"stopReason",
        error_message b"errorMessage",
        tool_call_id b"toolCallId",
        tool_name b"toolName",
        is_error b"isError",
        provider b"provider",
        model b"model",
        timestamp b"timestamp",
        custom_type b"customType",
        command b"command",
        code b"code",
        output b"output",
        exclude b"excludeFromContext",
        retry_recovery b"retryRecovery",
        files b"files",
    }
}

/// The parsed fields of an entry's line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EntryFields<'a> {
    pub(crate) line: LineFields<'a>,
    /// Empty if the entry has no message that is an object.
    pub(crate) message: MessageFields<'a>,
}

impl<'a> EntryFields<'a> {
    /// Parses a line that was scanned before. A value that is not an object has no fields.
    pub(crate) fn of(line: &'a [u8]) -> Self {
        let mut parts = Self::default();
        let take = |level, name: &Cow<'a, [u8]>, value| parts.take(level, name, value);
        match Scanner::default().scan_trusted(line, Some("message"), take) {
            Ok(_) => parts,
            Err(_) => Self::default(),
        }
    }

    /// Parses a message on its own.
    pub(crate) fn of_message(message: &'a [u8]) -> MessageFields<'a> {
        let mut fields = MessageFields::default();
        // A value that is not an object has no fields.
        Scanner::default().scan_trusted(message, None, |_, name, value| fields.take(name, value)).ok();
        fields
    }

    /// Parses a line that was not scanned before, into empty fields.
    pub(crate) fn scan(&mut self, scanner: &mut Scanner, line: &'a [u8]) -> Result<Shape, ScanError> {
        scanner.scan_with(line, "message", |level, name, value| self.take(level, name, value))
    }

    /// Like [`EntryFields::scan`], and refuses a line that is not UTF-8.
    pub(crate) fn scan_utf8(&mut self, scanner: &mut Scanner, line: &'a [u8]) -> Result<Shape, ScanError> {
        scanner.scan_utf8_with(line, "message", |level, name, value| self.take(level, name, value))
    }

    #[inline]
    fn take(&mut self, level: Level, name: &[u8], value: &'a [u8]) {
        match level {
            Level::Begin => self.message = MessageFields::default(),
            Level::Inside => self.message.take(name, value),
            Level::Line => {
                self.line.take(name, value);
                // The last message counts, even if it has no fields.
                if name == b"message" && !value.starts_with(b"{") {
                    self.message = MessageFields::default();
                }
            }
        }
    }
}

fields! {
    /// The fields of a block of a message's content.
    BlockFields {
        kind b"type",
        text b"text",
        thinking b"thinking",
        id b"id",
        name b"name",
        arguments b"arguments",
        mime_type b"mimeType",
        data b"data",
        path b"path",
        content b"content",
    }
}

/// Passes each block of a message's content with its fields to `see`, until that breaks.
pub(crate) fn each_block<'a>(
    content: Option<&'a [u8]>,
    mut see: impl FnMut(&'a [u8], BlockFields<'a>) -> ControlFlow<()>,
) {
    let mut inner = Scanner::default();
    Scanner::default().items(content.unwrap_or_default(), |block| {
        let mut fields = BlockFields::default();
        // A value that is not an object has no fields.
        inner.scan_trusted(block, None, |_, name, value| fields.take(name, value)).ok();
        see(block, fields)
    });
}

/// True if a value is exactly this text.
pub(crate) fn is(value: Option<&[u8]>, text: &str) -> bool {
    value.and_then(text_of).is_some_and(|value| value.as_ref() == text.as_bytes())
}

/// True if a message's content has a text that is not blank. Stops at the first.
pub(crate) fn has_visible_content(content: Option<&[u8]>) -> bool {
    let says = |text: &[u8]| {
        let mut rest = text.strip_prefix(b"\"").unwrap_or_default();
        while let [b' ', after @ ..] | [b'\\', b'n' | b't' | b'r', after @ ..] = rest {
            rest = after;
        }
        rest != b"\"" && !rest.is_empty()
    };
    match content {
        Some(text @ [b'"', ..]) => says(text),
        Some(list @ [b'[', ..]) => {
            // Most messages of any program begin like this. Every loaded line passes here.
            let starts = [br#"[{"type":"text","text":""#.as_slice(), br#"[{"text":""#];
            let first = starts.iter().find_map(|start| list.strip_prefix(*start)).and_then(<[u8]>::first);
            if first.is_some_and(|first| !matches!(first, b' ' | b'\\' | b'"')) {
                return true;
            }
            let mut found = false;
            each_block(Some(list), |_, block| {
                found = is(block.kind, "text") && block.text.is_some_and(says);
                if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            found
        }
        Some(_) | None => false,
    }
}
