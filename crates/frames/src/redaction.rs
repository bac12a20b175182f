//! Removing secrets from a message, which otherwise stays as it is: digits, escapes and the order of its members.

use std::borrow::Cow;
use std::fmt;

use grove_checks::Check;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The replacement of a secret.
const REDACTED: &str = "[redacted]";
/// Known values shorter than this are not secrets, and occur everywhere.
const MIN_VALUE_BYTES: usize = 6;
/// Deeper values are left out: no message of our protocols has them, and each level costs stack and time.
pub const MAX_DEPTH: usize = 128;
/// The member whose text names the variable or header that another member holds the value of.
const NAME: &str = "name";
const VALUE: &str = "value";

/// Says what a secret is in the messages of a protocol.
#[derive(Debug)]
pub struct RedactionRules {
    /// Says whether a member of this name holds a secret.
    pub is_secret_name: fn(&str) -> bool,
    /// The member that holds a program's environment, if there is one: all of its values are secrets.
    pub environment: Option<&'static str>,
    /// The marks inside a text that a secret follows, in lower case.
    pub marks: &'static [SecretMark],
    /// Leaves `null` where a secret could be: that a secret is missing is worth knowing.
    pub shows_missing: bool,
}

/// Endings of names whose members hold a secret, as `apiKey`, `access_token` and `X-Auth-Token` do.
const SECRET_ENDINGS: [&str; 8] =
    ["token", "apikey", "secret", "password", "passphrase", "authorization", "credential", "credentials"];
/// A name with such an ending that holds no secret: the number of an operation whose progress is reported.
const PROGRESS: &str = "progresstoken";

/// Says whether a member of this name holds a secret in any protocol.
pub fn is_secret_name(name: &str) -> bool {
    let letters: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    letters != PROGRESS && SECRET_ENDINGS.iter().any(|ending| letters.ends_with(ending))
}

/// A mark inside a text that a secret follows.
#[derive(Debug)]
pub struct SecretMark {
    pub text: &'static str,
    /// Shorter words after the mark belong to a sentence.
    pub min_bytes: usize,
    /// A text that begins with the mark is a header, and nothing in it is a sentence.
    pub is_header: bool,
}

/// The redaction of messages, with the values that must not be written wherever they occur.
#[derive(Debug)]
pub struct Redaction {
    rules: &'static RedactionRules,
    values: Vec<String>,
}

impl Redaction {
    pub const fn new(rules: &'static RedactionRules) -> Self {
        Self { rules, values: Vec::new() }
    }

    /// The same, without these values.
    pub fn without_values<'a>(mut self, values: impl IntoIterator<Item = &'a String>) -> Self {
        self.values.extend(values.into_iter().filter(|value| value.len() >= MIN_VALUE_BYTES).cloned());
        // Longest first: one secret may be the beginning of another.
        self.values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        self
    }

    /// Appends JSON in one line without its secrets. Text that is not JSON cannot be searched for them: it appends nothing, and
    /// returns `false`.
    pub fn redact(&self, json: &str, out: &mut String) -> bool {
        let Ok(value) = serde_json::from_str::<&RawValue>(json) else { return false };
        self.value(value.get(), 0, out);
        true
    }

    fn value(&self, json: &str, depth: usize, out: &mut String) {
        match json.as_bytes().first() {
            Some(b'{' | b'[') if depth == MAX_DEPTH => hide(out),
            Some(b'{') => self.object(json, depth + 1, out),
            Some(b'[') => list(json, out, |item, out| self.value(item, depth + 1, out)),
            Some(b'"') => out.push_str(&self.string(json)),
            _ => out.push_str(json),
        }
    }

    fn object(&self, json: &str, depth: usize, out: &mut String) {
        let Ok(Members(members)) = serde_json::from_str(json) else { return hide(out) };
        let text_of =
            |wanted: &str| members.iter().find(|(name, _)| unescaped(name) == wanted).map(|(_, value)| *value);
        // A header or a variable: its name decides whether its value is a secret.
        let names_secret = text_of(NAME).is_some_and(|name| (self.rules.is_secret_name)(&unescaped(name)));
        let member = |name: &str, value: &str, out: &mut String| {
            let name = unescaped(name);
            if Check::RedactedNames.is_enforced()
                && ((self.rules.is_secret_name)(&name) || (names_secret && name == VALUE))
            {
                self.secret(value, out);
            } else if Check::RedactedEnvironment.is_enforced() && self.rules.environment == Some(&*name) {
                self.environment(value, depth, out);
            } else {
                self.value(value, depth, out);
            }
        };
        object(&members, out, member);
    }

    fn secret(&self, json: &str, out: &mut String) {
        if json == "null" && self.rules.shows_missing { out.push_str(json) } else { hide(out) }
    }

    /// An environment, as a list of names and values or as an object.
    fn environment(&self, json: &str, depth: usize, out: &mut String) {
        match json.as_bytes().first() {
            Some(b'[') => list(json, out, |variable, out| match serde_json::from_str(variable) {
                Ok(Members(members)) => object(&members, out, |name, value, out| match unescaped(name) == VALUE {
                    true => hide(out),
                    false => self.value(value, depth, out),
                }),
                Err(_) => self.value(variable, depth, out),
            }),
            Some(b'{') => match serde_json::from_str(json) {
                Ok(Members(members)) => object(&members, out, |_, value, out| self.secret(value, out)),
                Err(_) => hide(out),
            },
            _ => self.value(json, depth, out),
        }
    }

    /// A JSON string without the known values, and without the secrets after marks.
    fn string<'a>(&self, json: &'a str) -> Cow<'a, str> {
        let mut text = unescaped(json);
        let mut is_changed = false;
        for value in &self.values {
            if Check::RedactedValues.is_enforced() && text.contains(value.as_str()) {
                text = text.replace(value.as_str(), REDACTED).into();
                is_changed = true;
            }
        }
        let marked = self.marked(&text);
        if marked.is_empty() && !is_changed {
            return json.into();
        }
        let (mut output, mut from) = (String::new(), 0);
        for (start, end) in marked {
            if start >= from {
                output.push_str(&text[from..start]);
                output.push_str(REDACTED);
            }
            from = from.max(end);
        }
        output.push_str(&text[from..]);
        serde_json::Value::String(output).to_string().into()
    }

    /// The positions of secrets after marks, in order.
    fn marked(&self, text: &str) -> Vec<(usize, usize)> {
        // Only ASCII changes, so positions stay the same.
        let lower = text.to_ascii_lowercase();
        let mut marked = Vec::new();
        for mark in self.rules.marks {
            for (place, _) in lower.match_indices(mark.text) {
                let start = place + mark.text.len();
                let length = text[start..].bytes().take_while(|byte| is_token_byte(*byte)).count();
                let is_secret = length >= mark.min_bytes || (place == 0 && mark.is_header && length > 0);
                if Check::RedactedMarks.is_enforced() && is_secret {
                    marked.push((start, start + length));
                }
            }
        }
        marked.sort_unstable();
        marked
    }
}

