//! The golden pairs again: the operations of the real programs, done with Grove's functions.
//!
//! Not run, since they are about ways of writing files that Grove does not have: 49 (bodies in files of their own), 50
//! and 51 (two writers: Grove has one). Of 40 and 46 everything is compared except the time of the write to disk.

use std::collections::HashMap;
use std::path::Path;

use grove_core::Timestamp;
use grove_tree::entries::{self, Compaction, CustomMessage, Stamp, SummaryOrigin};
use grove_tree::tree_edit::{self, NewEntry, TreeEdit};
use grove_tree::{Children, Ending, Log, NewHeader, Owner, branch_log, open};
use serde_json::{Value, json};

use crate::golden::{cases, compare, dump, read_json, rules};
use crate::support::ids_from;

const CASES: [&str; 11] = [
    "13-torn-last-line",
    "14-torn-complete-json-no-newline",
    "16-empty-file",
    "17-header-only",
    "40-write-deferred",
    "41-write-tree",
    "42-write-root",
    "43-write-errors",
    "44-branched-session",
    "46-branched-before-assistant",
    "47-in-memory",
];

/// Cases with a known bug of a program, so that only the other one is compared: case, program.
const NOT_SANE: &[(&str, &str)] = &[
    // oh-my-pi appends to the incomplete last line, and loses the entry.
    ("14-torn-complete-json-no-newline", "omp"),
    // oh-my-pi makes children of a label roots, so that everything before is lost.
    ("44-branched-session", "omp"),
];

/// The session manager of those programs, built on Grove's functions.
struct Manager {
    log: Log,
    ids: Box<dyn FnMut() -> String>,
    marks: usize,
    /// The time of each of the program's entries.
    times: HashMap<String, Timestamp>,
    program: String,
}

impl Manager {
    fn append(&mut self, line: &[u8]) {
        let mut index = self.log.index().clone();
        index.append(line).unwrap();
        let bytes = [self.log.bytes(), line, b"\n"].concat();
        self.log = open(bytes, &mut || unreachable!()).unwrap();
        assert_eq!(self.log.index().leaf(), index.leaf());
        assert!(self.log.index().damage().iter().all(|damage| index.damage().contains(damage)));
    }

    fn next(&mut self) -> (String, Timestamp) {
        let id = (self.ids)();
        let at = self.times.get(&id).copied().unwrap_or(Timestamp(1_767_323_045_000));
        (id, at)
    }

    fn leaf(&self) -> Option<String> {
        self.log.index().leaf().map(|leaf| self.log.index().id(leaf).into_owned())
    }

