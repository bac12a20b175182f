//! The folders of one watch, and what their changes mean. All of it blocks.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::filter::Filter;
use super::hub::{Descriptor, Hub, Seat};
use super::inbox::{Gathered, Inbox, Seen};
use super::{Change, ChangeKind, Notice, WatchError, WatchLimits, WatchRequest};
use crate::policy::is_private;
use crate::{Access, FileError, Policy};

#[derive(Debug)]
pub(super) struct Tree {
    hub: Arc<Hub>,
    inbox: Arc<Inbox>,
    policy: Policy,
    access: Access,
    filter: Filter,
    limits: WatchLimits,
    recursive: bool,
    /// The watched path as it was asked for, under which changes are told.
    asked: PathBuf,
    /// The same for real.
    root: PathBuf,
    /// Whether there was anything at the root when it was last looked at.
    there: bool,
    /// The folder that holds the root: it tells when the root itself goes, comes back or is replaced.
    above: Option<(PathBuf, Descriptor)>,
    /// The root and folders below it, where they are watched.
    folders: BTreeMap<PathBuf, Descriptor>,
}

/// Changes that will be told together.
struct Told {
    changes: Vec<Change>,
    most: usize,
    /// There were more than are told.
    lost: bool,
}

impl Tree {
    pub(super) fn plant(
        hub: Arc<Hub>,
        inbox: Arc<Inbox>,
        policy: Policy,
        limits: WatchLimits,
        request: WatchRequest,
    ) -> Result<Self, WatchError> {
        let WatchRequest { path: asked, recursive, includes, excludes } = request;
        let patterns = includes.len() + excludes.len();
        if patterns > limits.patterns {
            return Err(WatchError::TooManyPatterns { patterns, limit: limits.patterns });
        }
        let filter = Filter::new(&asked, &includes, &excludes)?;
        let mut access = Access::See;
        let root = policy.find(&asked, access)?;
        let is_folder = fs::metadata(&root).map_err(|error| FileError::from_io(error, &asked))?.is_dir();
        if is_folder {
            // A watch on a folder tells the names in it.
            access = Access::Browse;
            policy.find(&asked, access)?;
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
            asked,
            root,
            there: true,
            above: None,
            folders,
        };
        if let Some((folder, name)) = tree.root.parent().zip(tree.root.file_name()) {
            let folder = folder.to_owned();
            let only = Some(name.to_owned());
            match tree.hub.sit(Seat { inbox: Arc::clone(&tree.inbox), folder: folder.clone(), only })? {
                Ok(descriptor) => tree.above = Some((folder, descriptor)),
                // Where it may not be read, only what becomes of the root itself goes unseen.
                Err(_) if is_folder => {}
                Err(error) => return Err(FileError::from_io(error, &tree.asked).into()),
            }
        }
        if is_folder {
            let root = tree.root.clone();
            tree.enter(&root)?.map_err(|error| FileError::from_io(error, &tree.asked))?;
            tree.scan(&root, None)?;
        }
        Ok(tree)
    }

    /// What there is to tell of what was seen.
    pub(super) fn tell(&mut self, gathered: Gathered) -> Result<Option<Notice>, WatchError> {
        if gathered.lost {
            self.begin_anew()?;
            return Ok(Some(Notice::Overflow));
        }
        // What went is left first: a folder that was only renamed is the same to the system under its new name.
        for (path, seen) in &gathered.paths {
            if !matches!(seen, Seen::Created | Seen::Changed) {
                self.leave(path);
            }
        }
        let private = self.policy.private();
        let mut told = Told { changes: Vec::new(), most: self.limits.changes, lost: false };
        let mut deleted: Option<PathBuf> = None;
        for (path, seen) in gathered.paths {
            if is_private(&path, &private) {
                continue;
            }
            let was_there = path == self.root && std::mem::replace(&mut self.there, seen != Seen::Deleted);
            if seen == Seen::Deleted {
                // With a folder goes all that is in it.
                if !deleted.as_ref().is_some_and(|folder| path.starts_with(folder)) && self.wants(&path) {
                    self.put(&mut told, &path, ChangeKind::Deleted);
                    deleted = Some(path);
                }
                continue;
            }
            // Of what is gone again, an event of its own will tell.
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            if metadata.is_symlink() && !self.may_tell_link(&path) {
                continue;
            }
            let is_new_folder = metadata.is_dir() && seen != Seen::Changed;
            if self.wants(&path) {
                match seen {
                    Seen::Replaced if is_new_folder => {
                        self.put(&mut told, &path, ChangeKind::Deleted);
                        self.put(&mut told, &path, ChangeKind::Added);
                        deleted = Some(path.clone());
                    }
                    Seen::Created | Seen::Arrived if !was_there => self.put(&mut told, &path, ChangeKind::Added),
                    _ => self.put(&mut told, &path, ChangeKind::Changed),
                }
            }
            if is_new_folder && (self.recursive || path == self.root) && !self.folders.contains_key(&path) {
                self.scan(&path, Some(&mut told))?;
            }
        }
        Ok(match told {
            Told { lost: true, .. } => Some(Notice::Overflow),
            Told { changes, .. } if changes.is_empty() => None,
            Told { changes, .. } => Some(Notice::Changes(changes)),
        })
    }

