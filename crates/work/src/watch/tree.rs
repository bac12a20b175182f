//! The folders of one watch, and the meaning of their changes. All of it blocks.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::filter::WatchFilter;
use super::hub::{Descriptor, FolderWatch, WatchHub};
use super::inbox::{Inbox, PathEvent, PathEvents};
use super::{PathChange, PathChangeKind, WatchError, WatchEvent, WatchLimits, WatchRequest};
use crate::policy::is_private;
use crate::{FileAccess, FileError, Policy};

#[derive(Debug)]
pub(super) struct WatchTree {
    hub: Arc<WatchHub>,
    inbox: Arc<Inbox>,
    policy: Policy,
    access: FileAccess,
    filter: WatchFilter,
    limits: WatchLimits,
    recursive: bool,
    /// The requested path, under which changes are reported.
    requested_path: PathBuf,
    /// Its real path.
    root: PathBuf,
    /// Set if there was anything at the root at the last check.
    there: bool,
    /// The folder that contains the root: its events show when the root itself is deleted, created again or replaced.
    above: Option<(PathBuf, Descriptor)>,
    /// The root and the folders below it that are watched.
    folders: BTreeMap<PathBuf, Descriptor>,
}

/// Changes that are reported together.
struct ChangeBatch {
    changes: Vec<PathChange>,
    most: usize,
    /// There were more than are reported.
    overflowed: bool,
}

impl WatchTree {
    pub(super) fn open(
        hub: Arc<WatchHub>,
        inbox: Arc<Inbox>,
        policy: Policy,
        limits: WatchLimits,
        request: WatchRequest,
    ) -> Result<Self, WatchError> {
        let WatchRequest { path: requested_path, recursive, includes, excludes } = request;
        let patterns = includes.len() + excludes.len();
        if patterns > limits.patterns {
            return Err(WatchError::TooManyPatterns { patterns, limit: limits.patterns });
        }
        let filter = WatchFilter::new(&requested_path, &includes, &excludes)?;
        let mut access = FileAccess::See;
        let root = policy.find(&requested_path, access)?;
        let is_folder = fs::metadata(&root).map_err(|error| FileError::from_io(error, &requested_path))?.is_dir();
        if is_folder {
            // A watch on a folder reveals the names in it.
            access = FileAccess::Browse;
            policy.find(&requested_path, access)?;
        }
        let folders = BTreeMap::new();
        let mut tree = Self {
            hub,
            inbox,
            policy,
            access,
            filter,
            limits,
            recursive,
            requested_path,
            root,
            there: true,
            above: None,
            folders,
        };
        if let Some((folder, name)) = tree.root.parent().zip(tree.root.file_name()) {
            let folder = folder.to_owned();
            let only = Some(name.to_owned());
            match tree.hub.subscribe(FolderWatch { inbox: Arc::clone(&tree.inbox), folder: folder.clone(), only })? {
                Ok(descriptor) => tree.above = Some((folder, descriptor)),
                // If it may not be read, only changes of the root itself go unseen.
                Err(_) if is_folder => {}
                Err(error) => return Err(FileError::from_io(error, &tree.requested_path).into()),
            }
        }
        if is_folder {
            let root = tree.root.clone();
            tree.enter(&root)?.map_err(|error| FileError::from_io(error, &tree.requested_path))?;
            tree.scan(&root, None)?;
        }
        Ok(tree)
    }

    /// The notice for some events.
    pub(super) fn tell(&mut self, gathered: PathEvents) -> Result<Option<WatchEvent>, WatchError> {
        if gathered.overflowed {
            self.restart()?;
            return Ok(Some(WatchEvent::Overflow));
        }
        // Deletions are handled first: a renamed folder is the same to the system under its new name.
        for (path, event) in &gathered.paths {
            if !matches!(event, PathEvent::Created | PathEvent::Changed) {
                self.unsubscribe(path);
            }
        }
        let private = self.policy.private();
        let mut batch = ChangeBatch { changes: Vec::new(), most: self.limits.changes, overflowed: false };
        let mut deleted: Option<PathBuf> = None;
        for (path, event) in gathered.paths {
            if is_private(&path, &private) {
                continue;
            }
            let was_there = path == self.root && std::mem::replace(&mut self.there, event != PathEvent::Deleted);
            if event == PathEvent::Deleted {
                // A deleted folder includes everything in it.
                if !deleted.as_ref().is_some_and(|folder| path.starts_with(folder)) && self.wants(&path) {
                    self.put(&mut batch, &path, PathChangeKind::Deleted);
                    deleted = Some(path);
                }
                continue;
            }
            // If it is gone again, another event will report that.
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            if metadata.is_symlink() && !self.may_tell_link(&path) {
                continue;
            }
            let is_new_folder = metadata.is_dir() && event != PathEvent::Changed;
            if self.wants(&path) {
                match event {
                    PathEvent::Replaced if is_new_folder => {
                        self.put(&mut batch, &path, PathChangeKind::Deleted);
                        self.put(&mut batch, &path, PathChangeKind::Added);
                        deleted = Some(path.clone());
                    }
                    PathEvent::Created | PathEvent::Arrived if !was_there => {
                        self.put(&mut batch, &path, PathChangeKind::Added)
                    }
                    _ => self.put(&mut batch, &path, PathChangeKind::Changed),
                }
            }
            if is_new_folder && (self.recursive || path == self.root) && !self.folders.contains_key(&path) {
                self.scan(&path, Some(&mut batch))?;
            }
        }
        Ok(match batch {
            ChangeBatch { overflowed: true, .. } => Some(WatchEvent::Overflow),
            ChangeBatch { changes, .. } if changes.is_empty() => None,
            ChangeBatch { changes, .. } => Some(WatchEvent::Changes(changes)),
        })
    }

