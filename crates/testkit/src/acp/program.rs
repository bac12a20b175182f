//! Finding the agent's program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

const NAME: &str = "acp-agent";
const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// The program of the scripted agent. It is beside the tests that need it; if it is missing or older than its sources,
/// as when one crate alone is tested, it is built, once for each test program.
///
/// # Panics
///
/// If it cannot be built.
pub fn agent_program() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(find).clone()
}

fn find() -> PathBuf {
    let this = std::env::current_exe().expect("a program knows where it is");
    let folder = built(&this);
    let program = folder.join(NAME);
    if is_current(&program) {
        return program;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(PACKAGE).args(["build", "--quiet", "--package", "grove-testkit", "--bin", NAME]);
    if let (Some(profile), Some(target)) = (folder.file_name(), folder.parent()) {
        // The folder of the profile `dev` has another name.
        let profile = if profile == "debug" { "dev".as_ref() } else { profile };
        command.arg("--profile").arg(profile).arg("--target-dir").arg(target);
    }
    let by_hand = "build it with `cargo build -p grove-testkit --bin acp-agent`";
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{NAME} is missing and cargo does not run ({error}): {by_hand}"));
    assert!(status.success() && program.is_file(), "{} is missing and was not built: {by_hand}", program.display());
    program
}

/// The folder with the programs of the same build: tests and examples are one level below it.
fn built(program: &Path) -> PathBuf {
    let folder = program.parent().unwrap_or(program);
    match folder.file_name().and_then(|name| name.to_str()) {
        Some("deps" | "examples") => folder.parent().unwrap_or(folder).to_owned(),
        _ => folder.to_owned(),
    }
}

/// Returns whether a program exists and none of its sources is newer.
fn is_current(program: &Path) -> bool {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified()).ok();
    let sources = newest(&Path::new(PACKAGE).join("src"), &changed);
    changed(program).is_some_and(|built| sources.is_none_or(|source| source <= built))
}

fn newest(folder: &Path, changed: &impl Fn(&Path) -> Option<SystemTime>) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    entries.filter_map(|path| if path.is_dir() { newest(&path, changed) } else { changed(&path) }).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_lie_above_tests_and_beside_programs() {
        for this in ["/t/debug/deps/it-0123", "/t/debug/examples/embed", "/t/debug/grove"] {
            assert_eq!(built(Path::new(this)), Path::new("/t/debug"), "{this}");
        }
    }
}
