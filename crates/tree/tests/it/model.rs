//! Random trees against the simplest model, and trees of a million levels.

use std::collections::{BTreeMap, HashMap};

use grove_core::Timestamp;
use grove_tree::entries::{Compaction, SummaryOrigin};
use grove_tree::navigate::{NavigateOptions, Navigation, prepare};
use grove_tree::tree_edit::{self, NewEntry, TreeEdit};
use grove_tree::{Context, Log, NewHeader, Outline, RowFilter, RowsRequest, Rules, branch_log, open, rows};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{branch, damage, ids_from, leaf, log_of, opened, own};

/// An operation on a tree. Numbers choose among the existing entries.
#[derive(Clone, Debug)]
enum Step {
    Say,
    Branch(usize),
    Reset,
    Label(usize, Option<u8>),
    Summarize(Option<usize>),
    Compact(usize),
    Own,
}

fn any_step() -> impl Strategy<Value = Step> {
    let some = || any::<usize>();
    prop_oneof![
        8 => Just(Step::Say),
        3 => some().prop_map(Step::Branch),
        1 => Just(Step::Reset),
        3 => (some(), proptest::option::of(0u8..3)).prop_map(|(at, label)| Step::Label(at, label)),
        1 => proptest::option::of(some()).prop_map(Step::Summarize),
        1 => some().prop_map(Step::Compact),
        2 => Just(Step::Own),
    ]
}

/// The simplest model of a tree.
#[derive(Clone, Debug, Default)]
struct Tree {
    /// In file order: id and parent.
    entries: Vec<(String, Option<String>)>,
    kinds: HashMap<String, &'static str>,
    anchors: HashMap<String, String>,
    labels: BTreeMap<String, String>,
    /// In the order in which they were first labelled.
    labelled: Vec<String>,
    leaf: Option<String>,
}

impl Tree {
    fn add(&mut self, id: &str, parent: Option<String>, kind: &'static str) {
        self.entries.push((id.to_owned(), parent));
        self.kinds.insert(id.to_owned(), kind);
        self.leaf = Some(id.to_owned());
    }

    fn parent(&self, id: &str) -> Option<String> {
        self.entries.iter().find(|(known, _)| known == id).and_then(|(_, parent)| parent.clone())
    }

    fn branch(&self, id: Option<&str>) -> Vec<String> {
        let mut path = Vec::new();
        let mut next = id.map(str::to_owned);
        while let Some(id) = next {
            next = self.parent(&id);
            path.insert(0, id);
        }
        path
    }

    fn children(&self, id: Option<&str>) -> Vec<String> {
        let is_child = |(_, parent): &&(String, Option<String>)| parent.as_deref() == id;
        self.entries.iter().filter(is_child).map(|(id, _)| id.clone()).collect()
    }

    /// Ids of all entries with their depth, the active branch first.
    fn rows(&self, id: Option<&str>, depth: u32, out: &mut Vec<(String, u32)>) {
        let active = self.branch(self.leaf.as_deref());
        let mut children = self.children(id);
        children.sort_by_key(|child| !active.contains(child));
        for child in children {
            out.push((child.clone(), depth));
            self.rows(Some(&child), depth + 1, out);
        }
    }

    /// The source entries of a context.
    fn context(&self) -> Vec<String> {
        let path = self.branch(self.leaf.as_deref());
        let speaks = |id: &String| matches!(self.kinds[id], "message" | "branch_summary");
        match path.iter().rposition(|id| self.kinds[id] == "compaction") {
            None => path.into_iter().filter(speaks).collect(),
            Some(at) => {
                let from = path[..at].iter().position(|id| *id == self.anchors[&path[at]]).unwrap_or(at);
                let kept = path[from..at].iter().chain(&path[at + 1..]).filter(|id| speaks(id)).cloned();
                [path[at].clone()].into_iter().chain(kept).collect()
            }
        }
    }
}

/// The model and the real log.
struct Pair {
    tree: Tree,
    index: grove_tree::LogIndex,
    bytes: Vec<u8>,
    count: u64,
}

impl Pair {
    fn new() -> Self {
        let bytes = log_of(&[]).into_bytes();
        Self { tree: Tree::default(), index: opened(&bytes).index().clone(), bytes, count: 0 }
    }

    fn append(&mut self, line: &[u8]) {
        self.index.append(line).unwrap();
        self.bytes.extend_from_slice(line);
        self.bytes.push(b'\n');
    }

    fn plan(&mut self, plan: TreeEdit) {
        if let Some(line) = &plan.line {
            self.append(line);
        }
        assert_eq!(leaf(&self.index), plan.leaf);
    }

