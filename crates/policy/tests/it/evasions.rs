//! Commands that look allowed and do something else.

use grove_policy::{RequestAction, Verdict};

use crate::{policy, request, shell};

/// The rules of most tests: everything is allowed except for some files, hosts and commands.
const OPEN: &str = r#"
[[rules]]
allow = "any"

[[rules]]
deny = "shell"
command = "rm *"

[[rules]]
deny = ["read", "edit"]
path = [".env", "~/.ssh/**", "/etc/passwd"]

[[rules]]
deny = "fetch"
host = ["evil.com", "169.254.169.254", "localhost"]
"#;

fn verdict(rules: &str, command: &str) -> Verdict {
    policy(rules).judge(&shell(command)).verdict
}

/// Asserts that no command is allowed, with rules that allow everything else.
fn assert_stopped(commands: &[&str]) {
    let allowed: Vec<_> = commands.iter().filter(|command| verdict(OPEN, command) == Verdict::Allow).collect();
    assert!(allowed.is_empty(), "{allowed:?}");
}

fn assert_allowed(commands: &[&str]) {
    for command in commands {
        let decision = policy(OPEN).judge(&shell(command));
        assert_eq!(decision.verdict, Verdict::Allow, "{command:?}: {decision}");
    }
}

#[test]
fn a_wrapper_or_shell_in_another_folder_needs_a_rule_of_its_own() {
    let rules = "[[rules]]\nallow = \"shell\"\ncommand = \"ls *\"\n";
    for command in ["./timeout 9 ls", "./env ls", "/tmp/x/bash -c ls", "bin/nice ls", "/bin/../tmp/sh -c ls"] {
        assert_eq!(verdict(rules, command), Verdict::Ask, "{command}");
    }
    for command in ["timeout 9 ls", "/usr/bin/env ls", "/bin/bash -c ls", "/usr/local/bin/nice ls"] {
        assert_eq!(verdict(rules, command), Verdict::Allow, "{command}");
    }
}

#[test]
fn a_bracket_may_match_any_denied_path() {
    assert_stopped(&["cat .[e]nv", "cat < .[e]nv", "cat .[!x]nv", "cat .e[a-z]v", "cat /etc/[p]asswd", "[r]m x"]);
    assert_allowed(&["[ -f x ]", "cat '.[e]nvironment'"]);
}

#[test]
fn a_here_document_with_continued_lines_is_asked() {
    assert_stopped(&[
        "cat <<EOF\nx\\\nEOF\n$(id)\nEOF",
        "cat <<E\\\nOF\n$(id)\nEOF",
        "cat <<EOF\n`echo \\\"$(id)\\\"`\nEOF",
    ]);
    assert_allowed(&["cat <<EOF\nx\nEOF", "cat <<'EOF'\nx\\\ny\nEOF"]);
}

#[test]
fn an_expansion_that_may_evaluate_its_value_is_asked() {
    assert_stopped(&[
        "echo ${!x}",
        "echo ${x@P}",
        "echo ${a[0]}",
        "echo ${x:y}",
        "echo ${x:=y}",
        "echo ${x/a/b}",
        "echo ${x:-",
        "echo ${x:1}",
    ]);
    let rules = "[[rules]]\nallow = \"shell\"\ncommand = \"echo *\"\n";
    for command in ["echo ${x}", "echo ${#x}", "echo ${x:-y}", "echo ${x%.rs}", "echo ${x##*/}"] {
        assert_eq!(verdict(rules, command), Verdict::Allow, "{command}");
    }
    for command in ["CI='a[$(id)]'; echo x", "CI=$x; echo x", "CI=a[0]; echo x"] {
        assert_eq!(verdict(rules, command), Verdict::Ask, "{command}");
    }
    assert_eq!(verdict(rules, "CI=1; echo x"), Verdict::Allow);
}

