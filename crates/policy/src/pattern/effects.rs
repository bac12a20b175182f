//! Options with which a harmless program runs another one, or writes a file.

use crate::shell::ShellWord;

/// The options of a program that a pattern must name.
struct EffectTable {
    programs: &'static [&'static str],
    /// Letters of short options, alone or together with others.
    letters: &'static [char],
    /// Long options, also shortened.
    long: &'static [&'static str],
}

const TABLES: [EffectTable; 7] = [
    EffectTable {
        programs: &["git"],
        letters: &[],
        long: &[
            "--config-env",
            "--exec",
            "--exec-path",
            "--ext-diff",
            "--extcmd",
            "--open-files-in-pager",
            "--output",
            "--output-directory",
            "--receive-pack",
            "--upload-pack",
        ],
    },
    EffectTable {
        programs: &["tar", "bsdtar", "gtar"],
        letters: &['I', 'F'],
        long: &[
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ],
    },
    EffectTable { programs: &["rsync"], letters: &['e'], long: &["--rsh", "--rsync-path"] },
    EffectTable { programs: &["sort"], letters: &['o'], long: &["--compress-program", "--output"] },
    EffectTable { programs: &["rg"], letters: &[], long: &["--hostname-bin", "--pre"] },
    EffectTable { programs: &["fd", "fdfind"], letters: &['x', 'X'], long: &["--exec", "--exec-batch"] },
    EffectTable { programs: &["scp", "sftp", "ssh"], letters: &['S', 'o', 'F'], long: &[] },
];

/// Options of git before its command that take the next word.
const GIT_VALUES: [&str; 5] = ["-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix"];

/// The words of a command that a pattern must name, because they run a program or write a file.
pub(super) fn effects(words: &[ShellWord]) -> Vec<&ShellWord> {
    let Some(name) = words.first().and_then(ShellWord::known) else { return Vec::new() };
    let base = name.rsplit('/').next().unwrap_or_default();
    let Some(table) = TABLES.iter().find(|table| table.programs.contains(&base)) else { return Vec::new() };
    let mut found: Vec<&ShellWord> = words[1..].iter().filter(|word| table.has(&word.display())).collect();
    match base {
        "git" => found.extend(git_effects(words)),
        // "tar xIf" has its letters without a dash.
        "tar" | "bsdtar" | "gtar" => {
            let old = words.get(1).filter(|word| !word.display().starts_with('-'));
            found.extend(old.filter(|word| word.display().contains(['I', 'F'])));
        }
        _ => {}
    }
    found
}

impl EffectTable {
    fn has(&self, word: &str) -> bool {
        if word.starts_with("--") {
            let name = word.split('=').next().unwrap_or_default();
            return self.long.iter().any(|option| *option == name || name.len() >= 4 && option.starts_with(name));
        }
        word.strip_prefix('-').is_some_and(|letters| letters.contains(self.letters))
    }
}

/// Settings before the command of git, and commands that run others.
fn git_effects(words: &[ShellWord]) -> Vec<&ShellWord> {
    let mut found = Vec::new();
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.display().starts_with('-')) {
        let text = word.display();
        if text.starts_with("-c") {
            found.push(word);
        }
        let takes_next = text == "-c" || GIT_VALUES.contains(&text.as_str());
        at += 1 + usize::from(takes_next);
    }
    let rest = words.get(at + 1..).unwrap_or_default();
    let command = words.get(at).map(ShellWord::display).unwrap_or_default();
    let runs = |text: &str| match command.as_str() {
        "bisect" => text == "run",
        "submodule" => text == "foreach",
        "grep" => text.starts_with('-') && !text.starts_with("--") && text.contains('O'),
        "rebase" | "difftool" => text.starts_with("-x"),
        "clone" => text.starts_with("-c") || text.starts_with("--config") || text.starts_with("-u"),
        "filter-branch" => true,
        "format-patch" | "archive" => text.starts_with("-o"),
        _ => false,
    };
    found.extend(rest.iter().filter(|word| runs(&word.display())));
    found
}
