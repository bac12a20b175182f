//! The golden pairs: files, and the results of the real programs.
//!
//! The inputs are ours, the results come from the programs (`tests/cases/README.md`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use grove_fixtures::outside;
use grove_tree::{Children, EntryNo, Log, LogError, LogIndex, Owner, Rules, open};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::support::ids_from;

/// Cases that Grove deliberately reads differently: case, program, the part of the result, the reason.
const DIFFERENCES: &[(&str, &str, &str, &str)] = &[
    ("15-malformed-middle", "pi15", "order", SCALARS),
    ("15-malformed-middle", "pi15", "tree", SCALARS),
    ("15-malformed-middle", "pi15", "children", SCALARS),
    ("15-malformed-middle", "omp", "order", SCALARS),
    ("15-malformed-middle", "omp", "tree", SCALARS),
    ("15-malformed-middle", "omp", "children", SCALARS),
    ("15b-null-line", "omp", "open", "oh-my-pi cannot open a file with such a line; pi 1.5 skips it, as Grove does"),
    ("16-empty-file", "pi15", "header", EMPTY),
    ("16-empty-file", "omp", "header", EMPTY),
    ("19-header-late", "omp", "order", SECOND_HEADER),
    ("19-header-late", "omp", "tree", SECOND_HEADER),
    ("19-header-late", "omp", "branches", SECOND_HEADER),
    ("19-header-late", "omp", "contextAt", SECOND_HEADER),
    ("21-self-parent", "pi15", "branch", "pi never ends here"),
    ("21-self-parent", "pi15", "context", "pi never ends here"),
    ("22-cycle", "pi15", "branch", "pi never ends here"),
    ("22-cycle", "pi15", "context", "pi never ends here"),
    ("25-v1-malformed-line-shifts-index", "pi15", "migrated", "Grove takes a line that it cannot read over as it is"),
    ("27-future-version", "pi15", "open", NEWER),
    ("27-future-version", "omp", "open", NEWER),
    ("14-torn-complete-json-no-newline", "omp", "reopened", GLUED),
    (
        "41-write-tree",
        "omp",
        "ops header",
        "a name is an entry (session_info), as pi has it, and no line before the header",
    ),
    ("42-write-root", "pi15", "ops context", LEFT_FROM),
    ("49-image-blob", "omp", "reopened context", "oh-my-pi puts bodies in files of its own, which are not at hand"),
];

const SCALARS: &str = "the seed: every entry has an id and a parentId, so a number or a text is no entry";
const EMPTY: &str = "reading changes nothing, so an empty file has no header yet";
const SECOND_HEADER: &str = "the seed: the header is no entry; pi 1.5 agrees";
const GLUED: &str = "its program glued two lines together: oh-my-pi reads the first of them, pi 1.5 and Grove neither";
const LEFT_FROM: &str = "the seed: fromId is what was gone to; pi 1.5 writes what was left";
const NEWER: &str = "a version that Grove does not know is refused by name";

fn differs(case: &str, program: &str, part: &str) -> bool {
    DIFFERENCES.iter().any(|(a, b, c, _)| (*a, *b, *c) == (case, program, part))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/pi")
}

pub(crate) fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub(crate) fn rules(program: &str) -> Rules {
    if program == "omp" { Rules::Omp } else { Rules::Pi }
}

pub(crate) fn cases() -> Vec<(String, PathBuf)> {
    let mut cases: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.join("case.json").is_file());
    cases.sort();
    cases.into_iter().map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path)).collect()
}

#[test]
fn every_golden_file_is_read_as_its_program_reads_it() {
    let mut compared = 0;
    for (case, folder) in cases() {
        for program in ["pi15", "omp"] {
            let golden = read_json(&folder.join(format!("{program}.json")));
            let input = folder.join("input.jsonl");
            if input.is_file() {
                let bytes = std::fs::read(input).unwrap();
                compared += check_input(&case, program, &bytes, &golden);
            }
            compared += check_produced(&case, program, &folder.join(format!("{program}.files")), &golden);
        }
    }
    assert!(compared > 400, "only {compared} parts of golden results were compared");
}

#[test]
fn every_difference_is_of_a_case_that_exists() {
    let names: Vec<String> = cases().into_iter().map(|(name, _)| name).collect();
    for (case, ..) in DIFFERENCES {
        assert!(names.iter().any(|name| name == case), "{case}");
    }
}

