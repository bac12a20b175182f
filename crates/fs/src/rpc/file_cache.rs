//! A cache of whole files, for ranges from a client that only sends whole files.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Stat;

/// The files that were last read, over all sessions of a storage client. Past the limit the longest unused are dropped.
#[derive(Debug)]
pub(super) struct FileCache {
    /// The last one is the most recently used.
    files: Mutex<VecDeque<CachedFile>>,
    /// The limit in bytes.
    most: u64,
}

#[derive(Clone, Debug)]
pub(super) struct CachedFile {
    /// The file's lock key.
    pub(super) key: String,
    /// The client's stat of the file when it was read.
    pub(super) stat: Stat,
    pub(super) bytes: Arc<[u8]>,
}

impl FileCache {
    pub(super) fn new(most: u64) -> Self {
        Self { files: Mutex::default(), most }
    }

    /// The cached bytes of a file whose stat is still the same.
    pub(super) fn get(&self, key: &str, stat: &Stat) -> Option<Arc<[u8]>> {
        let mut files = self.files();
        let at = files.iter().position(|known| known.key == key && known.stat == *stat)?;
        let known = files.remove(at)?;
        let bytes = Arc::clone(&known.bytes);
        files.push_back(known);
        Some(bytes)
    }

    pub(super) fn put(&self, new: CachedFile) {
        let mut files = self.files();
        files.retain(|known| known.key != new.key);
        files.push_back(new);
        let mut size: u64 = files.iter().map(|known| known.bytes.len() as u64).sum();
        while size > self.most
            && let Some(known) = files.pop_front()
        {
            size -= known.bytes.len() as u64;
        }
    }

    /// Drops every file whose key has this prefix.
    pub(super) fn forget(&self, key: &str) {
        self.files().retain(|known| !known.key.starts_with(key));
    }

    // No step under this lock can panic half way.
    fn files(&self) -> MutexGuard<'_, VecDeque<CachedFile>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::FileKind;

    #[test]
    fn what_is_remembered_is_bounded_and_what_was_used_last_stays() {
        let time = SystemTime::UNIX_EPOCH;
        let stat = Stat { kind: FileKind::File, size: 4, modified: time, created: time };
        let file_cache = FileCache::new(10);
        let put = |key: &str| file_cache.put(CachedFile { key: key.into(), stat, bytes: vec![0; 4].into() });
        put("a:/x");
        put("b:/x");
        assert!(file_cache.get("a:/x", &stat).is_some());
        put("c:/x");
        let known = |key| file_cache.get(key, &stat).is_some();
        assert_eq!([known("a:/x"), known("b:/x"), known("c:/x")], [true, false, true]);
        file_cache.forget("a:/");
        assert!(!known("a:/x"));
        assert!(file_cache.get("c:/x", &Stat { size: 5, ..stat }).is_none(), "it has changed");
    }
}