    fn step(&mut self, step: &Step) {
        self.count += 1;
        let id = format!("i{}", self.count);
        let at = Timestamp(self.count * 1_000);
        let new = NewEntry { id: &id, at };
        let choose =
            |tree: &Tree, at: usize| tree.entries.get(at % tree.entries.len().max(1)).map(|(id, _)| id.clone());
        match *step {
            Step::Say => {
                let parent = self.tree.leaf.clone();
                let line = json!({
                    "type": "message", "id": id, "parentId": parent, "timestamp": self.count * 1_000,
                    "message": {"role": "user", "content": id},
                });
                self.append(line.to_string().as_bytes());
                self.tree.add(&id, parent, "message");
            }
            Step::Branch(at) => {
                let Some(target) = choose(&self.tree, at) else { return };
                let left = self.left(&target);
                let plan = tree_edit::branch(&self.index, &target, new).unwrap();
                assert_eq!(left, self.prepared(&target));
                self.plan(plan);
                self.tree.leaf = Some(target);
            }
            Step::Reset => {
                let plan = tree_edit::reset_leaf(&self.index, new);
                self.plan(plan);
                self.tree.leaf = None;
            }
            Step::Label(at, label) => {
                let Some(target) = choose(&self.tree, at) else { return };
                let label = label.map(|label| format!("label {label}"));
                let plan = tree_edit::label(&self.index, &target, label.as_deref(), new).unwrap();
                self.plan(plan);
                let parent = self.tree.leaf.clone();
                self.tree.add(&id, parent, "label");
                match label {
                    Some(label) => {
                        if self.tree.labels.insert(target.clone(), label).is_none() {
                            self.tree.labelled.push(target);
                        }
                    }
                    None => {
                        self.tree.labels.remove(&target);
                        self.tree.labelled.retain(|known| *known != target);
                    }
                }
            }
            Step::Summarize(at) => {
                let target = at.and_then(|at| choose(&self.tree, at));
                let summary = format!("summary {id}");
                let plan = tree_edit::branch_with_summary(
                    &self.index,
                    target.as_deref(),
                    &summary,
                    None,
                    SummaryOrigin::Host,
                    new,
                );
                self.plan(plan.unwrap());
                self.tree.add(&id, target, "branch_summary");
            }
            Step::Compact(at) => {
                let path = self.tree.branch(self.tree.leaf.as_deref());
                let Some(first) = path.get(at % path.len().max(1)).cloned() else { return };
                let compaction = Compaction {
                    summary: "so far",
                    first_kept: Some(&first),
                    tokens_before: 1,
                    details: None,
                    origin: SummaryOrigin::Host,
                };
                let plan = tree_edit::compact(&self.index, &compaction, new).unwrap();
                self.plan(plan);
                let parent = self.tree.leaf.clone();
                self.tree.add(&id, parent, "compaction");
                self.tree.anchors.insert(id, first);
            }
            Step::Own => {
                let line = own(&id, self.tree.leaf.as_deref(), "grove.turnEnd", json!({"turn": id}));
                self.append(line.to_string().as_bytes());
            }
        }
    }

    /// The abandoned entries of a move, by the model.
    fn left(&self, target: &str) -> Option<Vec<String>> {
        if self.tree.leaf.as_deref() == Some(target) {
            return None;
        }
        let to = self.tree.branch(Some(target));
        let way = self.tree.branch(self.tree.leaf.as_deref());
        let left: Vec<String> = way.iter().filter(|id| !to.contains(id)).cloned().collect();
        // Labels hold everywhere: a move that leaves only labels is none, except to messages, which are returned for
        // editing.
        let is_label = |id: &String| self.tree.kinds[id] == "label";
        let stays = way.iter().any(|id| id == target) && self.tree.kinds[target] != "message";
        (!(stays && left.iter().all(is_label))).then_some(left)
    }

    fn prepared(&self, target: &str) -> Option<Vec<String>> {
        match prepare(&self.index, Some(target), NavigateOptions::default()).unwrap() {
            Navigation::AlreadyThere => None,
            Navigation::MoveTo(preparation) => {
                let left = preparation.entries_to_summarize.iter();
                Some(left.map(|entry| self.index.id(*entry).into_owned()).collect())
            }
        }
    }
}

fn context_of(log: &Log) -> Vec<String> {
    let context = log.context(Rules::Grove, log.index().leaf());
    context.messages.iter().map(|message| log.index().id(message.entry).into_owned()).collect()
}

