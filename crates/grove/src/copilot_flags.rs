//! The arguments with which the Copilot SDK starts its CLI.
//!
//! The CLI has far more options than `grove copilot`, and programs pass some of them. An option that Grove does not have
//! must not keep the program from starting: it is left out with a note on stderr.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

const COPILOT: &str = "copilot";
/// The options that only the SDK gives.
const SDK_OPTIONS: [&str; 2] = ["--headless", "--server"];

/// The program's arguments, with the subcommand that the SDK does not name. `note` gets each option that is left out.
pub(crate) fn as_typed(
    args: impl Iterator<Item = OsString>,
    cli: &mut Command,
    mut note: impl FnMut(&OsStr),
) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    cli.build();
    let is_sdk = args.iter().any(|arg| SDK_OPTIONS.iter().any(|option| arg == option));
    match subcommand(&args, cli) {
        None if is_sdk && is_option(&args[1]) => args.insert(1, COPILOT.into()),
        Some(at) if args[at] == COPILOT => {}
        Some(_) | None => return args,
    }
    let at = args.iter().position(|arg| arg == COPILOT).unwrap_or(0);
    let Some(copilot) = cli.find_subcommand(COPILOT) else { return args };
    let given = args.split_off(at + 1);
    let mut given = given.into_iter().peekable();
    while let Some(arg) = given.next() {
        let option = arg.to_str().and_then(|arg| find(copilot, arg));
        let has_value = !is_option(&arg) || arg.as_encoded_bytes().contains(&b'=');
        // The value of an unknown option cannot be told from a stray word: `grove copilot` takes no other words.
        let value = given.next_if(|next| !has_value && !is_option(next) && option.is_none_or(takes_value));
        match option {
            Some(_) => args.extend(std::iter::once(arg).chain(value)),
            None => note(&arg),
        }
    }
    args
}

/// The position of the subcommand, if one is named. Other words may be values of options that Grove does not have.
fn subcommand(args: &[OsString], cli: &Command) -> Option<usize> {
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        if cli.find_subcommand(arg).is_some() {
            return Some(at);
        }
        let copilot = cli.find_subcommand(COPILOT);
        let option = arg.to_str().and_then(|arg| find(cli, arg).or_else(|| find(copilot?, arg)));
        // A word after an unknown option is its value: `debug` is a level of the log, and a subcommand.
        let may_have_value =
            is_option(arg) && !arg.as_encoded_bytes().contains(&b'=') && option.is_none_or(takes_value);
        let has_value = may_have_value && args.get(at + 1).is_some_and(|next| !is_option(next));
        at += if has_value { 2 } else { 1 };
    }
    None
}

fn is_option(arg: &OsStr) -> bool {
    arg.as_encoded_bytes().starts_with(b"-")
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

/// The option of a command that an argument names.
fn find<'a>(command: &'a Command, arg: &str) -> Option<&'a Arg> {
    let name = arg.split('=').next().unwrap_or(arg);
    match name.strip_prefix("--") {
        Some(long) => command.get_arguments().find(|option| {
            let aliases = option.get_all_aliases().unwrap_or_default();
            option.get_long() == Some(long) || aliases.contains(&long)
        }),
        None => {
            let short = name.strip_prefix('-')?.chars().next();
            command.get_arguments().find(|option| short.is_some() && option.get_short() == short)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn typed(args: &str) -> (String, String) {
        let mut ignored = Vec::new();
        let args = as_typed(args.split(' ').map(OsString::from), &mut Cli::command(), |option| {
            ignored.push(option.to_string_lossy().into_owned());
        });
        let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        (args.join(" "), ignored.join(" "))
    }

    #[test]
    fn options_of_the_copilot_cli_are_left_out_and_named() {
        let same = |text: &str| (text.to_owned(), String::new());
        assert_eq!(typed("grove --headless --stdio"), same("grove copilot --headless --stdio"));
        assert_eq!(
            typed("grove --yolo --experimental --server --log-level debug --no-auto-update --stdio"),
            (
                "grove copilot --yolo --server --log-level debug --no-auto-update --stdio".into(),
                "--experimental".into()
            )
        );
        assert_eq!(
            typed("grove copilot --headless --model gpt-5 --add-dir=/tmp -x --port 0 word"),
            ("grove copilot --headless --port 0".into(), "--model --add-dir=/tmp -x word".into())
        );
        assert_eq!(
            typed("grove --data-dir /d --headless --stdio"),
            same("grove copilot --data-dir /d --headless --stdio")
        );
        assert_eq!(typed("grove --data-dir copilot ls"), same("grove --data-dir copilot ls"));
        assert_eq!(typed("grove agents install copilot --nonsense"), same("grove agents install copilot --nonsense"));
        assert_eq!(typed("grove --nonsense"), same("grove --nonsense"));
        assert_eq!(typed("grove mistyped --headless"), same("grove mistyped --headless"));
    }
}
