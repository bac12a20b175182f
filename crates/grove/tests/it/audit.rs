//! `grove audit`, on files as a host writes them.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::support::TestHome;

fn record(operation: &str) -> String {
    format!(
        "{{\"time\":1700000000000,\"token\":\"host\",\"address\":\"here\",\"action\":\"change\",\"operation\":\"{operation}\",\
         \"outcome\":\"done\"}}\n"
    )
}

#[test]
fn the_followed_log_goes_on_in_json_lines_when_its_file_is_rotated() {
    let place = TestHome::new();
    let newest = place.write("data/audit/audit.jsonl", record("first"));
    let mut command = place.grove(&["audit", "--follow", "--json", "--data-dir"]);
    let mut child = command.arg(place.data()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut operation = || {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["time"], "2023-11-14T22:13:20.000Z");
        line["operation"].as_str().unwrap().to_owned()
    };
    assert_eq!(operation(), "first");
    std::fs::rename(&newest, newest.with_file_name("audit.1.jsonl")).unwrap();
    place.write("data/audit/audit.jsonl", record("second"));
    assert_eq!(operation(), "second");
    child.kill().unwrap();
    child.wait().unwrap();
}
