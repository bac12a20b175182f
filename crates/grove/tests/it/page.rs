//! The web page: its address, its token, and opening it.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

use crate::support::*;

fn get(host: &Host, path: &str, headers: &[&str]) -> HttpAnswer {
    let mut head = format!("GET {path} HTTP/1.1\r\nHost: {}", host.address);
    headers.iter().for_each(|header| head.push_str(&format!("\r\n{header}")));
    host.http(&head)
}

#[test]
fn the_page_needs_no_token_and_other_paths_are_404() {
    let host = Host::start();
    let page = get(&host, "/", &[]);
    assert_eq!(page.status, 200);
    // The program may have been built without the page, and says so then.
    if page.header("content-type") == Some("text/plain; charset=utf-8") {
        assert!(page.body.contains("The page was not built") && page.body.contains("make web"), "{}", page.body);
    } else {
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        let script = page.body.split('"').find(|path| path.contains("assets/") && path.ends_with(".js")).unwrap();
        let script = get(&host, &format!("/{}", script.trim_start_matches("./").trim_start_matches('/')), &[]);
        assert_eq!(script.status, 200);
        assert!(script.header("cache-control").unwrap().contains("immutable"));
    }
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("connect-src 'self'"), "{policy}");
    assert!(!page.body.contains(&host.token));
    let tag = format!("If-None-Match: {}", page.header("etag").unwrap());
    assert_eq!(get(&host, "/", &[&tag]).status, 304);

    for path in ["/none-such", "/assets", "/assets/none.js", "/../Cargo.toml", "/assets/..%2f..%2fCargo.toml"] {
        assert_eq!(get(&host, path, &[]).status, 404, "{path}");
    }
    assert_eq!(get(&host, "/", &["Origin: http://evil.example"]).status, 403);
    assert_eq!(host.http("GET / HTTP/1.1\r\nHost: evil.example").status, 403);
}

/// Runs a command on a new terminal, until it has printed something.
fn on_a_terminal(place: &TestHome, args: &[&str], until: &str) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let screen = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut command = place.grove(args);
    command.arg("--data-dir").arg(place.data()).stdout(screen).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut terminal, mut said) = (File::from(terminal), String::new());
    let mut buffer = [0; 1 << 12];
    while !said.contains(until) {
        // Reading a terminal without processes ends with an error.
        let Ok(count @ 1..) = terminal.read(&mut buffer) else { break };
        said.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    child.kill().ok();
    child.wait().unwrap();
    said
}

#[test]
fn a_person_at_a_terminal_is_shown_the_page_with_a_code_and_never_the_token() {
    let place = TestHome::new();
    let said = on_a_terminal(&place, &["serve"], "Ctrl-C");
    let token = std::fs::read_to_string(place.data().join("token")).unwrap();
    assert!(said.contains("/#code=gc") && said.contains("good once"), "{said}");
    assert!(!said.contains(&token), "{said}");

    let host = place.serve(&[]);
    let page = format!("http://{}/", host.address);
    for args in [&["status"][..], &["start"]] {
        let said = on_a_terminal(&place, args, "grove open");
        assert!(said.contains(&page) && !said.contains(&token), "{said}");
        let ran = place.run(args);
        assert!(ran.stdout.contains(&page) && !ran.stdout.contains(&token), "{}", ran.stdout);
    }
}

#[test]
fn serve_with_json_gives_the_page_with_a_code_and_not_with_the_token() {
    let place = TestHome::new();
    let mut child = place.serve_command(&[]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let text = |key: &str| said[key].as_str().unwrap();
    assert!(text("page").starts_with(&format!("{}/#code=gc", text("http"))), "{said}");
    assert!(!text("page").contains(text("token")), "{said}");
}

/// Puts a program of this name and text into a folder, and returns the folder.
fn fake_program(place: &TestHome, name: &str, script: &str) -> String {
    let path = place.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", path.parent().unwrap().display())
}

#[test]
fn open_opens_the_page_in_the_browser_and_prints_it_where_there_is_none() {
    let host = Host::start();
    let place = &host.place;
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let open = |script: &str, args: &[&str], display: &str| {
        std::fs::remove_file(place.path("opened")).ok();
        let path = fake_program(place, opener, script);
        let mut command = place.grove(&["open"]);
        command.args(args).arg("--data-dir").arg(place.data()).env("PATH", path).env("DISPLAY", display);
        let ran = CommandResult::from(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!format!("{ran:?}").contains(&host.token), "{ran:?}");
        (ran.stdout, std::fs::read_to_string(place.path("opened")).unwrap_or_default())
    };
    let is_page = |text: &str| {
        let code = text.trim_end().strip_prefix(&format!("http://{}/#code=gc", host.address));
        code.is_some_and(|code| code.len() == 80 && code.bytes().all(|letter| letter.is_ascii_hexdigit()))
    };
    let works = format!("echo \"$@\" > {}", place.path("opened").display());
    let (said, opened) = open(&works, &[], ":0");
    assert!(is_page(&opened), "{opened}");
    assert!(said.contains(&host.address) && !said.contains("#code="), "{said}");
    let (printed, opened) = open(&works, &["--print"], ":0");
    assert!(is_page(&printed) && opened.is_empty(), "{printed}");
    assert!(is_page(&open("exit 3", &[], ":0").0));
    if !cfg!(target_os = "macos") {
        let (printed, opened) = open(&works, &[], "");
        assert!(is_page(&printed) && opened.is_empty(), "no screen, no browser");
    }
}

#[test]
fn a_qr_code_needs_a_listener_that_a_phone_reaches_and_says_how_to_start_one() {
    let host = Host::start();
    let ran = host.place.run(&["open", "--qr"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("grove serve --listen") && ran.stderr.contains("--tls-cert"), "{}", ran.stderr);
}

#[test]
fn open_starts_a_host_where_there_is_none() {
    let background = Background(TestHome::new());
    let ran = background.0.run(&["open", "--print"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let status = background.0.run(&["status", "--json"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert!(ran.stdout.starts_with(&format!("{}/#code=gc", status["http"].as_str().unwrap())), "{ran:?}");
}
