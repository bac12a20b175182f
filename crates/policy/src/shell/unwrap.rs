//! Programs that run other programs.

use super::parser::{is_reserved, parse_into};
use super::*;

/// A program that runs its arguments and does nothing else: the inner command decides.
struct Wrapper {
    name: &'static str,
    flags: &'static [&'static str],
    /// Options with a value: the next word, or the rest of this one.
    valued: &'static [&'static str],
    /// The number of arguments before the inner command.
    arguments: usize,
}

const WRAPPERS: [Wrapper; 12] = [
    Wrapper { name: "builtin", flags: &[], valued: &[], arguments: 0 },
    Wrapper { name: "command", flags: &["-p"], valued: &[], arguments: 0 },
    Wrapper { name: "env", flags: &["-i", "-", "--ignore-environment"], valued: &["-u", "--unset"], arguments: 0 },
    Wrapper { name: "exec", flags: &["-c", "-l"], valued: &["-a"], arguments: 0 },
    Wrapper { name: "ionice", flags: &["-t"], valued: &["-c", "-n", "--class", "--classdata"], arguments: 0 },
    Wrapper { name: "nice", flags: &[], valued: &["-n", "--adjustment"], arguments: 0 },
    Wrapper { name: "nohup", flags: &[], valued: &[], arguments: 0 },
    Wrapper { name: "setsid", flags: &["-c", "-f", "-w", "--fork", "--wait", "--ctty"], valued: &[], arguments: 0 },
    Wrapper { name: "stdbuf", flags: &[], valued: &["-i", "-o", "-e", "--input", "--output", "--error"], arguments: 0 },
    Wrapper { name: "time", flags: &["-p"], valued: &[], arguments: 0 },
    Wrapper {
        name: "timeout",
        flags: &["--foreground", "--preserve-status", "-v", "--verbose"],
        valued: &["-k", "-s", "--kill-after", "--signal"],
        arguments: 1,
    },
    Wrapper {
        name: "xargs",
        flags: &["-0", "-r", "-t", "-x", "--null", "--no-run-if-empty", "--verbose", "--exit"],
        valued: &[
            "-n",
            "-P",
            "-L",
            "-I",
            "-d",
            "-s",
            "-E",
            "--max-args",
            "--max-procs",
            "--max-lines",
            "--replace",
            "--delimiter",
            "--max-chars",
        ],
        arguments: 0,
    },
];

/// Programs that run their arguments and do more: they must be allowed by name, and a rule may deny what they run.
const RUNNERS: [&str; 37] = [
    "bunx",
    "busybox",
    "chroot",
    "chrt",
    "chronic",
    "dbus-run-session",
    "doas",
    "entr",
    "fakeroot",
    "firejail",
    "flock",
    "gdb",
    "git-bash",
    "ltrace",
    "noglob",
    "nsenter",
    "npx",
    "perf",
    "pkexec",
    "pnpx",
    "prlimit",
    "proxychains4",
    "rlwrap",
    "runuser",
    "script",
    "ssh",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "torsocks",
    "toybox",
    "unshare",
    "uvx",
    "valgrind",
    "watch",
];

/// Programs whose effect on later commands is not known.
const OPAQUE: [&str; 13] = [
    ".",
    "alias",
    "bind",
    "complete",
    "enable",
    "eval",
    "fc",
    "hash",
    "mapfile",
    "parallel",
    "readarray",
    "source",
    "trap",
];

const SHELLS: [&str; 8] = ["ash", "bash", "dash", "ksh", "mksh", "rbash", "sh", "zsh"];
/// Shells whose language is not read.
const OTHER_SHELLS: [&str; 8] = ["cmd", "csh", "elvish", "fish", "nu", "powershell", "pwsh", "tcsh"];

/// How many suffixes of a command may be the inner command of a runner.
const MAX_SUFFIXES: usize = 64;

/// Folders whose programs are what their names say.
const STANDARD_FOLDERS: [&str; 3] = ["/bin", "/usr/bin", "/usr/local/bin"];

/// True if the program of a command is found by its name, or in a folder of the system.
fn is_standard(command: &Command) -> bool {
    let name = command.words.first().and_then(ShellWord::known);
    name.is_some_and(|name| name.rsplit_once('/').is_none_or(|(folder, _)| STANDARD_FOLDERS.contains(&folder)))
}

