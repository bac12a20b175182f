//! The move of a session's folder to another store.
//!
//! 1. Everything is copied, and compared byte for byte. The copy has the note of `grove_fs::copy`, and its
//!    `session.json` names the old store: it is no session yet.
//! 2. The journal records that the session has moved. From this moment on it has.
//! 3. `session.json` is written in the new store, with its name.
//! 4. The old folder is renamed to a name that no session has, the copy's note is removed, then the renamed folder.
//!
//! A host that was killed before step 2 finds the note and removes the copy; one that was killed after it does steps 3
//! and 4 at the next start ([`super::store_scan`]). So there is one session at any moment, the old one or the new one.

use grove_core::SessionId;
use grove_fs::copy::{self, Comparison, CopyError, CopyPurpose, Difference, FolderCopy, KeepAllLines, SessionFolder};
use grove_fs::{FsError, Removal, SessionFs};

use super::{paths, remove_if_present, session_file};

/// The move of a session's folder from one store to another.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    pub session: &'a SessionId,
    pub from: &'a dyn SessionFs,
    pub to: &'a dyn SessionFs,
}

/// The numbers of files and bytes that were copied and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifiedCopy {
    pub files: u64,
    pub bytes: u64,
}

/// The reason why a session does not move to another store. It stays in its own.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error("the copy is not the same as the session: {0}")]
    Differs(Difference),
    #[error("{} is neither a file nor a folder, and cannot move: remove it from the session's folder first", .0.join(", "))]
    NotFiles(Vec<String>),
}

impl Move<'_> {
    /// Copies everything, and compares the copy.
    ///
    /// Nobody may write to the folder meanwhile; a database in it is then a file like any other.
    pub async fn copy(&self) -> Result<VerifiedCopy, MoveError> {
        let folder = paths::folder(self.session);
        if copy::is_move(self.to, &folder).await? {
            // An earlier copy was given up, and the session has changed since.
            discard(self.to, self.session).await?;
        } else {
            session_file::make_room(self.to, self.session).await?;
        }
        let place = |store| SessionFolder { store, folder: &folder, database: None };
        let (from, to) = (place(self.from), place(self.to));
        let copied = FolderCopy { from, to, purpose: CopyPurpose::Move }.run(&mut KeepAllLines).await?;
        if !copied.not_files.is_empty() {
            return Err(MoveError::NotFiles(copied.not_files));
        }
        match copy::compare(&from, &to).await? {
            Comparison::Same { files, bytes } => Ok(VerifiedCopy { files, bytes }),
            Comparison::Different(difference) => Err(MoveError::Differs(difference)),
        }
    }

    /// Removes the old folder, once the new one's `session.json` names its store. It may be repeated.
    pub async fn finish(&self) -> Result<(), MoveError> {
        // The note is removed last: until then, a folder of the same session in another store is known to be the old
        // one.
        rename_for_removal(self.from, self.session).await?;
        copy::settle(self.to, &paths::folder(self.session)).await?;
        Ok(remove_renamed(self.from, &paths::moved_away(self.session)).await?)
    }
}

/// Removes a session's folder. It is renamed first, so that nobody ever finds half of it.
pub async fn discard(fs: &dyn SessionFs, session: &SessionId) -> Result<(), FsError> {
    rename_for_removal(fs, session).await?;
    remove_renamed(fs, &paths::moved_away(session)).await
}

async fn rename_for_removal(fs: &dyn SessionFs, session: &SessionId) -> Result<(), FsError> {
    let (folder, away) = (paths::folder(session), paths::moved_away(session));
    if !fs.exists(&folder).await? {
        return Ok(());
    }
    remove_renamed(fs, &away).await?;
    fs.rename(&folder, &away).await
}

/// Removes a renamed folder.
pub async fn remove_renamed(fs: &dyn SessionFs, name: &str) -> Result<(), FsError> {
    remove_if_present(fs, name, Removal::Everything).await
}