/// Checks a case's input.
fn check_input(case: &str, program: &str, bytes: &[u8], golden: &Value) -> usize {
    let opened = open(bytes.to_vec(), &mut ids_from(1));
    if let Some(stages) = golden.get("stages") {
        return check_stages(case, program, &opened.unwrap(), stages);
    }
    let throws = golden["open"].get("throws").is_some();
    if differs(case, program, "open") {
        assert_eq!(throws, opened.is_ok(), "{case} {program}: the listed difference is none");
        return 1;
    }
    let log = match opened {
        Ok(log) => log,
        Err(error) => {
            assert!(throws, "{case} {program}: {error}");
            assert!(matches!(error, LogError::NoHeader { .. } | LogError::NothingReadable), "{case}: {error}");
            return 1;
        }
    };
    assert!(!throws, "{case} {program} opens");
    let mut compared = compare(case, program, &log, &golden["afterOpen"], &|part| part.to_owned());
    // pi writes a migrated file at once.
    if let (Some(_), Some(text)) = (log.migrated_from(), golden["fileAfterOpen"].as_str().filter(|_| program == "pi15"))
    {
        let same = String::from_utf8_lossy(log.bytes()) == text;
        assert_ne!(same, differs(case, program, "migrated"), "{case}: {}", String::from_utf8_lossy(log.bytes()));
        compared += 1;
    }
    compared
}

/// Checks the files that a case's program wrote.
fn check_produced(case: &str, program: &str, folder: &Path, golden: &Value) -> usize {
    let mut compared = 0;
    for (name, dump) in golden["reopened"].as_object().into_iter().flatten() {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        if differs(case, program, "reopened") {
            continue;
        }
        let log = open(bytes, &mut ids_from(1)).unwrap_or_else(|error| panic!("{case} {program} {name}: {error}"));
        compared += compare(case, program, &log, dump, &|part| format!("reopened {part}"));
    }
    compared
}

/// Compares each part of a dump. Parts that are listed as different must be.
pub(crate) fn compare(
    case: &str,
    program: &str,
    log: &Log,
    golden: &Value,
    part_name: &dyn Fn(&str) -> String,
) -> usize {
    let ours = dump(log, program);
    let mut compared = 0;
    for (part, ours) in ours.as_object().unwrap() {
        let (mut ours, mut golden) = (ours.clone(), golden[part].clone());
        normalize(part, &mut golden);
        normalize_header(part, &mut ours);
        shorten(&mut ours);
        normalize_header(part, &mut golden);
        let same = ours == golden;
        let listed = differs(case, program, &part_name(part));
        assert!(
            same != listed,
            "{case} {program} {part} {}\nours:   {ours}\ngolden: {golden}",
            if listed { "is listed as different and is not" } else { "differs" }
        );
        compared += 1;
    }
    compared
}

fn check_stages(case: &str, program: &str, log: &Log, stages: &Value) -> usize {
    let ours = dump(log, program);
    assert_eq!(json!({"leafId": ours["leafId"], "order": ours["order"]}), stages["open"], "{case}");
    assert_eq!(without_types(&ours["tree"]), stages["tree"], "{case} {program}");
    let mut compared = 2;
    for part in ["branch", "context"] {
        if differs(case, program, part) {
            assert_eq!(stages[part]["failed"], true);
            continue;
        }
        let mut golden = stages[part].clone();
        normalize(part, &mut golden);
        assert_eq!(ours[part], golden, "{case} {program} {part}");
        compared += 1;
    }
    compared
}

/// A dump of a log, in the form of the golden pairs.
pub(crate) fn dump(log: &Log, program: &str) -> Value {
    let index = log.index();
    let id = |entry: EntryNo| index.id(entry).into_owned();
    let list = |entries: &[EntryNo]| entries.iter().map(|entry| id(*entry)).collect::<Vec<_>>();
    let in_file_order = Children::in_file_order(index);
    let in_tree = || index.entries().filter(|entry| index.owner(*entry) == Owner::Tree);
    let entries = || in_tree().filter(|entry| index.find(&id(*entry)) == Some(*entry));
    let children: BTreeMap<String, Vec<String>> = entries()
        .filter(|entry| !in_file_order.of(*entry).is_empty())
        .map(|entry| (id(entry), list(in_file_order.of(entry))))
        .collect();
    let ends: Vec<EntryNo> = entries().filter(|entry| in_file_order.of(*entry).is_empty()).collect();
    let branches: BTreeMap<_, _> = ends.iter().map(|end| (id(*end), list(&index.branch(*end)))).collect();
    let context = |at: Option<EntryNo>| serde_json::to_value(log.context(rules(program), at)).unwrap();
    let others = ends.iter().filter(|end| Some(**end) != index.leaf());
    let context_at: BTreeMap<_, _> = others.map(|end| (id(*end), context(Some(*end)))).collect();
    let header = index.header().map(|header| serde_json::from_slice::<Value>(&header.to_json()).unwrap());
    json!({
        "header": header,
        "leafId": index.leaf().map(id),
        "order": list(&in_tree().collect::<Vec<_>>()),
        "tree": nested(index),
        "branch": index.leaf().map(|leaf| list(&index.branch(leaf))).unwrap_or_default(),
        "children": children,
        "branches": branches,
        "labels": index.labels().map(|(entry, label)| (id(entry), label)).collect::<BTreeMap<_, _>>(),
        "context": context(index.leaf()),
        "contextAt": context_at,
    })
}

