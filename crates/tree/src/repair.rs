//! A repaired copy of a damaged log.

use std::collections::{HashMap, HashSet};

use crate::damage::DamageKind;
use crate::index::{EntryNo, Owner, Parent};
use crate::log::Log;
use crate::object::{JsonObject, quoted};

/// Renders a log without its damage: unreadable lines are left out, the last of several entries with one id stays, and
/// entries whose parent is missing, or that are their own ancestors, become roots. The tree and every branch stay the
/// same (in a cycle the first entry of the file becomes the root). Undamaged lines stay unchanged.
pub fn repair(log: &Log) -> Vec<u8> {
    let index = log.index();
    let mut to_root = HashSet::new();
    for entry in index.entries() {
        let record = index.record(entry);
        let lost = match record.parent {
            Parent::None => false,
            Parent::Invalid => true,
            Parent::Id(id) => index.parent(entry).is_none() && (id == record.id || index.parsed.entry_of(id).is_none()),
        };
        if lost {
            to_root.insert(entry);
        }
    }
    open_cycles(log, &mut to_root);
    let relinked = relinked(log);
    // If a leaf mark names a missing entry, the last entry is the leaf: later marks repeat that.
    let leaf_is_unknown = index.damage().iter().any(|one| one.kind == DamageKind::UnknownLeaf);
    let last = index.entries().rev().find(|entry| index.owner(*entry) == Owner::Tree);
    let is_bad_mark = |entry: EntryNo| leaf_is_unknown && Some(entry) > last && index.record(entry).is_leaf_mark;
    let leaf_id =
        index.leaf().map_or_else(|| b"null".to_vec(), |leaf| quoted(index.parsed.ids.get(index.record(leaf).id)));

    let mut out = Vec::with_capacity(log.bytes().len());
    if let Some(header) = index.header() {
        for line in header.slot.iter().chain([&header.line]) {
            push_line(&mut out, line);
        }
    }
    for entry in index.entries() {
        if index.canonical(entry) != entry {
            continue;
        }
        let text = String::from_utf8_lossy(log.line(entry));
        let (to_root, bad_mark) = (to_root.contains(&entry), is_bad_mark(entry));
        let relinked = relinked.get(&entry).filter(|_| !to_root);
        match (to_root || bad_mark || relinked.is_some()).then(|| JsonObject::parse(text.as_bytes())).flatten() {
            None => push_line(&mut out, text.as_bytes()),
            Some(mut object) => {
                if to_root {
                    object.set("parentId", "null");
                }
                if let Some(parent) = relinked {
                    let id = parent.map(|parent| quoted(index.parsed.ids.get(index.record(parent).id)));
                    object.set("parentId", id.unwrap_or_else(|| b"null".to_vec()));
                }
                if bad_mark {
                    object.set("data", [br#"{"leafId":"#.as_slice(), &leaf_id, b"}"].concat());
                }
                push_line(&mut out, &object.render());
            }
        }
    }
    out
}

/// Entries whose parent differs from the one that they name, since that id is used twice.
fn relinked(log: &Log) -> HashMap<EntryNo, Option<EntryNo>> {
    let index = log.index();
    let named = |entry: EntryNo| match index.record(entry).parent {
        Parent::Id(id) => index.parsed.entry_of(id).filter(|parent| index.owner(*parent) == Owner::Tree),
        Parent::None | Parent::Invalid => None,
    };
    let is_relinked = |entry: &EntryNo| named(*entry).is_some_and(|named| Some(named) != index.parent(*entry));
    index.entries().filter(is_relinked).map(|entry| (entry, index.parent(entry))).collect()
}

/// Makes the first entry of each cycle a root.
fn open_cycles(log: &Log, to_root: &mut HashSet<EntryNo>) {
    let index = log.index();
    let mut seen = HashSet::new();
    for entry in index.entries().filter(|entry| index.links.is_cyclic(*entry)) {
        if seen.contains(&entry) {
            continue;
        }
        seen.extend(index.links.ancestors(entry));
        to_root.insert(entry);
    }
    // A chain of Grove's own entries may be a cycle outside the tree.
    for entry in index.entries().filter(|entry| index.owner(*entry) == Owner::Grove) {
        if index.parent(entry).is_none() && !matches!(index.record(entry).parent, Parent::None) {
            to_root.insert(entry);
        }
    }
}

fn push_line(out: &mut Vec<u8>, line: &[u8]) {
    out.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
    out.push(b'\n');
}

/// The name of a repaired copy.
pub fn repaired_name(name: &str) -> String {
    format!("{}.repaired.jsonl", name.strip_suffix(".jsonl").unwrap_or(name))
}