/// Adds a command to a script, and the commands that it runs.
pub(super) fn unwrap_command(mut command: Command, script: &mut ShellScript) {
    if command.depth > MAX_DEPTH {
        return script.note(UnknownReason::TooLarge);
    }
    let Some(first) = command.words.first() else { return script.push(command) };
    let name = match first.known() {
        // In zsh, "=name" is the path of a program; "a=b" behind a wrapper is not the setting that it looks like.
        Some(name) if !name.is_empty() && !name.contains('=') && !is_reserved(&name) => name,
        _ => {
            script.note(UnknownReason::ProgramName);
            return script.push(command);
        }
    };
    let base = name.rsplit('/').next().unwrap_or_default().to_owned();
    let base = base.as_str();
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == base) {
        return unwrap_wrapper(wrapper, command, script);
    }
    if SHELLS.contains(&base) {
        return unwrap_shell(command, script);
    }
    if RUNNERS.contains(&base) || is_running(base, &command.words[1..]) {
        list_suffixes(&command, script);
    } else if OPAQUE.contains(&base) || OTHER_SHELLS.contains(&base) {
        script.note(UnknownReason::Program(base.to_owned()));
        let text: Option<Vec<String>> = command.words[1..].iter().map(ShellWord::known).collect();
        match text {
            Some(words) => list_covered(&words.join(" "), command.depth + 1, script),
            None => list_suffixes(&command, script),
        }
    } else if base == "find" {
        unwrap_find(&command, script);
    } else if builtins::may_evaluate(base, &command.words[1..]) {
        script.note(UnknownReason::Program(base.to_owned()));
    }
    command.is_covered |= is_move_inside(&command);
    script.push(command);
}

/// True for a program that runs its arguments only with certain words.
fn is_running(base: &str, words: &[ShellWord]) -> bool {
    let known: &[&str] = match base {
        "docker" | "nerdctl" | "podman" => &["exec", "run"],
        "fd" | "fdfind" => &["--exec", "--exec-batch"],
        "uv" => &["run"],
        _ => return false,
    };
    let is_fd = base.starts_with("fd");
    words.iter().any(|word| match word.known() {
        Some(text) if is_fd && !text.starts_with("--") => text.starts_with('-') && text.contains(['x', 'X']),
        Some(text) => known.contains(&text.as_str()),
        None => word.may_be_option(),
    })
}

/// Adds the inner command of a wrapper, which stands for the wrapper.
fn unwrap_wrapper(wrapper: &Wrapper, command: Command, script: &mut ShellScript) {
    let mut inner = Command { depth: command.depth + 1, is_covered: command.is_covered, ..Command::default() };
    inner.assignments.clone_from(&command.assignments);
    let Some((start, placeholder)) = wrapper.skip_options(&command.words, &mut inner.assignments) else {
        // "command -v name" runs nothing; other unknown options may.
        if !(wrapper.name == "command" && command.words.get(1).is_some_and(|word| word.is("-v") || word.is("-V"))) {
            script.note(UnknownReason::Program(wrapper.name.to_owned()));
            list_suffixes(&command, script);
        }
        return script.push(command);
    };
    if start >= command.words.len() {
        return script.push(command);
    }
    let mut words = command.words[start..].to_vec();
    if wrapper.name == "xargs" {
        match placeholder {
            Some(placeholder) => words.iter_mut().filter(|word| word.may_contain(&placeholder)).for_each(|word| {
                *word = ShellWord::unknown();
            }),
            None => words.push(ShellWord::unknown()),
        }
    }
    inner.words = words;
    let is_covered = command.is_covered || is_standard(&command);
    script.push(Command { is_covered, ..command });
    unwrap_command(inner, script);
}

