//! Output that is too large for an agent: from its command to the file that replaces it, and the file's life.

use std::path::Path;

use grove_testkit::acp::AgentBehavior;

use super::*;

const MEBIBYTE: usize = 1 << 20;

/// Lets the agent run a command that prints a mebibyte; returns the file with the whole output.
async fn spilled(client: &mut Client, chat: &str, turn: &str) -> PathBuf {
    let create = json!({"command": "sh", "args": ["-c", "seq -w 1 200000 | head -c 1048576"]});
    let told = said(client, chat, turn, json!([{"terminal": {"create": create}}, "complaints"])).await;
    assert!(told.contains(&format!("exit 0: The output is too large to show ({MEBIBYTE} bytes).")), "{told}");
    assert!(told.contains("It begins:\n000001\n000002\n") && told.contains("complaints: none"), "{told}");
    let (_, rest) = told.split_once("All of it is in ").unwrap();
    PathBuf::from(rest.split_once(';').unwrap().0)
}

fn must_be_whole(file: &Path) {
    let numbers: String = (1..=200_000).map(|number| format!("{number:06}\n")).collect();
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(kept == numbers[..MEBIBYTE], "{} bytes", kept.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_of_a_large_output_is_in_a_file_until_the_host_ends() {
    let mut stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let file = spilled(&mut client, &chat, "t").await;
    must_be_whole(&file);
    let read = said(&mut client, &chat, "u", json!([{"read": {"path": file, "line": 149_000, "limit": 1}}])).await;
    assert!(read.contains("149000"), "an agent may read what it was told of: {read}");
    stage.restart();
    assert!(!file.exists() && !file.parent().unwrap().parent().unwrap().exists());

    // A killed host leaves it to the next one.
    let (mut client, chat) = (stage.host().ahp_connect("b").await, chat);
    client.initialize(&[&chat]).await;
    let file = spilled(&mut client, &chat, "v").await;
    stage.kill_and_restart();
    assert!(!file.exists() && !file.parent().unwrap().parent().unwrap().exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporary_files_stay_where_the_environment_says_so() {
    let mut stage = Stage::new(AgentBehavior::default());
    stage.host.take().unwrap().stop();
    let mut command = stage.place.serve_command(&[]);
    command.env("PATH", "/usr/bin:/bin").env("GROVE_KEEP_TEMP_FILES", "true");
    stage.host = Some(stage.place.start(command));
    let (mut client, chat) = stage.begin().await;
    let file = spilled(&mut client, &chat, "t").await;
    stage.restart();
    stage.kill_and_restart();
    must_be_whole(&file);
    std::fs::remove_dir_all(file.parent().unwrap().parent().unwrap()).unwrap();
}
