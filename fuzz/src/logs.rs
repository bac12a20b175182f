//! The fuzz bodies of logs and side indexes.

use grove_tree::side_index::{self, SideIndex};
use grove_tree::{Children, Indexer, LogIndex, Outline, RowFilter, Rules, open, repair};

/// Any bytes as a session's log: they are parsed or refused.
///
/// The result is the same in any chunks and from its side index, every walk ends, and a repaired copy has no damage.
pub fn log(data: &[u8]) {
    let mut count = 0;
    let mut new_id = || {
        count += 1;
        format!("e{count:07x}")
    };
    let Ok(log) = open(data.to_vec(), &mut new_id) else { return };
    let index = log.index();
    walked(index);
    for rules in [Rules::Pi, Rules::Omp, Rules::Grove] {
        let context = log.context(rules, index.leaf());
        serde_json::to_string(&context).expect("a context can be written");
    }

    let bytes = log.bytes();
    let mut indexer = Indexer::new();
    bytes.chunks(7).for_each(|chunk| indexer.feed(chunk));
    let in_chunks = indexer.finish().expect("in chunks it is a log too");
    assert_same(&in_chunks, index);

    let [head, tail] =
        side_index::probes(bytes.len() as u64).map(|(offset, length)| &bytes[offset as usize..][..length]);
    if let Some(stored) = side_index::render(index, head, tail) {
        let side_index = SideIndex::parse(&stored).expect("what was written can be read");
        assert_same(&side_index.trust(head, tail).expect("it is of this log"), index);
    }
    if index.header().is_some() {
        let repaired = open(repair::repair(&log), &mut || unreachable!()).expect("a repaired log is a log");
        assert!(repaired.index().damage().is_empty(), "{:?}", repaired.index().damage());
    }
}

/// Any bytes as a side index, with matching checksums: they are parsed or refused, and the result can be walked.
pub fn index(data: &[u8]) {
    let mut sealed = data[..data.len().saturating_sub(8)].to_vec();
    // The checksums of the log's ends are after the two lengths.
    for at in [28, 36] {
        if let Some(place) = sealed.get_mut(at..at + 8) {
            place.copy_from_slice(&side_index::checksum(b"").to_le_bytes());
        }
    }
    sealed.extend(side_index::checksum(&sealed).to_le_bytes());
    let Ok(side_index) = SideIndex::parse(&sealed) else { return };
    walked(&side_index.trust(b"", b"").expect("the checksums fit"));
}

/// Walks an index in every way.
fn walked(index: &LogIndex) {
    let entries: Vec<_> = index.entries().collect();
    for entry in entries.iter().take(200) {
        let branch = index.branch(*entry);
        assert!(!branch.is_empty() && branch.len() <= entries.len());
        assert!(index.offset(*entry) + index.length(*entry) as u64 <= index.log_length());
        assert!(index.find(&index.id(*entry)).is_some() || index.id(*entry).contains('\u{fffd}'));
    }
    let (tree, in_file_order) = (Children::oldest_first(index), Children::in_file_order(index));
    let children = |children: &Children| entries.iter().map(|entry| children.of(*entry).len()).sum::<usize>();
    assert!(tree.roots().len() + children(&tree) <= entries.len());
    assert!(in_file_order.roots().len() + children(&in_file_order) <= entries.len());
    assert!(index.leaf().is_none_or(|leaf| leaf.as_usize() < entries.len()));
    index.labels().for_each(|(entry, _)| assert!(entry.as_usize() < entries.len()));
    assert!(Outline::of(index, RowFilter::All, index.leaf()).len() <= entries.len());
    index.name();
    index.header().map(grove_tree::Header::to_json);
}

fn assert_same(one: &LogIndex, other: &LogIndex) {
    assert_eq!((one.len(), one.leaf(), one.log_length()), (other.len(), other.leaf(), other.log_length()));
    assert!(one.entries().all(|entry| one.parent(entry) == other.parent(entry) && one.id(entry) == other.id(entry)));
    assert_eq!((one.damage(), one.name()), (other.damage(), other.name()));
}
