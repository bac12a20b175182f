//! The corpus: commands as agents write them, with their verdicts.

use crate::{policy, shell};

const RULES: &str = include_str!("corpus.toml");
const CORPUS: &str = include_str!("corpus.txt");

#[test]
fn every_command_of_the_corpus_has_its_verdict() {
    let policy = policy(RULES);
    let (mut count, mut wrong) = (0, Vec::new());
    for line in CORPUS.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let (verdict, command) = line.split_once(char::is_whitespace).unwrap();
        // "\n" is a line break, also behind a backslash of the command; "\t" is a tab.
        let command = command.trim_start().replace("\\n", "\n").replace("\\t", "\t");
        let decision = policy.judge(&shell(&command));
        if decision.verdict.name() != verdict {
            wrong.push(format!("{command:?}: {} instead of {verdict}: {decision}", decision.verdict));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 300, "{count}");
}
