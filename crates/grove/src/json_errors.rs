//! Errors of commands that print JSON: one object on stdout, of one shape for every command.
//!
//! `{"error": {"code": …, "message": …, "next": …}}`; the message for people goes to stderr as well.

use std::ffi::OsString;

use serde_json::{Value, json};

use crate::commands::Failure;

/// Returns whether the arguments request JSON. Arguments after `--` are text.
pub(crate) fn is_asked(args: &[OsString]) -> bool {
    args.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == "--json")
}

/// A failure as a JSON object.
pub(crate) fn of(failure: &Failure) -> Value {
    json!({ "error": body(failure) })
}

/// The value of `error`. `next` is the suggested command, if the message has one.
pub(crate) fn body(failure: &Failure) -> Value {
    error(failure.code(), &failure.to_string())
}

/// The same for invalid arguments.
pub(crate) fn of_usage(error_of_clap: &clap::Error) -> Value {
    let words = error_of_clap.to_string();
    let message = words.lines().next().unwrap_or_default();
    json!({ "error": error("usage", message.strip_prefix("error: ").unwrap_or(message)) })
}

fn error(code: &str, message: &str) -> Value {
    let mut error = json!({ "code": code, "message": message });
    let next = message.rsplit_once(": ").map(|(_, next)| next).filter(|next| next.contains('`'));
    if let Some(next) = next {
        error["next"] = next.into();
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_a_code_the_words_and_what_can_be_done() {
        let missing = Failure::NotFound("no host is called \"x\": `grove hosts` lists them".to_owned());
        let message = "no host is called \"x\": `grove hosts` lists them";
        let expected = json!({"code": "notFound", "message": message, "next": "`grove hosts` lists them"});
        assert_eq!(of(&missing), json!({ "error": expected }));
        let other = Failure::from(anyhow::anyhow!("no space left: on the disk"));
        assert_eq!(body(&other), json!({"code": "failed", "message": "no space left: on the disk"}));
    }

    #[test]
    fn json_is_asked_for_by_a_flag_and_not_by_a_text() {
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(is_asked(&args(&["grove", "ls", "--json"])));
        assert!(!is_asked(&args(&["grove", "run", "--", "--json"])));
        assert!(!is_asked(&args(&["--json"])));
    }
}
