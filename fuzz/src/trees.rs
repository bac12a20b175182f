//! The fuzz body of a log's tree.

use grove_core::Timestamp;
use grove_tree::conversation::{model_messages, render_transcript};
use grove_tree::navigate::{self, NavigateOptions};
use grove_tree::{
    Context, Cursor, EntryNo, Log, LogIndex, NewHeader, NewLog, RowFilter, RowsRequest, Rules, branch_log, compaction,
    fork_log, open, rows,
};

/// A first line with a cursor, a filter and search words, then any bytes as a session's log.
///
/// Rows are shown or refused, every navigation works, and a branched session is a log without damage on the same
/// branch.
pub fn tree(data: &[u8]) {
    let (asked, bytes) = data.split_at(data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len()));
    let mut count = 0;
    let mut new_id = move || {
        count += 1;
        format!("n{count:07x}")
    };
    let Ok(log) = open(bytes.strip_prefix(b"\n").unwrap_or(bytes).to_vec(), &mut new_id) else { return };
    let asked = String::from_utf8_lossy(asked);
    listed(&log, &asked);
    let index = log.index();
    for entry in index.entries().take(40) {
        gone_to(&log, entry);
    }
    for (rules, count) in [(Rules::Pi, 3), (Rules::Omp, 3), (Rules::Grove, 3), (Rules::Grove, usize::MAX)] {
        let context = Context::tail(index, &log, rules, index.leaf(), count).expect("a log in memory can be read");
        assert!(context.messages.len() <= count);
        let messages = model_messages(&context);
        assert!(render_transcript(&messages, 500).len() < 5_000);
    }
    if let Some(plan) = compaction::plan(index, &log, index.leaf(), 10).expect("a log in memory can be read") {
        assert!(index.leaf().is_some_and(|leaf| index.branch(leaf).contains(&plan.first_kept)));
    }
    if index.header().is_some() {
        branched_off(&log, &mut new_id);
    }
}

fn listed(log: &Log, asked: &str) {
    let mut words = asked.split(' ');
    let after = words.next().and_then(|cursor| cursor.parse::<Cursor>().ok());
    let filter = words.next().and_then(|filter| filter.parse().ok()).unwrap_or(RowFilter::All);
    let search = words.collect::<Vec<_>>().join(" ");
    let leaf = log.index().leaf();
    let request = RowsRequest { filter, search: &search, leaf, after, limit: 5 };
    // A cursor of another log is refused.
    if let Ok(page) = rows(log.index(), log, &request) {
        assert!(page.rows.len() <= 5 && page.rows.len() <= page.total);
    }
    let mut shown = Vec::new();
    let mut next = RowsRequest { filter: RowFilter::All, search: "", after: None, ..request };
    while shown.len() < 200 {
        let page = rows(log.index(), log, &next).expect("its own cursors are known");
        shown.extend(page.rows.iter().map(|row| row.entry));
        let Some(after) = page.next else { break };
        assert_eq!(after.to_string().parse(), Ok(after));
        next.after = Some(after);
    }
    let before = shown.len();
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown.len(), before, "no row comes twice");
}

fn gone_to(log: &Log, entry: EntryNo) {
    let index = log.index();
    let id = index.id(entry);
    if let Ok(navigate::Navigation::MoveTo(way)) = navigate::prepare(index, Some(&id), NavigateOptions::default()) {
        assert!(way.entries_to_summarize.len() <= index.len());
    }
    navigate::resolve_target(index, log, entry).expect("a log in memory can be read");
    navigate::branch_point(index, log, &id).ok();
}

fn branched_off(log: &Log, new_id: &mut dyn FnMut() -> String) {
    let index = log.index();
    let header = NewHeader { id: "new", at: Timestamp(0), cwd: "/", parent_session: None, title: None };
    let whole = written(log, &fork_log(index, &header));
    assert_eq!(whole.len(), index.len());
    let Some(leaf) = index.leaf() else { return };
    let Ok(new) = branch_log(index, log, &index.id(leaf), &header, new_id) else { return };
    let copy = written(log, &new);
    assert_eq!(copy.len(), new.entries);
    let told = copy.damage().into_iter().filter(|damage| damage.kind != grove_tree::DamageKind::NotText);
    assert_eq!(told.count(), 0, "{:?}", copy.damage());
}

fn written(log: &Log, new: &NewLog) -> LogIndex {
    let mut bytes = Vec::new();
    let written = new.write(log.index(), log, |part| {
        bytes.extend_from_slice(part);
        Ok(())
    });
    written.expect("a log in memory can be read");
    open(bytes, &mut || unreachable!()).expect("what was written is a log").index().clone()
}