    /// Appends an entry at the leaf.
    fn entry(&mut self, line: impl FnOnce(Stamp<'_>) -> Vec<u8>) -> Result<Value, String> {
        let (id, at) = self.next();
        let parent = self.leaf();
        self.append(&line(Stamp { id: &id, parent: parent.as_deref(), at }));
        Ok(json!(id))
    }

    /// Moves the leaf, or appends the planned line; a failure uses no id.
    fn plan(&mut self, make: impl FnOnce(&Log, NewEntry<'_>) -> Result<TreeEdit, String>) -> Result<Value, String> {
        let before = self.log.bytes().to_vec();
        let (id, at) = self.next();
        let plan = match make(&self.log, NewEntry { id: &id, at }) {
            Ok(plan) => plan,
            Err(error) => {
                assert_eq!(self.log.bytes(), before, "what is refused changes nothing");
                let mut first = Some(id);
                let mut rest = std::mem::replace(&mut self.ids, Box::new(String::new));
                self.ids = Box::new(move || first.take().unwrap_or_else(&mut rest));
                return Err(error);
            }
        };
        self.append(&plan.line.unwrap());
        assert_eq!(self.leaf(), plan.leaf);
        Ok(json!(id))
    }

    /// Moves the leaf alone. The programs write nothing; the mark's id is not theirs.
    fn put(&mut self, make: impl FnOnce(&Log, NewEntry<'_>) -> Result<TreeEdit, String>) -> Result<Value, String> {
        self.marks += 1;
        let id = format!("mark-{}", self.marks);
        let plan = make(&self.log, NewEntry { id: &id, at: Timestamp(0) })?;
        if let Some(line) = plan.line {
            self.append(&line);
        }
        assert_eq!(self.leaf(), plan.leaf, "the leaf is where it was set, also after reading the log again");
        Ok(Value::Null)
    }

    fn run(&mut self, op: &str, args: &[Value], new_header: &Value) -> Result<Value, String> {
        let text = |at: usize| args[at].as_str().unwrap();
        match op {
            "appendMessage" => self.entry(|stamp| {
                let mut entry: Value = serde_json::from_slice(&entries::session_info(stamp, "")).unwrap();
                entry.as_object_mut().unwrap().remove("name");
                entry["type"] = json!("message");
                entry["message"] = args[0].clone();
                entry.to_string().into_bytes()
            }),
            "appendCustomEntry" => self.entry(|stamp| {
                let mut entry: Value = serde_json::from_slice(&entries::session_info(stamp, "")).unwrap();
                entry.as_object_mut().unwrap().remove("name");
                entry["type"] = json!("custom");
                entry["customType"] = args[0].clone();
                entry["data"] = args[1].clone();
                entry.to_string().into_bytes()
            }),
            "appendModelChange" => self.entry(|stamp| entries::model_change(stamp, text(0), text(1))),
            "appendThinkingLevelChange" => self.entry(|stamp| entries::thinking_level_change(stamp, text(0))),
            "appendSessionInfo" => self.entry(|stamp| entries::session_info(stamp, text(0))),
            "appendCustomMessageEntry" => self.entry(|stamp| {
                let message = CustomMessage {
                    custom_type: text(0),
                    content: &args[1],
                    display: args[2].as_bool().unwrap(),
                    details: args.get(3),
                };
                entries::custom_message(stamp, &message)
            }),
            "appendCompaction" => self.plan(|log, new| {
                let compaction = Compaction {
                    summary: text(0),
                    first_kept: Some(text(1)),
                    tokens_before: args[2].as_u64().unwrap(),
                    details: args.get(3),
                    origin: SummaryOrigin::Host,
                };
                tree_edit::compact(log.index(), &compaction, new).map_err(|error| error.to_string())
            }),
            "appendLabelChange" => self.plan(|log, new| {
                let label = args.get(1).and_then(Value::as_str);
                tree_edit::label(log.index(), text(0), label, new).map_err(|error| error.to_string())
            }),
            "branchWithSummary" => self.plan(|log, new| {
                let details = args.get(2);
                tree_edit::branch_with_summary(
                    log.index(),
                    args[0].as_str(),
                    text(1),
                    details,
                    SummaryOrigin::Host,
                    new,
                )
                .map_err(|error| error.to_string())
            }),
            "branch" => self.put(|log, new| tree_edit::branch(log.index(), text(0), new).map_err(|e| e.to_string())),
            "resetLeaf" => self.put(|log, new| Ok(tree_edit::reset_leaf(log.index(), new))),
            "createBranchedSession" => {
                let header = NewHeader {
                    id: new_header["id"].as_str().unwrap(),
                    at: time_of(new_header).unwrap(),
                    cwd: new_header["cwd"].as_str().unwrap(),
                    parent_session: new_header["parentSession"].as_str(),
                    title: None,
                };
                let index = self.log.index();
                let new = branch_log(index, &self.log, text(0), &header, &mut self.ids).map_err(|e| e.to_string())?;
                let mut bytes = Vec::new();
                new.write(index, &self.log, |part| {
                    bytes.extend_from_slice(part);
                    Ok(())
                })
                .unwrap();
                let log = open(bytes, &mut || unreachable!()).unwrap();
                assert!(log.index().damage().is_empty(), "{:?}", log.index().damage());
                assert_eq!(log.index().len(), new.entries);
                self.log = log;
                assert_eq!(self.leaf(), new.leaf);
                Ok(Value::Null)
            }
            "getBranch" | "getChildren" => {
                let index = self.log.index();
                let children = Children::in_file_order(index);
                let found = index.find(text(0)).map(|entry| match op {
                    "getBranch" => index.branch(entry),
                    _ => children.of(entry).to_vec(),
                });
                let ids: Vec<_> = found.unwrap_or_default().iter().map(|entry| index.id(*entry).into_owned()).collect();
                Ok(json!(ids))
            }
            "ctx" => Ok(serde_json::to_value(self.log.context(rules(&self.program), self.log.index().leaf())).unwrap()),
            other => panic!("an operation that is not known: {other}"),
        }
    }
}

/// The lines of the files that a program wrote, the oldest file first.
fn files(folder: &Path) -> Vec<Vec<Value>> {
    let Ok(folder) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let lines = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    paths.iter().map(lines).collect()
}

fn time_of(line: &Value) -> Option<Timestamp> {
    let time: jiff::Timestamp = line["timestamp"].as_str()?.parse().ok()?;
    Some(Timestamp(time.as_millisecond() as u64))
}

fn header_of(lines: &[Value]) -> Option<&Value> {
    lines.iter().find(|line| line["type"] == "session")
}

/// A log that can be appended to, made like the host does from an existing file.
fn repaired(bytes: Vec<u8>, header: Option<&Value>) -> Log {
    let log = open(bytes.clone(), &mut || unreachable!()).unwrap();
    let mut bytes = match log.index().ending() {
        Ending::Whole => bytes,
        Ending::NoNewline => [bytes, b"\n".to_vec()].concat(),
        Ending::Torn { offset } => bytes[..offset as usize].to_vec(),
    };
    if log.index().header().is_none() {
        bytes.extend(format!("{}\n", header.unwrap()).bytes());
    }
    open(bytes, &mut || unreachable!()).unwrap()
}

#[test]
fn every_golden_operation_does_what_its_program_does() {
    let mut compared = 0;
    for (case, folder) in cases().into_iter().filter(|(case, _)| CASES.contains(&case.as_str())) {
        for program in ["pi15", "omp"] {
            if !NOT_SANE.contains(&(&case, program)) {
                compared += check(&case, program, &folder);
            }
        }
    }
    assert!(compared > 100, "only {compared} parts of golden operations were compared");
}

fn check(case: &str, program: &str, folder: &Path) -> usize {
    let golden = read_json(&folder.join(format!("{program}.json")));
    let files = files(&folder.join(format!("{program}.files")));
    let after = &golden["afterOps"];
    let header = files.first().and_then(|lines| header_of(lines)).or(Some(&after["header"]));
    let times = files.iter().flatten().filter_map(|line| Some((line["id"].as_str()?.to_owned(), time_of(line)?)));
    let times = times.collect();
    let log = match std::fs::read(folder.join("input.jsonl")) {
        Ok(bytes) => repaired(bytes, header),
        Err(_) => repaired(Vec::new(), header),
    };
    let first = golden["ops"].as_array().unwrap().iter().find_map(|op| op["returns"].as_str());
    let first = u32::from_str_radix(first.unwrap().trim_start_matches('e'), 16).unwrap();
    let program_name = program.to_owned();
    let mut manager = Manager { log, ids: Box::new(ids_from(first)), marks: 0, times, program: program_name };
    let mut compared = 0;
    for op in golden["ops"].as_array().unwrap() {
        let name = op["op"].as_str().unwrap();
        if name == "probe" {
            let index = manager.log.index();
            let entries = index.entries().filter(|entry| index.owner(*entry) == Owner::Tree).count();
            assert_eq!(json!(manager.leaf()), op["state"]["leafId"], "{case} {program}");
            assert_eq!(json!(entries), op["state"]["entries"], "{case} {program}");
            compared += 2;
            continue;
        }
        let done = manager.run(name, op["args"].as_array().unwrap(), &after["header"]);
        match (&op["throws"], &op["returns"]) {
            (Value::String(_), _) => {
                let error = done.unwrap_err();
                assert!(error.contains("no entry nope"), "{case} {program} {name}: {error}");
            }
            (_, Value::String(id)) if name != "createBranchedSession" => {
                assert_eq!(done.as_ref(), Ok(&json!(id)), "{case} {program} {name}");
            }
            (_, _) => {
                let done = done.unwrap_or_else(|error| panic!("{case} {program} {name}: {error}"));
                if let Some(result) = op.get("result") {
                    assert_eq!(done, *result, "{case} {program} {name}");
                }
                if op.get("context").is_some() {
                    assert_eq!(done["messages"], op["context"]["messages"], "{case} {program}");
                    assert_eq!(done["thinkingLevel"], op["context"]["thinkingLevel"], "{case} {program}");
                }
            }
        }
        compared += 1;
    }
    let reopened = open(manager.log.bytes().to_vec(), &mut || unreachable!()).unwrap();
    assert_eq!(dump(&reopened, program), dump(&manager.log, program), "{case}: nothing is lost by closing");
    compared + compare(case, program, &manager.log, after, &|part| format!("ops {part}"))
}
