//! The version of a program.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use grove_work::{Process, Program};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// The time limit for `--version`.
const PATIENCE: Duration = Duration::from_secs(5);
/// The bytes of its output that are searched.
const SAID_BYTES: u64 = 16 << 10;
/// The largest `package.json` that is read.
const PACKAGE_BYTES: u64 = 1 << 20;
/// The number of folders above a program that are searched for its `package.json`.
const PACKAGE_DEPTH: usize = 5;
/// The characters that are shown of a line without a recognizable number.
const LINE_CHARS: usize = 40;

/// The version of a program: from its `package.json`, else from `--version`. `None` if neither answers within 5
/// seconds: some agents do not know the option.
pub async fn version(program: &Path, package: Option<&str>) -> Option<String> {
    if let Some(version) = package.and_then(|package| of_package(program, package)) {
        return Some(version);
    }
    timeout(PATIENCE, ask(program)).await.ok().flatten()
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

/// Reading a file is a thousand times quicker than starting an interpreter, and some programs that come in a package
/// do not support `--version`.
fn of_package(program: &Path, package: &str) -> Option<String> {
    let program = program.canonicalize().ok()?;
    program.ancestors().skip(1).take(PACKAGE_DEPTH).find_map(|folder| {
        let mut text = String::new();
        File::open(folder.join("package.json")).ok()?.take(PACKAGE_BYTES).read_to_string(&mut text).ok()?;
        let described: Package = serde_json::from_str(&text).ok()?;
        (described.name == package).then_some(described.version)
    })
}

async fn ask(program: &Path) -> Option<String> {
    // The root folder has no project settings that could change the answer.
    let program = Program::new(program.to_str()?, "/").args(["--version"]);
    let mut process = Process::start(&program).ok()?;
    // An agent that does not know the option finds its stdin closed, and ends.
    drop(process.stdin.take());
    let stdout = read(process.stdout.take());
    let stderr = read(process.stderr.take());
    let (stdout, stderr) = tokio::join!(stdout, stderr);
    let exit = process.wait().await;
    if !exit.success() {
        return None;
    }
    number_in(&stdout).or_else(|| number_in(&stderr))
}

async fn read(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // Output from before a failure is as good as any.
        pipe.take(SAID_BYTES).read_to_end(&mut bytes).await.ok();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The version in a program's output: the number in the first line that has one, else that line.
fn number_in(output: &str) -> Option<String> {
    let line = output.lines().map(str::trim).find(|line| line.contains(|c: char| c.is_ascii_digit()))?;
    let words = line.split(|c: char| c.is_whitespace() || matches!(c, '/' | '@' | ',' | '(' | ')'));
    let numbers = words.filter_map(|word| {
        let word = word.trim_start_matches('v').trim_end_matches('.');
        (word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')).then_some(word)
    });
    let shown = numbers.clone().next().unwrap_or(line);
    Some(shown.chars().filter(|c| !c.is_control()).take(LINE_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    /// A program for the test. Another process writes it: a file that is open for writing in a process that is just
    /// being started elsewhere cannot be run.
    fn script(folder: &Path, text: &str) -> PathBuf {
        let (draft, path) = (folder.join("draft"), folder.join("agent"));
        fs::write(&draft, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Command::new("cp").arg(&draft).arg(&path).status().unwrap().success());
        path
    }

    #[test]
    fn the_number_is_found_in_what_programs_say() {
        for (output, number) in [
            ("1.18.33\n", Some("1.18.33")),
            (" goose 1.8.0\n", Some("1.8.0")),
            ("Welcome!\nGitHub Copilot CLI 1.0.102.\nRun 2 things", Some("1.0.102")),
            ("omp/18.2.3 linux-x64", Some("18.2.3")),
            ("agent v0.1-beta\n", Some("0.1-beta")),
            ("build 7", Some("build 7")),
            ("nothing", None),
            ("", None),
        ] {
            assert_eq!(number_in(output).as_deref(), number, "{output:?}");
        }
        assert_eq!(number_in(&format!("1.{}", "0".repeat(999))).map(|number| number.len()), Some(LINE_CHARS));
    }

    #[tokio::test]
    async fn a_program_is_asked_and_one_that_fails_has_no_version() {
        let folder = tempfile::tempdir().unwrap();
        let agent = script(folder.path(), r#"[ "$1" = --version ] && echo "agent 3.4.5""#);
        assert_eq!(version(&agent, None).await.as_deref(), Some("3.4.5"));
        let fails = script(folder.path(), "echo 1.2.3; exit 2");
        assert_eq!(version(&fails, None).await, None);
        assert_eq!(version(Path::new("/nowhere/agent"), None).await, None);
    }

    #[tokio::test]
    async fn an_agent_that_waits_to_be_talked_to_finds_its_stdin_closed() {
        let folder = tempfile::tempdir().unwrap();
        let waits = script(folder.path(), "while read line; do :; done; echo hello >&2");
        assert_eq!(version(&waits, None).await, None);
    }

    #[tokio::test]
    async fn a_program_that_never_answers_is_ended_after_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let marker = folder.path().join("pid");
        let hangs = script(folder.path(), &format!("echo $$ > {}; exec sleep 600", marker.display()));
        let since = Instant::now();
        assert_eq!(version(&hangs, None).await, None);
        assert!(since.elapsed() < PATIENCE * 3, "{:?}", since.elapsed());
        let pid = fs::read_to_string(marker).unwrap();
        let gone = || !Path::new("/proc").join(pid.trim()).join("cwd").exists();
        let deadline = Instant::now() + PATIENCE;
        while !gone() {
            assert!(Instant::now() < deadline, "process {pid} is still there");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn the_version_of_a_package_is_read_without_running_anything() {
        let place = tempfile::tempdir().unwrap();
        let package = place.path().join("lib/node_modules/@x/agent");
        fs::create_dir_all(package.join("dist")).unwrap();
        fs::write(package.join("package.json"), r#"{"name":"@x/agent","version":"9.8.7","bin":{}}"#).unwrap();
        let program = script(&package.join("dist"), "exit 1");
        let link = place.path().join("x-agent");
        symlink(&program, &link).unwrap();
        assert_eq!(version(&link, Some("@x/agent")).await.as_deref(), Some("9.8.7"));
        assert_eq!(version(&link, Some("@x/other")).await, None, "another package's number says nothing");
    }
}