    /// Watches the present folders, independent of the earlier ones.
    fn restart(&mut self) -> Result<(), WatchError> {
        let root = self.root.clone();
        self.unsubscribe(&root);
        let metadata = fs::symlink_metadata(&root);
        self.there = metadata.is_ok();
        if metadata.is_ok_and(|metadata| metadata.is_dir()) {
            self.scan(&root, None)?;
        }
        Ok(())
    }

    /// Watches a folder, and those below it in a recursive watch. Files in them are reported: they may have been there
    /// before the watch. A file created during the scan may be reported twice.
    fn scan(&mut self, from: &Path, mut batch: Option<&mut ChangeBatch>) -> Result<(), WatchError> {
        let private = self.policy.private();
        let mut ahead = vec![from.to_owned()];
        while let Some(folder) = ahead.pop() {
            let relative = folder.strip_prefix(&self.root).unwrap_or(&folder);
            if is_private(&folder, &private) || folder != self.root && self.filter.excludes_folder(relative) {
                continue;
            }
            // A folder that is gone again or unreadable has nothing to report.
            if self.enter(&folder)?.is_err() {
                continue;
            }
            if batch.is_none() && !self.recursive {
                continue;
            }
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                let Ok(kind) = entry.file_type() else { continue };
                if let Some(batch) = &mut batch
                    && !is_private(&path, &private)
                    && self.wants(&path)
                    && (!kind.is_symlink() || self.may_tell_link(&path))
                {
                    self.put(batch, &path, PathChangeKind::Added);
                }
                if self.recursive && kind.is_dir() {
                    ahead.push(path);
                }
            }
        }
        Ok(())
    }

    /// Watches one folder. An error of the system is the inner error.
    fn enter(&mut self, folder: &Path) -> Result<Result<(), io::Error>, WatchError> {
        if self.folders.len() >= self.limits.folders && !self.folders.contains_key(folder) {
            return Err(WatchError::TooManyFolders { path: self.requested_path.clone(), limit: self.limits.folders });
        }
        let folder_watch = FolderWatch { inbox: Arc::clone(&self.inbox), folder: folder.to_owned(), only: None };
        Ok(match self.hub.subscribe(folder_watch)? {
            Ok(descriptor) => {
                if let Some(before) = self.folders.insert(folder.to_owned(), descriptor)
                    && before != descriptor
                {
                    self.hub.unsubscribe(before, &self.inbox, folder);
                }
                Ok(())
            }
            Err(error) => Err(error),
        })
    }

    /// Stops watching a folder and those below it.
    fn unsubscribe(&mut self, folder: &Path) {
        let within = self
            .folders
            .range::<Path, _>((Bound::Included(folder), Bound::Unbounded))
            .take_while(|(path, _)| path.starts_with(folder));
        let within: Vec<PathBuf> = within.map(|(path, _)| path.clone()).collect();
        for path in within {
            if let Some(descriptor) = self.folders.remove(&path) {
                self.hub.unsubscribe(descriptor, &self.inbox, &path);
            }
        }
    }

    fn wants(&self, path: &Path) -> bool {
        path.strip_prefix(&self.root).is_ok_and(|relative| self.filter.wants(relative))
    }

    /// A link is reported if its target, existing or not, may be seen.
    fn may_tell_link(&self, path: &Path) -> bool {
        matches!(self.policy.find(path, self.access), Ok(_) | Err(FileError::NotFound { .. }))
    }

    fn put(&self, batch: &mut ChangeBatch, path: &Path, kind: PathChangeKind) {
        if batch.changes.len() >= batch.most {
            batch.overflowed = true;
            return;
        }
        let mut shown = self.requested_path.clone();
        // Part by part: an empty rest would leave a slash at the end.
        shown.extend(path.strip_prefix(&self.root).unwrap_or(path));
        batch.changes.push(PathChange { path: shown, kind });
    }
}

impl Drop for WatchTree {
    fn drop(&mut self) {
        let root = self.root.clone();
        self.unsubscribe(&root);
        if let Some((folder, descriptor)) = self.above.take() {
            self.hub.unsubscribe(descriptor, &self.inbox, &folder);
        }
    }
}
