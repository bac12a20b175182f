//! Requests that a real host made to a real storage client, made to ours. Cases of our own have the same shapes.
//!
//! The recordings are outside the repository ([`grove_fixtures`]).

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grove_fixtures::{both, outside, own};
use grove_fs::rpc::StorageCapabilities;
use grove_fs::{Conventions, LocalFs, MemoryFs, SessionFs, StorageClient};
use serde_json::{Value, json};

fn json_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn posix() -> StorageClient {
    StorageClient::new(Conventions::Posix, StorageCapabilities::default())
}

/// The recording shows the beginning of long texts, an ellipsis and their length.
fn beginning(recorded: &str) -> Option<&str> {
    let (text, length) = recorded.rsplit_once("…(")?;
    length.strip_suffix(')')?.parse::<usize>().ok()?;
    Some(text)
}

/// The texts that were appended to the log. Each is complete lines of the stored log, and begins as recorded.
fn appended(operations: &[Value], log: &str) -> Vec<String> {
    let recorded = operations.iter().filter(|operation| operation[1] == "appendFile");
    let begins: Vec<&str> =
        recorded.map(|operation| operation[3].as_str().unwrap()).map(|text| beginning(text).unwrap_or(text)).collect();
    let mut texts: Vec<String> = Vec::new();
    for line in log.split_inclusive('\n') {
        // Enough to distinguish the batches.
        let is_next = begins.get(texts.len()).is_some_and(|text| line.starts_with(text.split_at(text.len().min(90)).0));
        match texts.last_mut() {
            Some(text) if !is_next => text.push_str(line),
            _ => texts.push(line.to_owned()),
        }
    }
    assert_eq!(texts.len(), begins.len());
    texts
}

const OPERATIONS: &str = "provider-ops.jsonl";

/// The kinds of operations, each with the types of its arguments.
fn shapes(operations: &[Value]) -> BTreeSet<String> {
    let argument = |argument: &Value| match argument {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) | Value::Object(_) => "other",
    };
    let shape = |operation: &Value| {
        let [_, kind, arguments @ ..] = operation.as_array().unwrap().as_slice() else { panic!("{operation}") };
        let arguments: Vec<&str> = arguments.iter().map(argument).collect();
        format!("{} {}", kind.as_str().unwrap(), arguments.join(" "))
    };
    operations.iter().map(shape).collect()
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn our_own_case_of_a_storage_client_has_every_shape_of_the_recorded_one() {
    let shapes_in = |folder: PathBuf| shapes(&json_lines(&folder.join(OPERATIONS)));
    let (ours, theirs) = (shapes_in(own(PROVIDER)), shapes_in(outside(PROVIDER)));
    assert!(theirs.len() >= 10, "{theirs:?}");
    assert_eq!(theirs.difference(&ours).collect::<Vec<_>>(), [""; 0]);
}

const PROVIDER: &str = "copilot-cli/sessionfs-provider";

#[tokio::test]
async fn a_recorded_session_is_kept_as_the_real_provider_kept_it() {
    for folder in both(PROVIDER) {
        check_kept(&folder).await;
    }
}