impl Wrapper {
    /// The index of the inner command, and the placeholder of `xargs -I`; `None` if an option is not known.
    fn skip_options(&self, words: &[ShellWord], assignments: &mut Vec<Assignment>) -> Option<(usize, Option<String>)> {
        let (mut at, mut placeholder) = (1, None);
        while let Some(word) = words.get(at) {
            if self.name == "env"
                && let Some(assignment) = (ShellWord { plain: usize::MAX, ..word.clone() }).as_assignment()
            {
                assignments.push(assignment);
                at += 1;
                continue;
            }
            let text = word.known()?;
            if text == "--" {
                at += 1;
                break;
            }
            if !text.starts_with('-') {
                break;
            }
            if self.flags.contains(&text.as_str()) || self.name == "nice" && text[1..].parse::<u8>().is_ok() {
                at += 1;
                continue;
            }
            let option = self.valued.iter().find(|option| is_option(&text, option))?;
            let rest = &text[option.len()..];
            let attached = if option.starts_with("--") { rest.strip_prefix('=') } else { Some(rest) };
            let attached = attached.filter(|value| !value.is_empty() || option.starts_with("--"));
            let value = match attached {
                Some(value) => value.to_owned(),
                None if *option == "--replace" => "{}".to_owned(),
                None if *option == "--max-lines" => String::new(),
                None => {
                    at += 1;
                    words.get(at)?.known()?
                }
            };
            if matches!(*option, "-I" | "--replace") {
                placeholder = Some(value);
            }
            at += 1;
        }
        for argument in 0..self.arguments {
            words.get(at + argument)?.known()?;
        }
        Some((at + self.arguments, placeholder))
    }
}

/// True if a word is this option, alone or with its value.
fn is_option(word: &str, option: &str) -> bool {
    let Some(rest) = word.strip_prefix(option) else { return false };
    rest.is_empty() || rest.starts_with('=') || !option.starts_with("--")
}

/// An option of a shell that does not change how its commands are read.
struct ShellOption {
    runs_text: bool,
    takes_next: bool,
}

impl ShellOption {
    /// Reads an option; `None` if it may run or change something.
    fn read(text: &str, next: Option<&str>) -> Option<Self> {
        const LONG: [&str; 4] = ["--login", "--noprofile", "--norc", "--posix"];
        const SETTINGS: [&str; 6] = ["errexit", "nounset", "pipefail", "posix", "verbose", "xtrace"];
        if LONG.contains(&text) {
            return Some(Self { runs_text: false, takes_next: false });
        }
        let flags = text.strip_prefix('-')?;
        let takes_next = flags.contains('o');
        let is_known = flags.chars().all(|c| "ceflouvx".contains(c)) && flags.matches('o').count() <= 1;
        let is_setting = !takes_next || next.is_some_and(|next| SETTINGS.contains(&next));
        (is_known && is_setting).then_some(Self { runs_text: flags.contains('c'), takes_next })
    }
}

/// Adds the commands of `sh -c "…"`. A shell that reads its commands from elsewhere is unknown.
fn unwrap_shell(command: Command, script: &mut ShellScript) {
    let mut runs_text = false;
    let mut at = 1;
    while let Some(word) = command.words.get(at) {
        let Some(text) = word.known() else {
            script.note(UnknownReason::ProgramName);
            return script.push(command);
        };
        if text == "-" || text == "--" {
            at += 1;
            break;
        }
        if !text.starts_with(['-', '+']) {
            break;
        }
        let next = command.words.get(at + 1).and_then(ShellWord::known);
        let Some(option) = ShellOption::read(&text, next.as_deref()) else {
            script.note(UnknownReason::Program("sh".to_owned()));
            list_suffixes(&command, script);
            return script.push(command);
        };
        runs_text |= option.runs_text;
        at += 1 + usize::from(option.takes_next);
    }
    let depth = command.depth + 1;
    let argument = command.words.get(at).map(ShellWord::known);
    match (runs_text, argument) {
        (true, Some(Some(text))) => {
            let (is_covered, assignments) = (command.is_covered, command.assignments.clone());
            let stands_for_it = is_covered || is_standard(&command);
            script.push(Command { is_covered: stands_for_it, ..command });
            let first = script.commands.len();
            parse_into(&text, depth, script);
            for inner in &mut script.commands[first..] {
                inner.is_covered |= is_covered;
                inner.assignments.splice(0..0, assignments.iter().cloned());
            }
        }
        (false, Some(Some(_))) => script.push(command),
        (_, Some(None)) => {
            script.note(UnknownReason::ProgramName);
            script.push(command);
        }
        (_, None) => {
            script.note(UnknownReason::Program("sh".to_owned()));
            script.push(command);
        }
    }
}