/// The members of an object, in order, as they are written.
struct Members<'a>(Vec<(&'a str, &'a str)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    members.push((name.get(), value.get()));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

fn object(members: &[(&str, &str)], out: &mut String, mut value_of: impl FnMut(&str, &str, &mut String)) {
    out.push('{');
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(name);
        out.push(':');
        value_of(name, value, out);
    }
    out.push('}');
}

fn list(json: &str, out: &mut String, mut item_of: impl FnMut(&str, &mut String)) {
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) else { return hide(out) };
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        item_of(item.get(), out);
    }
    out.push(']');
}

fn hide(out: &mut String) {
    out.push('"');
    out.push_str(REDACTED);
    out.push('"');
}

/// A JSON string's text. Text that cannot be unescaped (half a surrogate pair) stays escaped.
fn unescaped(json: &str) -> Cow<'_, str> {
    let inner = json.get(1..json.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains('\\') {
        return inner.into();
    }
    serde_json::from_str::<String>(json).map_or(inner.into(), Cow::Owned)
}

/// The bytes that tokens consist of, in headers and addresses.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    static RULES: RedactionRules = RedactionRules {
        is_secret_name: |name| name == "secret",
        environment: Some("env"),
        marks: &[SecretMark { text: "bearer ", min_bytes: 8, is_header: true }],
        shows_missing: true,
    };

    fn redacted(json: &str) -> Option<String> {
        let mut out = String::new();
        Redaction::new(&RULES).redact(json, &mut out).then_some(out)
    }

    #[test]
    fn a_message_is_one_line_and_else_stays_as_it_is() {
        let json = " {\n \"n\" : 1.50e3 ,\r\"z\":[ \"\\u00e9\\ud800\" , {} ],\n\"a\":null, \"env\":[{\"name\":\"A\",\"more\":[\n1 ]}]}";
        let line = r#"{"n":1.50e3,"z":["\u00e9\ud800",{}],"a":null,"env":[{"name":"A","more":[1]}]}"#;
        assert_eq!(redacted(json).as_deref(), Some(line));
    }

    #[test]
    fn the_name_beside_a_value_decides_in_either_order() {
        for json in [r#"{"name":"secret","value":"s"}"#, r#"{"value":"s","name":"secr\u0065t"}"#] {
            assert_eq!(redacted(json), Some(json.replace(r#""s""#, r#""[redacted]""#)));
        }
    }

    #[test]
    fn text_that_is_not_json_is_refused_and_deep_text_is_cut() {
        for text in ["", "[", "{\"secret\":\"s\"", "1 2"] {
            assert_eq!(redacted(text), None);
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let cut = "[".repeat(MAX_DEPTH) + "\"[redacted]\"" + &"]".repeat(MAX_DEPTH);
        assert_eq!(redacted(&deep), Some(cut));
    }
}