async fn check_kept(fixtures: &Path) {
    let operations = json_lines(&fixtures.join(OPERATIONS));
    let session = operations[0][0].as_str().unwrap();
    let recorded = fixtures.join(session).join("state");
    let log = std::fs::read_to_string(recorded.join("events.jsonl")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let stores: [Arc<dyn SessionFs>; 2] =
        [Arc::new(MemoryFs::default()), LocalFs::new(folder.path().join("root")).without_links()];
    for store in stores {
        let storage_client = posix();
        storage_client.add(session, Arc::clone(&store));
        let mut appends = appended(&operations, &log).into_iter();
        // The expected content of each file by what was written, to compare reads with.
        let mut known: HashMap<String, String> = HashMap::new();
        for operation in &operations {
            let argument = |at: usize| operation.get(at).cloned().unwrap_or(Value::Null);
            let (kind, path) = (operation[1].as_str().unwrap(), operation[2].as_str().unwrap());
            let params = match kind {
                "readFile" | "exists" | "stat" | "readdirWithTypes" => json!({"sessionId": session, "path": path}),
                "mkdir" => json!({"sessionId": session, "path": path, "recursive": argument(3), "mode": argument(4)}),
                "rename" => json!({"sessionId": session, "src": path, "dest": argument(3)}),
                "writeFile" | "appendFile" => {
                    let text = match kind {
                        "appendFile" => appends.next().unwrap(),
                        _ => argument(3).as_str().unwrap().to_owned(),
                    };
                    assert!(beginning(&text).is_none());
                    json!({"sessionId": session, "path": path, "content": text, "mode": argument(4)})
                }
                other => panic!("{other} was never recorded before"),
            };
            let content = params["content"].as_str().map(str::to_owned);
            let answer = storage_client.answer(&format!("sessionFs.{kind}"), params).await.unwrap();
            match kind {
                "readFile" => match known.get(path) {
                    Some(text) => assert_eq!(answer, json!({"content": text}), "{path}"),
                    None => assert_eq!(
                        (&answer["content"], &answer["error"]["code"]),
                        (&json!(""), &json!("ENOENT")),
                        "{path}"
                    ),
                },
                "exists" => assert_eq!(answer, json!({"exists": known.contains_key(path)}), "{path}"),
                "stat" => match known.get(path) {
                    Some(text) => assert_eq!((&answer["isFile"], &answer["size"]), (&json!(true), &json!(text.len()))),
                    None => assert_ne!(answer["isFile"], true),
                },
                "readdirWithTypes" => assert_eq!(answer.get("error"), None, "{path}"),
                _ => assert_eq!(answer, Value::Null, "{kind} {path}"),
            }
            match kind {
                "writeFile" => drop(known.insert(path.to_owned(), content.unwrap())),
                "appendFile" => known.entry(path.to_owned()).or_default().push_str(&content.unwrap()),
                "rename" => {
                    let moved = known.remove(path).unwrap();
                    known.insert(argument(3).as_str().unwrap().to_owned(), moved);
                }
                _ => {}
            }
        }
        for path in ["events.jsonl", "workspace.yaml", "plan.md", "files/notes/x.md", "checkpoints/index.md"] {
            let kept = store.read_file(&format!("state/{path}")).await.unwrap();
            assert_eq!(kept, std::fs::read(recorded.join(path)).unwrap(), "{path}");
        }
        let checkpoints = std::fs::read_dir(recorded.join("checkpoints")).unwrap();
        let mut checkpoints: Vec<String> =
            checkpoints.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        checkpoints.sort();
        assert_eq!(checkpoints.len(), 2);
        assert_eq!(store.readdir("state/checkpoints").await.unwrap(), checkpoints);
    }
}

#[tokio::test]
async fn recorded_calls_get_the_answers_that_were_recorded() {
    for folder in both("copilot-cli") {
        check_answers(&folder).await;
    }
}

async fn check_answers(fixtures: &Path) {
    let messages = json_lines(&fixtures.join("wire-sdk-fakehost.jsonl"));
    let answers: HashMap<(u64, u64), &Value> = messages
        .iter()
        .filter(|message| message["dir"] == "C>S" && message["m"].get("method").is_none())
        .filter_map(|message| Some(((message["c"].as_u64()?, message["m"]["id"].as_u64()?), &message["m"])))
        .collect();
    let storage_client = posix();
    let mut compared = 0;
    for message in messages.iter().filter(|message| message["dir"] == "S>C") {
        let Some(method) = message["m"]["method"].as_str().filter(|method| method.starts_with("sessionFs.")) else {
            continue;
        };
        let params = message["m"]["params"].clone();
        let session = params["sessionId"].as_str().unwrap().to_owned();
        // The recorded client stored every session.
        if storage_client.answer("sessionFs.exists", json!({"sessionId": session, "path": "/"})).await.is_err() {
            storage_client.add(session, Arc::new(MemoryFs::default()));
        }
        let key = (message["c"].as_u64().unwrap(), message["m"]["id"].as_u64().unwrap());
        let mut answer = storage_client.answer(method, params).await.unwrap();
        let mut expected = answers[&key]["result"].clone();
        // Each client words its errors differently.
        for answer in [&mut answer, &mut expected] {
            if let Some(error) = answer.get_mut("error").and_then(Value::as_object_mut) {
                error.remove("message").unwrap();
            }
        }
        assert_eq!(answer, expected, "{method}");
        compared += 1;
    }
    assert!(compared > 10);
}