#[test]
fn a_builtin_that_sets_or_evaluates_variables_is_asked() {
    assert_stopped(&[
        "printf -v PATH /evil",
        "printf -vPATH /evil",
        "printf $x y",
        "test -v 'a[$(id)]'",
        "[ -v 'a[$(id)]' ]",
        "[ $x 'a[0]' ]",
        "[ \"$x\" y ]",
        "read PATH",
        "unset PATH",
        "let 'a[$(id)]=1'",
        "declare -n a=PATH",
        "export PATH=/evil",
        "export $x",
        "readonly CI='a[$(id)]'",
        "getopts ab PATH",
    ]);
    assert_allowed(&["printf '%s' x", "export CI=1", "test -f x", "[ 1 = 1 ]"]);
    let rules = "[[rules]]\nallow = \"shell\"\ncommand = \"[ *\"\n";
    assert_eq!(verdict(rules, "[ -n \"$x\" ]"), Verdict::Allow);
    assert_eq!(verdict(rules, "[ \"$x\" = y ]"), Verdict::Allow);
}

#[test]
fn a_path_with_an_unknown_piece_may_be_a_denied_one() {
    assert_stopped(&[
        "cat ./$(echo ../x)",
        "dd if=$HOME/.ssh/id_rsa",
        "dd if=/home/dev/.ssh/*",
        "tool -d@$HOME/.ssh/id_rsa",
        "tool -d/home/dev/.ssh/id*",
        "cat .*/home/dev/.ssh/id_rsa",
        "cat /home//dev/.ssh/id*",
        "cat /home/./dev/.ssh/id*",
        "cat src/$x",
        "tool a=b=.env",
        "cat ./.en?",
    ]);
    assert_allowed(&["cat *.rs", "cat ./src/*.rs", "dd if=src/a.rs"]);
}

#[test]
fn what_a_runner_runs_stays_unknown_or_denied() {
    let many = format!("sudo {} rm x", "-n ".repeat(80));
    assert_stopped(&[
        "sudo bash -c 'f(){ rm -rf x; }; f'",
        "sudo sh -c 'echo x > /etc/passwd'",
        "sudo sh -c 'cat < .env'",
        "sudo /bin/sh -c 'rm${IFS}-rf${IFS}x'",
        "sudo 'rm${IFS}x'",
        "sudo $x y",
        "sudo find . -delete",
        "sudo -n -n -n -n -n -n -n -n -n -n -n -n -n -n -n -n -n -n rm x",
        &many,
    ]);
    assert_allowed(&["sudo ls -la", "sudo sh -c 'ls'"]);
}

#[test]
fn an_option_takes_a_value_only_as_the_program_reads_it() {
    assert_stopped(&[
        "ls | xargs --replace rm x",
        "ls | xargs --max-lines rm x",
        "ls | xargs -I= rm x",
        "timeout --signal= 5 rm x",
        "bash --rcfile x -c ls",
        "bash --init-file x -c ls",
        "bash -oc vi 'rm x'",
        "bash +O extglob -c 'rm x'",
        "bash -O extglob -c ls",
        "bash -ic ls",
        "find $x",
        "find . $x",
        "find src/$x",
        "find *",
    ]);
    assert_allowed(&["bash -euo pipefail -c ls", "bash -lc ls", "bash -ec ls", "sh -xc ls", "find . -name x"]);
}

#[test]
fn a_host_is_found_however_it_is_written() {
    assert_stopped(&[
        "curl HTTP://evil.com",
        "curl ftp://evil.com/x",
        "curl https://user:pw@evil.com/",
        "curl https://a.com,https://evil.com",
        "curl --url=https://a.com/https://evil.com",
        "curl localhost:80",
        "curl localhost",
        "curl -xevil.com:80 https://a.com",
        "curl 'http://{evil.com,a.com}'",
        "curl http://evil.com/?q=1",
        "cat < /dev/tcp/evil.com/80",
        "exec 3<>/dev/tcp/evil.com/80",
        "curl 2852039166",
        "curl http://0xa9fea9fe/",
        "curl 'http://[::ffff:a9fe:a9fe]/'",
        "git clone git@evil.com:x",
    ]);
    assert_allowed(&["curl https://a.com", "git fetch origin", "head -n 50 x", "curl 'http://a.com/?q=1'"]);
    for url in ["http://2852039166/", "http://0251.0376.0251.0376/", "http://[::ffff:169.254.169.254]/"] {
        let decision = policy(OPEN).judge(&request(RequestAction::Fetch { url: url.to_owned() }));
        assert_eq!(decision.verdict, Verdict::Deny, "{url}: {decision}");
    }
    let rules = "[[rules]]\nallow = \"shell\"\n[[rules]]\ndeny = \"fetch\"\nhost = \"*\"\n";
    assert_eq!(verdict(rules, "git status"), Verdict::Allow);
    assert_eq!(verdict(rules, "curl localhost:80"), Verdict::Ask);
}

