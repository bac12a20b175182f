//! `grove agents install` and `uninstall`, with the real installers and servers on loopback.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use grove_agents::catalog::platform;
use grove_testkit::acp::{BEHAVIOR_VARIABLE, agent_program, prompt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha512};

use crate::file_server::FileServer;
use crate::support::*;

/// Writes a catalog with one agent, `tested`, into the data folder.
pub(crate) fn catalog(place: &TestHome, package: &str) {
    let text = format!(
        "format = 1\ndate = \"2099-01-01\"\n[[agents]]\nid = \"tested\"\nname = \"Tested\"\ndescription = \"for tests\"\n\
         commands = [\"tested-agent\"]\npass-env = [\"{BEHAVIOR_VARIABLE}\"]\nlog-in = \"nothing to do\"\n{package}\n"
    );
    let file = place.write("catalog.toml", text);
    let ran = place.run(&["agents", "update", file.to_str().unwrap(), "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// A shell script that is the test agent.
fn agent_script() -> String {
    format!("#!/bin/sh\nexec {} \"$@\"\n", agent_program().display())
}

/// Runs a command with the environment of installers.
fn run(place: &TestHome, args: &[&str], environment: &[(&str, String)]) -> CommandResult {
    let mut command = place.grove(args);
    command.env("PATH", std::env::var("PATH").unwrap_or_default()).env("GROVE_DATA_DIR", place.data());
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    CommandResult::from(command.output().unwrap())
}

fn show(place: &TestHome) -> Value {
    let ran = run(place, &["agents", "show", "tested", "--json"], &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// A program of the machine; a test that needs it is skipped without it.
#[allow(clippy::print_stderr)]
fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = grove_agents::catalog::look_up(name, &path);
    if found.is_none() {
        eprintln!("skipped: {name} is missing");
        assert!(std::env::var_os("CI").is_none(), "{name} is missing");
    }
    found
}

/// A `.tar.gz` of a folder.
pub(crate) fn archive(place: &TestHome, folder: &Path, name: &str) -> Vec<u8> {
    let file = place.path("archive.tar.gz");
    let made = Command::new("tar").arg("-czf").arg(&file).arg("-C").arg(folder).arg(name).status().unwrap();
    assert!(made.success());
    fs::read(file).unwrap()
}

fn executable(place: &TestHome, name: &str, text: &str) -> PathBuf {
    let path = place.write(name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

pub(crate) fn binary(url: &str, sha256: &str) -> String {
    format!(
        "[agents.package]\nkind = \"binary\"\nversion = \"1.2.3\"\n[agents.package.targets.{}]\nurl = \"{url}\"\n\
         sha256 = \"{sha256}\"\nprogram = \"agent/bin/tested-agent\"\n",
        platform()
    )
}

#[test]
fn a_downloaded_agent_is_checked_tried_used_and_removed() {
    let place = TestHome::new();
    executable(&place, "made/agent/bin/tested-agent", &agent_script());
    let content = archive(&place, &place.path("made"), "agent");
    let server = FileServer::start([("agent.tar.gz", content.clone())]);
    let (url, sha256) = (server.url("agent.tar.gz"), hex::encode(Sha256::digest(&content)));

    catalog(&place, &binary(&url, &"0".repeat(64)));
    let refused = run(&place, &["agents", "install", "tested", "--yes"], &[]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("is not the expected file") && refused.stderr.contains(&sha256),
        "{}",
        refused.stderr
    );
    assert!(!place.data().join("programs/tested").exists(), "nothing is left");

    catalog(&place, &binary(&url, &sha256));
    let dry = run(&place, &["agents", "install", "tested", "--dry-run"], &[]);
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    assert!(dry.stderr.contains(&url) && dry.stderr.contains("tar --extract"), "{}", dry.stderr);
    let asked = run(&place, &["agents", "install", "tested"], &[]);
    assert!(asked.code == Some(1) && asked.stderr.contains("--yes"), "{}", asked.stderr);
    assert_eq!(show(&place)["status"], "missing");
    assert_eq!(show(&place)["install"], "grove agents install tested");

    // Another one in PATH, which the installed one takes precedence of.
    let other = executable(&place, "bin/tested-agent", "#!/bin/sh\nexit 1\n");
    let path = [("PATH", format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap()))];
    let installed = run(&place, &["agents", "install", "tested", "--yes", "--json"], &path);
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let installed: Value = serde_json::from_str(&installed.stdout).unwrap();
    assert_eq!((&installed["installed"], &installed["version"]), (&json!("tested"), &json!("1.2.3")));
    let shown = run(&place, &["agents", "show", "tested", "--json"], &path);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&shown["installedBy"], &shown["version"]), (&json!("grove"), &json!("1.2.3")));
    assert_ne!(shown["command"][0], other.to_str().unwrap());
    assert_eq!(shown["command"][0], installed["program"]);

    let again = run(&place, &["agents", "install", "tested", "--yes"], &[]);
    assert!(again.code == Some(1) && again.stderr.contains("--force"), "{}", again.stderr);
    let again = run(&place, &["agents", "install", "tested", "--yes", "--force"], &[]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let versions = fs::read_dir(place.data().join("programs/tested")).unwrap().flatten();
    assert_eq!(versions.filter(|entry| entry.path().is_dir()).count(), 1, "the replaced one is removed");

    let host = Background(place.clone());
    let said = prompt(&json!([{"say": "hello from the installed one"}]));
    let ran = run(&place, &["run", "--agent", "tested", &said], &[]);
    assert!(ran.stdout.contains("hello from the installed one"), "{ran:?}");
    run(&place, &["stop"], &[]);
    drop(host);

    let removed = run(&place, &["agents", "uninstall", "tested", "--yes", "--json"], &[]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert_eq!(show(&place)["status"], "missing");
    assert!(!place.data().join("programs/tested").exists());
    let gone = run(&place, &["agents", "uninstall", "tested", "--yes"], &[]);
    assert_eq!(gone.code, Some(8), "{}", gone.stderr);
}

#[test]
fn a_program_that_does_not_speak_the_protocol_is_not_kept() {
    let place = TestHome::new();
    executable(&place, "made/agent/bin/tested-agent", "#!/bin/sh\necho no agent here >&2\nexit 3\n");
    let content = archive(&place, &place.path("made"), "agent");
    let server = FileServer::start([("agent.tar.gz", content.clone())]);
    catalog(&place, &binary(&server.url("agent.tar.gz"), &hex::encode(Sha256::digest(&content))));
    let ran = run(&place, &["agents", "install", "tested", "--yes"], &[]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("does not speak") && ran.stderr.contains("no agent here"), "{}", ran.stderr);
    assert!(!place.data().join("programs/tested").exists());
    assert_eq!(show(&place)["status"], "missing");
}

#[test]
fn npm_installs_an_agent_for_real() {
    if found("npm").is_none() {
        return;
    }
    let place = TestHome::new();
    executable(&place, "made/package/agent.sh", &agent_script());
    let manifest = json!({"name": "tested-package", "version": "4.5.6", "bin": {"tested-agent": "agent.sh"}});
    place.write("made/package/package.json", manifest.to_string());
    let tarball = archive(&place, &place.path("made"), "package");
    let server = FileServer::start_with(|address| {
        let mut described = manifest.clone();
        described["dist"] = json!({"tarball": format!("{address}/tested.tgz"), "integrity": integrity(&tarball)});
        let packument = json!({
            "name": "tested-package", "dist-tags": {"latest": "4.5.6"}, "versions": {"4.5.6": described},
        });
        [("tested-package", packument.to_string().into_bytes()), ("tested.tgz", tarball)]
    });
    let environment =
        [("npm_config_registry", server.url("")), ("npm_config_cache", place.path("cache").display().to_string())];
    catalog(&place, r#"package = { kind = "npm", name = "tested-package", version = "4.5.6", node = "999" }"#);
    let refused = run(&place, &["agents", "install", "tested", "--yes"], &environment);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("needs Node.js 999 or newer"), "{}", refused.stderr);

    catalog(&place, r#"package = { kind = "npm", name = "tested-package", version = "4.5.6", node = "12" }"#);
    let installed = run(&place, &["agents", "install", "tested", "--yes"], &environment);
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    assert!(installed.stderr.contains("npm install --prefix"), "{}", installed.stderr);
    assert!(installed.stdout.contains("installed tested 4.5.6"), "{}", installed.stdout);
    let shown = show(&place);
    assert_eq!((&shown["version"], &shown["outdated"]), (&json!("4.5.6"), &json!(false)));

    catalog(&place, r#"package = { kind = "npm", name = "tested-package", version = "4.6.0" }"#);
    assert_eq!(show(&place)["outdated"], true);
    let failed = run(&place, &["agents", "install", "tested", "--yes"], &environment);
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.contains("npm install") && failed.stderr.contains("failed"), "{}", failed.stderr);
    assert_eq!(show(&place)["version"], "4.5.6", "the earlier one stays");
}

/// A checksum as npm writes it.
fn integrity(content: &[u8]) -> String {
    use base64::Engine as _;
    format!("sha512-{}", base64::engine::general_purpose::STANDARD.encode(Sha512::digest(content)))
}

#[test]
fn pip_installs_an_agent_for_real() {
    let Some(python) = found("python3") else { return };
    let place = TestHome::new();
    // A wheel is a zip file with a script among its data.
    let make = format!(
        "import zipfile\nz = zipfile.ZipFile('tested-7.8.9-py3-none-any.whl', 'w')\nd = 'tested-7.8.9.dist-info/'\n\
         script = zipfile.ZipInfo('tested-7.8.9.data/scripts/tested-agent')\nscript.external_attr = 0o100755 << 16\n\
         z.writestr(script, {:?})\n\
         z.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: tested\\nVersion: 7.8.9\\n')\n\
         z.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
         z.writestr(d + 'RECORD', '')\nz.close()\n",
        agent_script()
    );
    let made = Command::new(&python).arg("-c").arg(make).current_dir(place.path("")).status().unwrap();
    assert!(made.success());
    let wheel = fs::read(place.path("tested-7.8.9-py3-none-any.whl")).unwrap();
    let server = FileServer::start_with(|address| {
        let page = format!("<a href=\"{address}/tested-7.8.9-py3-none-any.whl\">tested-7.8.9-py3-none-any.whl</a>");
        [("simple/tested", page.into_bytes()), ("tested-7.8.9-py3-none-any.whl", wheel)]
    });
    let index = server.url("simple");
    let environment = [("PIP_INDEX_URL", index.clone()), ("UV_INDEX_URL", index), ("PIP_NO_CACHE_DIR", "1".to_owned())];
    catalog(&place, r#"package = { kind = "pypi", name = "tested", version = "7.8.9", python = "3.8" }"#);
    let installed = run(&place, &["agents", "install", "tested", "--yes"], &environment);
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let shown = show(&place);
    assert_eq!((&shown["version"], &shown["installedBy"]), (&json!("7.8.9"), &json!("grove")));
    let program = shown["command"][0].as_str().unwrap().to_owned();
    assert!(program.ends_with("/bin/tested-agent"), "{program}");
}

#[test]
fn an_agent_that_cannot_be_installed_here_says_what_to_do_instead() {
    let place = TestHome::new();
    for (agent, words) in [("cursor", "https://cursor.com/docs/cli/acp"), ("nothing", "`grove agents ls`")] {
        let ran = run(&place, &["agents", "install", agent, "--yes"], &[]);
        assert_eq!(ran.code, Some(8), "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "no {words:?} in {}", ran.stderr);
    }
    catalog(&place, r#"package = { kind = "crate", name = "tested", version = "1.0" }"#);
    let later = run(&place, &["agents", "install", "tested", "--yes"], &[]);
    assert!(later.code == Some(8) && later.stderr.contains("update Grove"), "{}", later.stderr);
    assert!(!place.data().join("programs/tested").exists());
}
