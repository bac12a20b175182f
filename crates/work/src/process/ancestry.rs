//! The ancestors and descendants of a process, read from `/proc`.
//!
//! A process id is reused when its process has ended. Together with the start time it names one process for good
//! ([`ProcessKey`]), and a parent that started after its child is another process under the parent's old id.

use std::collections::{HashMap, HashSet};
use std::fs;

/// One process, for as long as the machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey {
    pub id: u32,
    /// The time of its start, in clock ticks since the machine's start.
    pub started: u64,
}

/// A line of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    pub key: ProcessKey,
    pub parent: u32,
    pub group: i32,
    pub session: i32,
    /// It has ended, and waits to be reaped.
    pub has_ended: bool,
}

impl ProcessStat {
    /// Parses a line of `/proc/PID/stat`.
    pub fn parse(line: &str) -> Option<Self> {
        let id = line.split_ascii_whitespace().next()?.parse().ok()?;
        // The program's name is in parentheses, and may contain some itself.
        let mut fields = line.get(line.rfind(')')? + 1..)?.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let (group, session) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        // Field 22; the parent is field 4, and group and session follow it.
        let started = fields.nth(15)?.parse().ok()?;
        let has_ended = matches!(state, "Z" | "X");
        Some(Self { key: ProcessKey { id, started }, parent, group, session, has_ended })
    }
}

/// The processes of this machine.
pub trait ProcessTable {
    /// A process, if it exists.
    fn stat(&self, id: u32) -> Option<ProcessStat>;
}

/// The processes in `/proc`. Without that folder there are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcFolder;

impl ProcFolder {
    /// Every process.
    pub fn all(self) -> impl Iterator<Item = ProcessStat> {
        let folder = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = folder.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter_map(move |id| self.stat(id))
    }

    /// The key of a process, if it exists.
    pub fn key(self, id: u32) -> Option<ProcessKey> {
        self.stat(id).map(|stat| stat.key)
    }
}

impl ProcessTable for ProcFolder {
    fn stat(&self, id: u32) -> Option<ProcessStat> {
        ProcessStat::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }
}

/// The most generations that are followed.
const MAX_GENERATIONS: usize = 4_096;
/// The number of times that a parent is looked up that ends meanwhile.
const RETRIES: usize = 8;

/// The result of following the parents of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ancestry {
    /// It is one of the sought processes, or descends from it.
    Below(ProcessKey),
    /// It descends from none of them.
    Outside,
    /// The process has ended, or its parents could not be followed.
    Unknown,
}

/// Follows the parents of a process up to one of the sought processes.
pub fn ancestry(table: &impl ProcessTable, id: u32, sought: &HashSet<ProcessKey>) -> Ancestry {
    let Some(mut process) = table.stat(id) else { return Ancestry::Unknown };
    for _ in 0..MAX_GENERATIONS {
        if sought.contains(&process.key) {
            return Ancestry::Below(process.key);
        }
        if process.parent == 0 || process.key.id == 1 {
            return Ancestry::Outside;
        }
        match parent(table, process.key) {
            Some(found) => process = found,
            None => return Ancestry::Unknown,
        }
    }
    Ancestry::Unknown
}

/// The parent of a process. A parent that ends meanwhile is looked up again: the process has another one then.
fn parent(table: &impl ProcessTable, child: ProcessKey) -> Option<ProcessStat> {
    for _ in 0..RETRIES {
        let now = table.stat(child.id).filter(|now| now.key == child)?;
        if let Some(found) = table.stat(now.parent).filter(|found| found.key.started <= child.started) {
            return Some(found);
        }
    }
    None
}