#[test]
fn a_command_or_file_with_very_many_words_or_patterns_is_not_read_to_the_end() {
    let rules = "[[rules]]\nallow = \"shell\"\n[[rules]]\ndeny = \"shell\"\ncommand = \"rm *\"\n";
    assert_eq!(verdict(rules, &format!("ls{}", " a".repeat(5_000))), Verdict::Ask);
    assert_eq!(verdict(rules, &format!("rm{}", " a".repeat(5_000))), Verdict::Deny);
    let paths: String = (0..4_000).map(|at| format!(" a{at}=b{at}")).collect();
    assert_eq!(verdict(rules, &format!("ls{paths}")), Verdict::Ask);
    let patterns = vec!["\"ls\""; 1_000].join(",");
    let text = format!("[[rules]]\nallow = \"shell\"\ncommand = [{patterns}]\n").repeat(5);
    let error = grove_policy::RuleSet::parse_repository(&text, "p").unwrap_err();
    assert!(error.problem.contains("4000 patterns"), "{error}");
}

#[test]
fn a_path_through_a_process_may_be_any_path() {
    assert_stopped(&[
        "cat /proc/self/root/home/dev/.ssh/id_rsa",
        "cat /proc/1/cwd/.env",
        "cat /proc/*/root/etc/passwd",
        "cd /proc/self && cat root/etc/passwd",
        "cat ../../proc/self/fd/3",
        "echo x > /dev/fd/3",
    ]);
    assert_allowed(&["cat /proc/cpuinfo"]);
    let read = RequestAction::Read { paths: vec!["/proc/self/root/etc/passwd".into()] };
    assert_eq!(policy(OPEN).judge(&request(read)).verdict, Verdict::Ask);
}

#[test]
fn an_option_that_runs_or_writes_must_be_named_by_the_pattern() {
    let programs = ["git", "tar", "rsync", "sort", "rg", "fd", "scp", "ssh"];
    let patterns: Vec<String> = programs.iter().map(|program| format!("\"{program} *\"")).collect();
    let rules = format!("[[rules]]\nallow = \"shell\"\ncommand = [{}]\n", patterns.join(","));
    for command in [
        "git -c core.pager=x log",
        "git -C a -c core.pager=x log",
        "git --config-env=core.pager=X log",
        "git --exec-path=/x log",
        "git grep -O./x y",
        "git diff --output=x",
        "git diff --outp=x",
        "git log --ext-diff",
        "git bisect run ./x",
        "tar xf a --to-command=./x",
        "tar -I ./x -xf a",
        "tar xIf ./x a",
        "tar cf a b --checkpoint-action=exec=./x",
        "rsync -e ./x a b",
        "rsync -ave ./x a b",
        "sort --compress-program=./x a",
        "sort -o x a",
        "rg --pre ./x y",
        "rg --pre=./x y",
        "fd -x ./x",
        "fd -X ./x",
        "scp -S ./x a b:c",
        "ssh -o ProxyCommand=./x a",
    ] {
        assert_eq!(verdict(&rules, command), Verdict::Ask, "{command}");
    }
    for command in ["git switch -c x", "git log --oneline", "tar -xf a", "rsync -a a b", "sort -u a", "rg x", "fd x"] {
        assert_eq!(verdict(&rules, command), Verdict::Allow, "{command}");
    }
    let named = "[[rules]]\nallow = \"shell\"\ncommand = [\"git -c color.ui=* log *\", \"sort -o *\"]\n";
    assert_eq!(verdict(named, "git -c color.ui=never log -3"), Verdict::Allow);
    assert_eq!(verdict(named, "sort -o x a"), Verdict::Allow);
}

#[test]
fn more_programs_that_run_others_are_opened() {
    assert_stopped(&[
        "taskset -c 0 rm x",
        "chrt -f 1 rm x",
        "valgrind rm x",
        "uv run rm x",
        "docker run alpine rm x",
        "docker exec a sh -c 'rm x'",
        "podman run a rm x",
        "fd y -x rm",
        "fd y --exec rm",
        "noglob rm x",
    ]);
    assert_allowed(&["fd rm", "docker ps", "uv pip list"]);
}