    /// Watches what is there now, whatever was before.
    fn begin_anew(&mut self) -> Result<(), WatchError> {
        let root = self.root.clone();
        self.leave(&root);
        let metadata = fs::symlink_metadata(&root);
        self.there = metadata.is_ok();
        if metadata.is_ok_and(|metadata| metadata.is_dir()) {
            self.scan(&root, None)?;
        }
        Ok(())
    }

    /// Watches a folder, and those below it in a recursive watch. What is found in them is told: it may have been
    /// there before anybody looked. It may be told once more then, where it came while this looked.
    fn scan(&mut self, from: &Path, mut told: Option<&mut Told>) -> Result<(), WatchError> {
        let private = self.policy.private();
        let mut ahead = vec![from.to_owned()];
        while let Some(folder) = ahead.pop() {
            let relative = folder.strip_prefix(&self.root).unwrap_or(&folder);
            if is_private(&folder, &private) || folder != self.root && self.filter.shuts_out(relative) {
                continue;
            }
            // A folder that is gone again or may not be read has nothing to tell.
            if self.enter(&folder)?.is_err() {
                continue;
            }
            if told.is_none() && !self.recursive {
                continue;
            }
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                let Ok(kind) = entry.file_type() else { continue };
                if let Some(told) = &mut told
                    && !is_private(&path, &private)
                    && self.wants(&path)
                    && (!kind.is_symlink() || self.may_tell_link(&path))
                {
                    self.put(told, &path, ChangeKind::Added);
                }
                if self.recursive && kind.is_dir() {
                    ahead.push(path);
                }
            }
        }
        Ok(())
    }

    /// Watches one folder. What the system says against it is the inner error.
    fn enter(&mut self, folder: &Path) -> Result<Result<(), io::Error>, WatchError> {
        if self.folders.len() >= self.limits.folders && !self.folders.contains_key(folder) {
            return Err(WatchError::TooManyFolders { path: self.asked.clone(), limit: self.limits.folders });
        }
        let seat = Seat { inbox: Arc::clone(&self.inbox), folder: folder.to_owned(), only: None };
        Ok(match self.hub.sit(seat)? {
            Ok(descriptor) => {
                if let Some(before) = self.folders.insert(folder.to_owned(), descriptor)
                    && before != descriptor
                {
                    self.hub.leave(before, &self.inbox, folder);
                }
                Ok(())
            }
            Err(error) => Err(error),
        })
    }

    /// Watches neither a folder nor what is below it any longer.
    fn leave(&mut self, folder: &Path) {
        let within = self
            .folders
            .range::<Path, _>((Bound::Included(folder), Bound::Unbounded))
            .take_while(|(path, _)| path.starts_with(folder));
        let within: Vec<PathBuf> = within.map(|(path, _)| path.clone()).collect();
        for path in within {
            if let Some(descriptor) = self.folders.remove(&path) {
                self.hub.leave(descriptor, &self.inbox, &path);
            }
        }
    }

    fn wants(&self, path: &Path) -> bool {
        path.strip_prefix(&self.root).is_ok_and(|relative| self.filter.wants(relative))
    }

    /// A link is told where what it leads to may be seen, or would be.
    fn may_tell_link(&self, path: &Path) -> bool {
        matches!(self.policy.find(path, self.access), Ok(_) | Err(FileError::NotFound { .. }))
    }

    fn put(&self, told: &mut Told, path: &Path, kind: ChangeKind) {
        if told.changes.len() >= told.most {
            told.lost = true;
            return;
        }
        let mut shown = self.asked.clone();
        // Part by part: an empty rest would leave a slash at the end.
        shown.extend(path.strip_prefix(&self.root).unwrap_or(path));
        told.changes.push(Change { path: shown, kind });
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let root = self.root.clone();
        self.leave(&root);
        if let Some((folder, descriptor)) = self.above.take() {
            self.hub.leave(descriptor, &self.inbox, &folder);
        }
    }
}