fn check(pair: &Pair) -> Result<(), TestCaseError> {
    let Pair { tree, index, bytes, .. } = pair;
    let log = opened(bytes);
    for index in [index, log.index()] {
        prop_assert_eq!(leaf(index), tree.leaf.clone());
        prop_assert_eq!(branch(index), tree.branch(tree.leaf.as_deref()));
        let labels: BTreeMap<_, _> =
            index.labels().map(|(entry, label)| (index.id(entry).into_owned(), label.to_owned())).collect();
        prop_assert_eq!(&labels, &tree.labels);
        prop_assert_eq!(damage(index), Vec::<String>::new());
    }
    prop_assert_eq!(context_of(&log), tree.context());

    let request = RowsRequest { filter: RowFilter::All, search: "", leaf: index.leaf(), after: None, limit: 1_000 };
    let shown = rows(index, bytes.as_slice(), &request).unwrap().rows;
    let shown: Vec<_> = shown.into_iter().map(|row| (row.id, row.depth)).collect();
    let mut expected = Vec::new();
    tree.rows(None, 0, &mut expected);
    prop_assert_eq!(shown, expected);

    if let Some(at) = &tree.leaf {
        let header = NewHeader { id: "n", at: Timestamp(0), cwd: "/", parent_session: None, title: None };
        let new = branch_log(log.index(), &log, at, &header, &mut ids_from(1)).unwrap();
        let mut copied = Vec::new();
        new.write(log.index(), &log, |part| {
            copied.extend_from_slice(part);
            Ok(())
        })
        .unwrap();
        let copy = opened(copied);
        prop_assert_eq!(damage(copy.index()), Vec::<String>::new());
        let kept: Vec<String> = tree.branch(Some(at)).into_iter().filter(|id| tree.kinds[id] != "label").collect();
        let labels = tree.labelled.iter().filter(|id| kept.contains(id));
        let path = branch(copy.index());
        prop_assert_eq!(&path[..kept.len()], kept.as_slice());
        let relabelled: Vec<_> = path[kept.len()..]
            .iter()
            .map(|id| serde_json::from_slice::<serde_json::Value>(copy.line(copy.index().find(id).unwrap())).unwrap())
            .map(|line| (line["targetId"].as_str().unwrap().to_owned(), line["label"].as_str().unwrap().to_owned()))
            .collect();
        let labels: Vec<_> = labels.map(|id| (id.clone(), tree.labels[id].clone())).collect();
        prop_assert_eq!(relabelled, labels);
        prop_assert_eq!(context_of(&copy), tree.context());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_random_tree_is_what_a_simple_model_says(
        steps in proptest::collection::vec(any_step(), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut pair = Pair::new();
        for step in &steps {
            pair.step(step);
        }
        check(&pair)?;

        // Cut anywhere, it still opens, with the entries whose lines are complete.
        let cut = cut.index(pair.bytes.len() + 1);
        let log = open(pair.bytes[..cut].to_vec(), &mut || unreachable!()).unwrap();
        let ends = pair.index.entries().map(|entry| pair.index.offset(entry) as usize + pair.index.length(entry));
        prop_assert_eq!(log.index().len(), ends.filter(|end| *end <= cut).count());
        Outline::of(log.index(), RowFilter::All, log.index().leaf());
        Context::tail(log.index(), &log, Rules::Grove, log.index().leaf(), 3).unwrap();
    }
}

#[test]
fn a_million_levels_can_be_walked_shown_left_and_branched_off() {
    let count = 1_000_000;
    let mut text = log_of(&[]);
    for number in 0..count {
        let parent = if number == 0 { "null".to_owned() } else { format!("\"{}\"", number - 1) };
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        text.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"{number}\",\"parentId\":{parent},\"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"{number}\"}}]}}}}\n"
        ));
    }
    let log = opened(text);
    let index = log.index();
    let leaf = index.leaf();
    assert_eq!(index.branch(leaf.unwrap()).len(), count);

    let request = RowsRequest { filter: RowFilter::Default, search: "", leaf, after: None, limit: 10 };
    let page = rows(index, &log, &request).unwrap();
    assert_eq!((page.rows.len(), page.total), (10, count));
    let outline = Outline::of(index, RowFilter::UserOnly, leaf);
    assert_eq!(outline.len(), count / 2);
    let last = outline.render(index, &log, outline.len() - 1..outline.len()).unwrap();
    assert_eq!((last[0].id.as_str(), last[0].depth), ("999998", count as u32 / 2 - 1));

    let tail = Context::tail(index, &log, Rules::Grove, leaf, 200).unwrap();
    assert_eq!(tail.messages.len(), 200);
    let Navigation::MoveTo(preparation) = prepare(index, Some("0"), NavigateOptions::default()).unwrap() else {
        panic!()
    };
    assert_eq!(preparation.entries_to_summarize.len(), count - 1);
    let header = NewHeader { id: "n", at: Timestamp(0), cwd: "/", parent_session: None, title: None };
    let new = branch_log(index, &log, "999999", &header, &mut ids_from(1)).unwrap();
    assert_eq!((new.entries, new.pieces.len()), (count, 2));
}