/// The sought processes and everything that descends from them, by one look at all processes.
pub fn descendants(all: &[ProcessStat], sought: &HashSet<ProcessKey>) -> HashMap<ProcessKey, ProcessKey> {
    let mut children: HashMap<u32, Vec<ProcessKey>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process.key);
    }
    let mut below = HashMap::new();
    let mut next: Vec<(ProcessKey, ProcessKey)> =
        all.iter().filter(|process| sought.contains(&process.key)).map(|process| (process.key, process.key)).collect();
    while let Some((process, ancestor)) = next.pop() {
        // A nearer one of the sought processes counts.
        let ancestor = if sought.contains(&process) { process } else { ancestor };
        if below.insert(process, ancestor).is_some_and(|before| before == ancestor) {
            continue;
        }
        next.extend(children.get(&process.id).into_iter().flatten().map(|child| (*child, ancestor)));
    }
    below
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn stat(id: u32, parent: u32, started: u64) -> ProcessStat {
        ProcessStat { key: ProcessKey { id, started }, parent, group: 0, session: 0, has_ended: false }
    }

    struct Table(Vec<ProcessStat>);

    impl ProcessTable for Table {
        fn stat(&self, id: u32) -> Option<ProcessStat> {
            self.0.iter().find(|process| process.key.id == id).copied()
        }
    }

    fn sought(keys: &[(u32, u64)]) -> HashSet<ProcessKey> {
        keys.iter().map(|(id, started)| ProcessKey { id: *id, started: *started }).collect()
    }

    #[test]
    fn a_name_with_brackets_does_not_hide_a_process() {
        let line = "12 (a) S 1 (b) R 1 34 56 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 2";
        let found = ProcessStat::parse(line).unwrap();
        assert_eq!(found, ProcessStat { group: 34, session: 56, ..stat(12, 1, 98_765) });
        assert!(ProcessStat::parse(&line.replace(" R ", " Z ")).unwrap().has_ended);
        assert_eq!(ProcessStat::parse(""), None);
        assert_eq!(ProcessStat::parse("12 (a) S 1 34"), None);
        let own = ProcFolder.stat(std::process::id()).unwrap();
        assert!(own.key.id == std::process::id() && own.key.started > 0 && !own.has_ended);
    }

    #[test]
    fn a_process_is_below_its_nearest_sought_ancestor() {
        let table = Table(vec![stat(1, 0, 0), stat(5, 1, 10), stat(6, 5, 20), stat(7, 6, 30), stat(8, 1, 30)]);
        let shim = sought(&[(5, 10), (6, 20)]);
        assert_eq!(ancestry(&table, 7, &shim), Ancestry::Below(ProcessKey { id: 6, started: 20 }));
        assert_eq!(ancestry(&table, 5, &shim), Ancestry::Below(ProcessKey { id: 5, started: 10 }));
        assert_eq!(ancestry(&table, 8, &shim), Ancestry::Outside);
        assert_eq!(ancestry(&table, 99, &shim), Ancestry::Unknown, "it has ended");
        let below = descendants(&table.0, &shim);
        assert_eq!(below.len(), 3);
        assert_eq!(below[&ProcessKey { id: 7, started: 30 }].id, 6);
    }

    #[test]
    fn an_id_that_was_reused_is_another_process() {
        // The shim 5 has ended, and another process has its id.
        let table = Table(vec![stat(1, 0, 0), stat(5, 1, 40), stat(7, 5, 30)]);
        let shim = sought(&[(5, 10)]);
        assert_eq!(ancestry(&table, 5, &shim), Ancestry::Outside);
        assert_eq!(ancestry(&table, 7, &shim), Ancestry::Unknown, "its parent cannot be younger than itself");
    }

    #[test]
    fn a_parent_that_ends_meanwhile_is_replaced_by_the_one_that_adopts_the_child() {
        struct Ending(Cell<usize>);
        impl ProcessTable for Ending {
            fn stat(&self, id: u32) -> Option<ProcessStat> {
                let looks = self.0.get();
                self.0.set(looks + 1);
                match id {
                    1 => Some(stat(1, 0, 0)),
                    5 => Some(stat(5, 1, 10)),
                    // Its parent 6 ends after the second look, and the shim adopts it.
                    7 if looks < 2 => Some(stat(7, 6, 30)),
                    7 => Some(stat(7, 5, 30)),
                    _ => None,
                }
            }
        }
        assert_eq!(
            ancestry(&Ending(Cell::new(0)), 7, &sought(&[(5, 10)])),
            Ancestry::Below(ProcessKey { id: 5, started: 10 })
        );
    }

    #[test]
    fn a_circle_of_parents_ends_the_search() {
        let table = Table(vec![stat(2, 3, 5), stat(3, 2, 5)]);
        assert_eq!(ancestry(&table, 2, &sought(&[(9, 9)])), Ancestry::Unknown);
        assert_eq!(descendants(&table.0, &sought(&[(2, 5)])).len(), 2);
    }
}