/// The tree with children inside their parents, as in dumps. Golden trees are small.
fn nested(index: &LogIndex) -> Value {
    fn node(index: &LogIndex, children: &Children, entry: EntryNo) -> Value {
        let inside: Vec<Value> = children.of(entry).iter().map(|child| node(index, children, *child)).collect();
        let mut fields = Map::new();
        fields.insert("id".into(), json!(index.id(entry)));
        fields.insert("children".into(), json!(inside));
        if let Some(label) = index.label(entry) {
            fields.insert("label".into(), json!(label));
        }
        Value::Object(fields)
    }
    let children = Children::oldest_first(index);
    json!(children.roots().iter().map(|root| node(index, &children, *root)).collect::<Vec<_>>())
}

fn without_types(tree: &Value) -> Value {
    let mut tree = tree.clone();
    strip_nodes(&mut tree);
    tree
}

/// Normalizes a part of a golden dump for the comparison.
fn normalize(part: &str, value: &mut Value) {
    match part {
        "tree" => strip_nodes(value),
        "context" => normalize_context(value),
        "contextAt" => value.as_object_mut().into_iter().flatten().for_each(|(_, value)| normalize_context(value)),
        "order" | "branch" if value.is_null() => *value = json!([]),
        _ => {}
    }
}

/// Shortens very long texts like dumps do: the beginning and the length.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > 100_000 => {
            let (count, start) = (text.chars().count(), text.chars().take(60).collect::<String>());
            *text = format!("{start}…({count} chars)");
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.iter_mut().for_each(|(_, value)| shorten(value)),
        _ => {}
    }
}

/// Removes the folder in which a program ran: files have it, dumps do not.
fn normalize_header(part: &str, value: &mut Value) {
    if let Some(parent) = value.get_mut("parentSession").filter(|_| part == "header") {
        let path = parent.as_str().unwrap();
        *parent = json!(path.rsplit('/').next());
    }
}

/// Removes a node's type and the time of its label, which are not compared.
fn strip_nodes(value: &mut Value) {
    for node in value.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        node.remove("type");
        node.remove("labelTimestamp");
        if let Some(children) = node.get_mut("children") {
            strip_nodes(children);
        }
    }
}

/// Normalizes oh-my-pi's context: it has other names for models and rules, and settings that Grove does not show.
fn normalize_context(value: &mut Value) {
    let Some(context) = value.as_object_mut() else { return };
    context.remove("configuredThinkingLevel");
    match context.remove("models") {
        Some(models) => {
            let rules = context.remove("injectedTtsrRules").unwrap_or_default();
            context.insert("model".into(), models);
            context.insert("injectedRules".into(), rules);
        }
        None => {
            context.insert("mode".into(), Value::Null);
            context.insert("injectedRules".into(), json!([]));
        }
    }
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn real_logs_of_version_1_are_migrated_as_pi_migrates_them() {
    let folder = outside("pi/60-real-v1");
    let digest = |bytes: &[u8]| hex::encode(Sha256::digest(bytes));
    let mut first_id = 1;
    for name in ["large-session", "before-compaction"] {
        let bytes = std::fs::read(folder.join(format!("{name}.input.jsonl"))).unwrap();
        let log = open(bytes, &mut ids_from(first_id)).unwrap();
        let index = log.index();
        first_id += index.len() as u32;
        let migrated = std::fs::read(folder.join(format!("{name}.pi-after-open.jsonl"))).unwrap();
        assert_eq!(digest(log.bytes()), digest(&migrated), "{name}");
        for program in ["pi15", "omp"] {
            let golden = &read_json(&folder.join(format!("{program}.json")))[name];
            let context = log.context(rules(program), index.leaf());
            let messages: Vec<&str> = context.messages.iter().map(|message| message.json.get()).collect();
            assert_eq!(index.len() as u64, golden["entries"], "{name} {program}");
            assert_eq!(index.id(index.leaf().unwrap()), golden["leafId"].as_str().unwrap());
            assert_eq!(index.branch(index.leaf().unwrap()).len() as u64, golden["branchLen"]);
            assert_eq!(serde_json::to_value(&context.model).unwrap(), golden["model"]);
            assert_eq!(context.thinking_level, golden["thinkingLevel"].as_str().unwrap());
            assert_eq!(messages.len() as u64, golden["contextMessages"], "{name} {program}");
            let sum = digest(format!("[{}]", messages.join(",")).as_bytes());
            assert_eq!(sum, golden["contextMessagesSha256"].as_str().unwrap(), "{name} {program}");
        }
    }
}
