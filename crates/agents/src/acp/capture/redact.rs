//! Removing secrets from a message.

use serde_json::Value;

/// The text that replaces a secret.
const REDACTED: &str = "[redacted]";
/// Endings of names whose members hold a secret, as `apiKey`, `access_token` and `X-Auth-Token` do.
const ENDINGS: [&str; 8] =
    ["token", "apikey", "secret", "password", "passphrase", "authorization", "credential", "credentials"];
/// A member with this name, or whose last word it is, holds a secret as well; `monkey` does not.
const WORD: &str = "key";
/// The member that holds a program's environment: all of its values are secrets.
const ENVIRONMENT: &str = "env";
/// The marks inside a text that a secret follows.
const BEARER: &str = "bearer ";
/// Shorter values are not secrets, and occur everywhere.
const LEAST_BYTES: usize = 6;

/// Values that are never written, wherever they occur.
#[derive(Debug)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn new<'a>(values: impl IntoIterator<Item = &'a String>) -> Self {
        let mut values: Vec<String> = values.into_iter().filter(|value| value.len() >= LEAST_BYTES).cloned().collect();
        // Longest first: one secret may be the beginning of another.
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }
}

/// A message without its secrets.
pub(super) fn redact(message: Value, secrets: &Secrets) -> Value {
    match message {
        Value::String(text) => Value::String(without(text, secrets)),
        Value::Array(items) => items.into_iter().map(|item| redact(item, secrets)).collect(),
        Value::Object(mut members) => {
            // A header or a variable: its name decides whether its value is a secret.
            let named = members.get("name").and_then(Value::as_str).is_some_and(is_secret);
            for (name, value) in &mut members {
                let taken = value.take();
                *value = if is_secret(name) || (named && name == "value") {
                    hidden(taken)
                } else if name == ENVIRONMENT {
                    environment(taken, secrets)
                } else {
                    redact(taken, secrets)
                };
            }
            Value::Object(members)
        }
        other => other,
    }
}

/// Replaces a secret. `null` stays: that a secret is missing is worth knowing.
fn hidden(value: Value) -> Value {
    if value.is_null() { value } else { REDACTED.into() }
}

/// An environment, as a list of names and values or as an object.
fn environment(value: Value, secrets: &Secrets) -> Value {
    match value {
        Value::Array(variables) => variables
            .into_iter()
            .map(|variable| match variable {
                Value::Object(mut members) => {
                    if let Some(value) = members.get_mut("value") {
                        *value = REDACTED.into();
                    }
                    Value::Object(members)
                }
                other => redact(other, secrets),
            })
            .collect(),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, hidden(value))).collect())
        }
        other => redact(other, secrets),
    }
}

fn is_secret(name: &str) -> bool {
    let letters: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    if ENDINGS.iter().any(|ending| letters.ends_with(ending)) {
        return true;
    }
    let Some(before) = letters.strip_suffix(WORD) else { return false };
    // The word stands alone: at the beginning, after a character that is not a letter, or with a capital.
    let start = name.len().saturating_sub(WORD.len());
    let begins = name.get(start..).is_some_and(|word| word.starts_with('K') && !word.ends_with('Y'));
    let apart = name.get(..start).and_then(|rest| rest.chars().last()).is_some_and(|c| !c.is_alphanumeric());
    before.is_empty() || begins || apart
}

/// A text without the known secrets, and without the words that follow a secret's mark.
fn without(mut text: String, secrets: &Secrets) -> String {
    for secret in &secrets.0 {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), REDACTED);
        }
    }
    // Only ASCII changes, so offsets stay the same.
    let lower = text.to_ascii_lowercase();
    let Some(place) = lower.find(BEARER) else { return text };
    let start = place + BEARER.len();
    let length = text[start..].bytes().take_while(|byte| !byte.is_ascii_whitespace() && *byte != b'"').count();
    // Short words belong to a sentence, unless the text is a header.
    if length < 16 && place > 0 {
        return text;
    }
    format!("{}{REDACTED}{}", &text[..start], &text[start + length..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_taken_out_at_any_depth() {
        let secrets = Secrets::new(&["hunter2-x".to_owned(), "hunter2".to_owned(), "1".to_owned()]);
        let cases = [
            (json!({"token": "s", "n": 1}), json!({"token": "[redacted]", "n": 1})),
            (
                json!([{"apiKey": {"a": 1}}, {"API_KEY": 3}]),
                json!([{"apiKey": "[redacted]"}, {"API_KEY": "[redacted]"}]),
            ),
            (json!({"key": "s", "x-auth-token": "s"}), json!({"key": "[redacted]", "x-auth-token": "[redacted]"})),
            (json!({"password": null}), json!({"password": null})),
            (
                json!({"env": [{"name": "A", "value": "b"}], "args": ["1"]}),
                json!({"env": [{"name": "A", "value": "[redacted]"}], "args": ["1"]}),
            ),
            (json!({"env": {"A": "b"}}), json!({"env": {"A": "[redacted]"}})),
            (
                json!({"headers": [{"name": "Authorization", "value": "s"}, {"name": "Accept", "value": "s"}]}),
                json!({"headers": [{"name": "Authorization", "value": "[redacted]"}, {"name": "Accept", "value": "s"}]}),
            ),
            (json!(["say hunter2-x and hunter2"]), json!(["say [redacted] and [redacted]"])),
            (
                json!(["Bearer s", "H: bearer 0123456789abcdef end", "the bearer of news"]),
                json!(["Bearer [redacted]", "H: bearer [redacted] end", "the bearer of news"]),
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(redact(given, &secrets), expected);
        }
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        let message = json!({"inputTokens": 3, "monkey": "s", "MONKEY": "s", "keys": [1], "token_count": 7, "é": "ü"});
        assert_eq!(redact(message.clone(), &Secrets::new([])), message);
    }
}
