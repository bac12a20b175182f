//! The secrets in the messages of agents.

use grove_frames::{RedactionRules, SecretMark, is_secret_name};

/// A member with this name, or whose last word it is, holds a secret as well; `monkey` does not.
const WORD: &str = "key";

pub(super) static RULES: RedactionRules = RedactionRules {
    is_secret_name: is_secret,
    environment: Some("env"),
    marks: &[SecretMark { text: "bearer ", min_bytes: 16, is_header: true }],
    shows_missing: true,
};

fn is_secret(name: &str) -> bool {
    if is_secret_name(name) {
        return true;
    }
    let letters: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let Some(before) = letters.strip_suffix(WORD) else { return false };
    // The word stands alone: at the beginning, after a character that is not a letter, or with a capital.
    let start = name.len().saturating_sub(WORD.len());
    let begins = name.get(start..).is_some_and(|word| word.starts_with('K') && !word.ends_with('Y'));
    let apart = name.get(..start).and_then(|rest| rest.chars().last()).is_some_and(|c| !c.is_alphanumeric());
    before.is_empty() || begins || apart
}

#[cfg(test)]
mod tests {
    use grove_frames::Redaction;
    use serde_json::{Value, json};

    use super::*;

    fn redact(message: &Value, values: &[String]) -> Value {
        let mut out = String::new();
        assert!(Redaction::new(&RULES).without_values(values).redact(&message.to_string(), &mut out));
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}"))
    }

    #[test]
    fn secrets_are_taken_out_at_any_depth() {
        let secrets = ["hunter2-x".to_owned(), "hunter2".to_owned(), "1".to_owned()];
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
            assert_eq!(redact(&given, &secrets), expected);
        }
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        let message = json!({"inputTokens": 3, "monkey": "s", "MONKEY": "s", "keys": [1], "token_count": 7, "é": "ü"});
        assert_eq!(redact(&message, &[]), message);
    }
}