/// Adds the commands of `find -exec`; `-delete` counts as `rm`.
fn unwrap_find(command: &Command, script: &mut ShellScript) {
    let words = &command.words;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        if word.may_be_option() {
            script.note(UnknownReason::Program("find".to_owned()));
        }
        let Some(text) = word.known() else { continue };
        let new =
            |words| Command { words, depth: command.depth + 1, is_covered: command.is_covered, ..Command::default() };
        match text.as_str() {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let end = words[at..].iter().position(|word| word.is(";") || word.is("+")).map(|end| at + end);
                let Some(end) = end else {
                    script.note(UnknownReason::Program("find".to_owned()));
                    continue;
                };
                let file = |word: &ShellWord| match word.may_contain("{}") {
                    true => ShellWord::unknown(),
                    false => word.clone(),
                };
                unwrap_command(new(words[at..end].iter().map(file).collect()), script);
                at = end + 1;
            }
            "-delete" => unwrap_command(new(vec![ShellWord::text("rm"), ShellWord::unknown()]), script),
            "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                let path = words.get(at).cloned().unwrap_or_else(ShellWord::unknown);
                script.access(FileAccess { path, writes: true, is_elsewhere: true });
            }
            _ => {}
        }
    }
}

/// Lists every end of a command as one that may be run, so that a rule can deny it.
fn list_suffixes(command: &Command, script: &mut ShellScript) {
    if command.words.len() > MAX_SUFFIXES + 1 {
        script.note(UnknownReason::TooLarge);
    }
    for at in 1..command.words.len().min(MAX_SUFFIXES + 1) {
        let first = command.words[at].known();
        if let Some(text) = first.as_ref().filter(|text| text.contains(is_special)) {
            list_covered(text, command.depth + 1, script);
        }
        if first.as_ref().is_some_and(|word| word.starts_with('-')) {
            continue;
        }
        let words = command.words[at..].to_vec();
        let suffix = Command { words, depth: command.depth + 1, is_covered: true, ..Command::default() };
        let base = first.as_deref().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
        let mut inner = ShellScript::default();
        if SHELLS.contains(&base) {
            unwrap_shell(suffix, &mut inner);
        } else {
            if base == "find" {
                unwrap_find(&suffix, &mut inner);
            }
            inner.push(suffix);
        }
        script.cover(inner);
    }
}

/// True for a character that a shell does not read as itself.
fn is_special(c: char) -> bool {
    c.is_whitespace() || ";&|<>()$`{}\\'\"*?[~#!".contains(c)
}

/// Lists the commands of a text that may be run, so that a rule can deny them.
fn list_covered(text: &str, depth: usize, script: &mut ShellScript) {
    if depth > MAX_DEPTH {
        return script.note(UnknownReason::TooLarge);
    }
    let mut inner = ShellScript::default();
    parse_into(text, depth, &mut inner);
    script.cover(inner);
}

impl ShellScript {
    /// Adds what a command may run: no rule needs to allow it, and what is unknown about it stays unknown.
    fn cover(&mut self, inner: ShellScript) {
        inner.commands.into_iter().for_each(|command| self.push(Command { is_covered: true, ..command }));
        inner.accesses.into_iter().for_each(|access| self.access(FileAccess { is_elsewhere: true, ..access }));
        inner.unknown.into_iter().for_each(|reason| self.note(reason));
    }
}

/// True for `cd` to a folder below the current one, which needs no rule.
fn is_move_inside(command: &Command) -> bool {
    let [name, folder] = &command.words[..] else { return false };
    let is_below = |folder: String| {
        !folder.is_empty() && !folder.starts_with(['/', '~', '-']) && !folder.split('/').any(|name| name == "..")
    };
    name.is("cd") && command.assignments.is_empty() && folder.known().is_some_and(is_below)
}

impl ShellWord {
    /// True if the word is not known, and it or a word that it is split into may begin with `-`.
    pub(super) fn may_be_option(&self) -> bool {
        let is_open = matches!(self.pieces.first(), Some(WordPiece::Unknown | WordPiece::Glob(_)));
        self.known().is_none() && (is_open || self.splits && self.has_unknown())
    }

    /// True if the text occurs in the word, or may occur in an unknown piece.
    fn may_contain(&self, text: &str) -> bool {
        self.known().is_none_or(|known| known.contains(text))
    }
}
