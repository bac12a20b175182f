//! The law: no rules allow what a rule denies, however the command is written.

use grove_policy::shell::quote;
use grove_policy::{Decision, Verdict};
use proptest::prelude::*;

use crate::{policy, shell};

/// Commands that the rules deny.
const DENIED: [&[&str]; 8] = [
    &["rm", "-rf", "target"],
    &["rm", "x"],
    &["git", "push"],
    &["git", "push", "--force", "origin", "main"],
    &["npm", "publish"],
    &["dd", "if=/dev/zero", "of=x"],
    &["kubectl", "delete", "pod", "a b"],
    &["shutdown"],
];

const DENIES: &str = r#"
[[rules]]
deny = "shell"
command = ["rm *", "git push *", "npm publish", "dd *", "kubectl delete *", "shutdown *"]
"#;

/// Rules that allow: everything, everything by pattern, or most of the programs around the denied command.
const ALLOWS: [&str; 4] = [
    "[[rules]]\nallow = \"any\"\n",
    "[[rules]]\nallow = \"shell\"\ncommand = \"*\"\n[[rules]]\nallow = \"edit\"\npath = \"/**\"\n",
    "[[rules]]\nallow = \"shell\"\ncommand = [\"git *\", \"rm *\", \"echo *\", \"true\", \"cat *\", \"* *\", \"sh *\"]\n",
    "[[rules]]\nallow = \"any\"\nagent = \"cl*\"\n",
];

/// A word, written in one of many ways that a shell reads as the same.
fn spelling(word: &'static str) -> impl Strategy<Value = String> {
    let piece = |c: char| {
        let plain = c.is_ascii_alphanumeric() || "-_./=".contains(c);
        (0..9u8).prop_map(move |way| match way {
            0 => format!("'{c}'"),
            1 => format!("\"{c}\""),
            2 => format!("\\{c}"),
            3 => format!("$'\\x{:02x}'", c as u32),
            4 => format!("$'\\{:03o}'", c as u32),
            5 => format!("$'\\u{:04x}'", c as u32),
            6 => format!("''{}", quote(&c.to_string())),
            7 => format!("\\\n{}", quote(&c.to_string())),
            _ if plain => c.to_string(),
            _ => quote(&c.to_string()),
        })
    };
    let by_characters = word.chars().map(piece).collect::<Vec<_>>().prop_map(|pieces| pieces.concat());
    prop_oneof![
        3 => Just(quote(word)),
        1 => Just(format!("\"{word}\"")),
        1 => Just(format!("$'{word}'")),
        4 => by_characters,
    ]
}

/// A denied command with each word in some spelling.
fn denied() -> impl Strategy<Value = String> {
    let blank = prop_oneof![Just(" "), Just("  "), Just("\t"), Just(" \\\n "), Just("\\\n ")];
    (0..DENIED.len()).prop_flat_map(move |at| {
        let words: Vec<_> = DENIED[at].iter().map(|word| (spelling(word), blank.clone())).collect();
        words.prop_map(|words| words.into_iter().map(|(word, blank)| word + blank).collect::<String>())
    })
}

/// The command inside another one that also runs it.
fn wrapped(inner: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    (inner, 0..44usize).prop_map(|(inner, way)| {
        let quoted = quote(&inner);
        let prefixes = [
            "A=1 ",
            "CI=1 LANG=C ",
            "PATH=/x ",
            "env ",
            "env A=1 B=2 ",
            "env -i ",
            "nohup ",
            "nice -n 5 ",
            "timeout 5 ",
            "timeout -k 1 5s ",
            "time ",
            "command ",
            "exec ",
            "builtin ",
            "setsid ",
            "stdbuf -oL ",
            "sudo ",
            "sudo -u root ",
            "doas ",
            "! ",
            "true && ",
            "false || ",
            "true; ",
            "true | ",
            "true & ",
            "true\n",
            "# a comment\n",
            "> /tmp/x ",
            "2>&1 ",
            "echo x | xargs ",
        ];
        match way {
            at if at < prefixes.len() => format!("{}{inner}", prefixes[at]),
            30 => format!("({inner})"),
            31 => format!("{{ {inner}; }}"),
            32 => format!("echo $({inner})"),
            33 => format!("echo \"a $({inner}) b\""),
            34 => format!("echo `{}`", inner.replace('\\', "\\\\").replace('`', "\\`").replace('$', "\\$")),
            35 => format!("cat <({inner})"),
            36 => format!("sh -c {quoted}"),
            37 => format!("/bin/bash -lc {quoted}"),
            38 => format!("eval {quoted}"),
            39 => format!("cat <<EOF\n$({inner})\nEOF"),
            40 => format!("{inner} && true"),
            41 => format!("{inner}; true # done"),
            42 => format!("if true; then {inner}; fi"),
            _ => format!("find . -exec sh -c {quoted} \\;"),
        }
    })
}

fn policies() -> impl Strategy<Value = usize> {
    0..ALLOWS.len()
}

fn judge(allows: usize, command: &str) -> Decision {
    policy(&format!("{}{DENIES}", ALLOWS[allows])).judge(&shell(command))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_spelling_of_a_denied_command_is_allowed(allows in policies(), command in denied()) {
        let decision = judge(allows, &command);
        prop_assert_eq!(decision.verdict, Verdict::Deny, "{:?}: {}", command, decision);
    }

    #[test]
    fn no_command_around_a_denied_one_is_allowed(allows in policies(), command in wrapped(denied())) {
        let decision = judge(allows, &command);
        prop_assert_eq!(decision.verdict, Verdict::Deny, "{:?}: {}", command, decision);
    }

    #[test]
    fn no_commands_around_each_other_are_allowed(allows in policies(), command in wrapped(wrapped(wrapped(denied())))) {
        let decision = judge(allows, &command);
        prop_assert_ne!(decision.verdict, Verdict::Allow, "{:?}: {}", command, decision);
    }

    #[test]
    fn a_denied_command_with_unknown_words_is_not_allowed(
        allows in policies(),
        at in 0..DENIED.len(),
        word in 0..6usize,
        unknown in prop_oneof![Just("$x"), Just("\"$x\""), Just("${x}"), Just("$(echo a)"), Just("`echo a`"), Just("*"), Just("{a,b}")],
    ) {
        let mut words: Vec<String> = DENIED[at].iter().map(|word| quote(word)).collect();
        let at = word % words.len();
        words[at] = unknown.to_owned();
        let decision = judge(allows, &words.join(" "));
        prop_assert_ne!(decision.verdict, Verdict::Allow, "{:?}: {}", words, decision);
    }

    #[test]
    fn any_text_gets_a_verdict(text in "[a-z$(){}'\"`\\\\;&|<>#\n \t=*!-]{0,80}") {
        let denying = policy("[[rules]]\nallow = \"any\"\n[[rules]]\ndeny = \"shell\"\n");
        prop_assert_eq!(denying.judge(&shell(&text)).verdict, Verdict::Deny);
    }
}
