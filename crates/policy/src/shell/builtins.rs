//! Builtins that set variables, or evaluate their arguments.

use super::*;

/// Builtins that set variables from what they read or compute.
const SETTERS: [&str; 4] = ["getopts", "let", "read", "unset"];
/// Builtins that take settings of variables.
const DECLARATIONS: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];
/// Operators of `test` between two words.
const COMPARISONS: [&str; 12] = ["=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt"];

/// True if a builtin with these arguments may evaluate one of them, or change what later commands do.
pub(super) fn may_evaluate(name: &str, arguments: &[ShellWord]) -> bool {
    match name {
        "printf" => arguments.first().is_some_and(|first| first.may_be_option() || begins_with(first, "-v")),
        "test" | "[" => (0..arguments.len()).any(|at| may_be_operator(arguments, at)),
        "wait" => arguments.iter().any(|word| word.may_be_option() || begins_with(word, "-p")),
        name if SETTERS.contains(&name) => true,
        name if DECLARATIONS.contains(&name) => !arguments.iter().all(is_harmless_setting),
        _ => false,
    }
}

fn begins_with(word: &ShellWord, start: &str) -> bool {
    word.display().starts_with(start)
}

/// True for a name, or for a harmless variable with a literal value.
fn is_harmless_setting(word: &ShellWord) -> bool {
    let Some(text) = word.known() else { return false };
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match text.split_once('=') {
        Some((name, value)) => {
            let set = Assignment { name: name.to_owned(), value: ShellWord::text(value) };
            set.is_harmless() && set.is_literal()
        }
        None => is_name(&text),
    }
}

/// True if an argument of `test` is, or may be, an operator that evaluates the next one.
fn may_be_operator(arguments: &[ShellWord], at: usize) -> bool {
    let word = &arguments[at];
    if let Some(text) = word.known() {
        return matches!(text.as_str(), "-v" | "-R");
    }
    let is_compared =
        arguments.get(at + 1).and_then(ShellWord::known).is_some_and(|next| COMPARISONS.contains(&next.as_str()));
    let before = at.checked_sub(1).and_then(|before| arguments[before].known());
    let is_operand = before.is_some_and(|before| before.starts_with('-') && before != "-a" && before != "-o")
        || at > 0 && arguments[at - 1].known().is_some_and(|before| COMPARISONS.contains(&before.as_str()));
    word.splits || !(is_compared || is_operand)
}
