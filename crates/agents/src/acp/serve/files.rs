//! Reading and writing text files for an agent.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use agent_client_protocol_schema::v1 as acp;
use grove_wire::jsonrpc::ErrorObject;
use grove_work::{FileAccess, FileError, Policy, read};

use super::{AgentServices, refused};
use crate::acp::program::FileScope;
use crate::acp::random;

/// The largest file that is read.
pub const READ_BYTES: u64 = 10 << 20;

/// The largest file whose earlier text is shown to the person who is asked.
pub const SHOWN_BYTES: u64 = 1 << 20;

/// A write that was checked and not done yet.
#[derive(Debug)]
pub(crate) struct PlannedWrite {
    pub(crate) path: PathBuf,
    target: PathBuf,
    /// The existing part of the target: itself, or the nearest folder above it.
    existing: PathBuf,
    pub(crate) content: String,
    location: FileLocation,
    /// Set if a person has to be asked first.
    pub(crate) protected: Option<ProtectedWrite>,
}

/// The place of a file that an agent may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileLocation {
    Workspace,
    /// Outside the working directories.
    Elsewhere,
}

/// The words that follow the path of a file outside the working directories.
pub(crate) const IS_ELSEWHERE: &str = "is outside the session's working directories";

/// The reason why a person is asked before a write.
#[derive(Debug)]
pub(crate) struct ProtectedWrite {
    /// The words that follow the path.
    pub(crate) reason: &'static str,
    /// The file's text before the write, if it can be shown.
    pub(crate) before: Option<String>,
}

impl AgentServices {
    /// Finds out where a file is. Outside the working directories it is refused, unless the agent may use other files.
    async fn locate(&self, path: &Path) -> Result<FileLocation, ErrorObject> {
        let is_found = |found: Result<PathBuf, FileError>| match found {
            Ok(_) | Err(FileError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        };
        match is_found(self.policy.allowed(path, FileAccess::Read).await) {
            Ok(()) => Ok(FileLocation::Workspace),
            Err(FileError::Outside { .. }) if self.files != FileScope::Workspace => {
                // Grove's own files and those of processes stay closed.
                let found = is_found(self.unbounded.allowed(path, FileAccess::Read).await);
                found.map(|()| FileLocation::Elsewhere).map_err(|error| refused(&error))
            }
            Err(error) => Err(refused(&error)),
        }
    }

    fn policy_of(&self, location: FileLocation) -> &Policy {
        match location {
            FileLocation::Workspace => &self.policy,
            FileLocation::Elsewhere => &self.unbounded,
        }
    }

    /// Returns whether a person has to be asked before a file is read.
    pub(crate) async fn asks_before_reading(&self, request: &acp::ReadTextFileRequest) -> Result<bool, ErrorObject> {
        let path = absolute(&request.path)?;
        if self.files != FileScope::Ask || self.own_text(path).await.is_some() {
            return Ok(false);
        }
        Ok(self.locate(path).await? == FileLocation::Elsewhere && !self.is_private(path))
    }

    /// Reads a text file: as an editor shows it, else as it is on disk. A person was asked if that is necessary.
    pub(crate) async fn read_text_file(
        &self,
        request: acp::ReadTextFileRequest,
    ) -> Result<acp::ReadTextFileResponse, ErrorObject> {
        let path = absolute(&request.path)?;
        if let Some(text) = self.own_text(path).await {
            return Ok(acp::ReadTextFileResponse::new(lines(text?, request.line, request.limit)));
        }
        // A file that is not saved yet is not on disk.
        let location = self.locate(path).await?;
        if self.is_private(path) {
            return Err(refused(&FileError::Outside { path: path.to_owned() }));
        }
        let text = match self.documents.text(&self.session, path).await {
            Some(text) if text.len() as u64 > READ_BYTES => {
                return Err(refused(&FileError::TooLarge { path: path.to_owned(), limit: READ_BYTES }));
            }
            Some(text) => text,
            None => {
                let content =
                    read(self.policy_of(location), path, READ_BYTES).await.map_err(|error| refused(&error))?;
                let no_text = |_| ErrorObject::invalid_params(format!("{} is not a text file", path.display()));
                content.into_text().map_err(no_text)?
            }
        };
        Ok(acp::ReadTextFileResponse::new(lines(text, request.line, request.limit)))
    }

    /// The text of a file that the agent was referred to because its content was too large. Agents may not read its
    /// folder otherwise.
    async fn own_text(&self, path: &Path) -> Option<Result<String, ErrorObject>> {
        const MOST: usize = READ_BYTES as usize;
        Some(match self.spills.read(path, MOST + 1).await? {
            Ok(bytes) if bytes.len() > MOST => {
                Err(refused(&FileError::TooLarge { path: path.to_owned(), limit: READ_BYTES }))
            }
            Ok(bytes) => String::from_utf8(bytes)
                .map_err(|_| ErrorObject::invalid_params(format!("{} is not a text file", path.display()))),
            Err(reason) => Err(ErrorObject::internal(format!("{} cannot be read: {reason}", path.display()))),
        })
    }

    /// Checks a write without changing anything.
    pub(crate) async fn plan_write(&self, request: acp::WriteTextFileRequest) -> Result<PlannedWrite, ErrorObject> {
        let path = absolute(&request.path)?.to_owned();
        let location = self.locate(&path).await?;
        let (target, existing) = self.target(&path, location).await?;
        let asks = location == FileLocation::Elsewhere && self.files == FileScope::Ask;
        let (directories, requested_path, real) = (self.directories.clone(), path.clone(), target.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let protected = grove_work::protection(&directories, &requested_path, &real);
            let protected = protected.or(asks.then_some(IS_ELSEWHERE))?;
            // The person who is asked sees the change.
            let before = fs::metadata(&real).ok().filter(|found| found.len() <= SHOWN_BYTES);
            let before = before.and_then(|_| fs::read_to_string(&real).ok());
            Some(ProtectedWrite { reason: protected, before })
        });
        let protected = looked.await.map_err(|error| ErrorObject::internal(error.to_string()))?;
        Ok(PlannedWrite { path, target, existing, content: request.content, location, protected })
    }

    /// Replaces a file, or creates it with the folders above it. A file that an editor shows with unsaved changes is
    /// written by the editor, so that both stay the same.
    pub(crate) async fn write(&self, planned: PlannedWrite) -> Result<acp::WriteTextFileResponse, ErrorObject> {
        if self.is_written_by_editor(&planned).await {
            return Ok(acp::WriteTextFileResponse::new());
        }
        let PlannedWrite { path, target, existing, content, location, .. } = planned;
        self.make_folders(&path, &target, &existing, location).await?;
        let written = tokio::task::spawn_blocking(move || replace(&target, content.as_bytes())).await;
        let failed = |error: io::Error| ErrorObject::internal(format!("{} cannot be written: {error}", path.display()));
        written.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(failed)?;
        Ok(acp::WriteTextFileResponse::new())
    }

    /// Writes a file through an editor, if one shows it with unsaved changes. Returns whether the file is written then.
    ///
    /// The editor gets the checked path, without links. It may save more than the content, which it formats; an editor
    /// that did not save leaves the file to the host.
    async fn is_written_by_editor(&self, planned: &PlannedWrite) -> bool {
        let before = self.saved_text(&planned.target).await;
        let is_written =
            self.documents.write(&self.session, &planned.target, before.as_deref(), &planned.content).await;
        if !is_written {
            return false;
        }
        let after = self.saved_text(&planned.target).await;
        after.is_some() && (after != before || after.as_deref() == Some(planned.content.as_str()))
    }

    /// The text of a file on disk, if it is one and not too large.
    async fn saved_text(&self, target: &Path) -> Option<String> {
        read(&self.unbounded, target, READ_BYTES).await.ok()?.into_text().ok()
    }

    /// Resolves the path of a write: its real target, and the part of it that exists.
    async fn target(&self, path: &Path, location: FileLocation) -> Result<(PathBuf, PathBuf), ErrorObject> {
        let outside = || refused(&FileError::Outside { path: path.to_owned() });
        let policy = self.policy_of(location);
        match policy.allowed(path, FileAccess::Read).await {
            Ok(real) => return Ok((real.clone(), real)),
            Err(FileError::NotFound { .. }) => {}
            Err(error) => return Err(refused(&error)),
        }
        let mut above = path;
        let real = loop {
            above = above.parent().ok_or_else(outside)?;
            match policy.allowed(above, FileAccess::Read).await {
                Ok(real) => break real,
                Err(FileError::NotFound { .. }) => {}
                Err(error) => return Err(refused(&error)),
            }
        };
        let rest = path.strip_prefix(above).map_err(|_| outside())?;
        // `..` cannot lead out of folders that do not exist yet.
        if !rest.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(outside());
        }
        let target = real.join(rest);
        if self.is_private(&target) {
            return Err(outside());
        }
        Ok((target, real))
    }

    /// Creates the missing folders above a file.
    async fn make_folders(
        &self,
        path: &Path,
        target: &Path,
        existing: &Path,
        location: FileLocation,
    ) -> Result<(), ErrorObject> {
        let outside = || refused(&FileError::Outside { path: path.to_owned() });
        let missing =
            |error: io::Error| ErrorObject::internal(format!("{} cannot be written: {error}", path.display()));
        if target == existing {
            return Ok(());
        }
        if let Some(folder) = target.parent().map(Path::to_owned)
            && folder != existing
        {
            let made = tokio::task::spawn_blocking({
                let folder = folder.clone();
                move || fs::create_dir_all(folder)
            });
            made.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(missing)?;
            // A link may have been put in its place meanwhile.
            let found =
                self.policy_of(location).allowed(&folder, FileAccess::Read).await.map_err(|error| refused(&error))?;
            if found != folder {
                return Err(outside());
            }
        }
        Ok(())
    }

    /// Returns whether a path is Grove's own, also if it does not exist yet.
    fn is_private(&self, path: &Path) -> bool {
        self.private.iter().any(|private| path.starts_with(private) || path.starts_with(resolved(private)))
    }
}

fn absolute(path: &Path) -> Result<&Path, ErrorObject> {
    if path.is_absolute() && !path.as_os_str().as_encoded_bytes().contains(&0) {
        return Ok(path);
    }
    Err(ErrorObject::invalid_params(format!("{} is not an absolute path", path.display())))
}

/// The real path of a file that may not exist.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    match path.parent().zip(path.file_name()) {
        Some((folder, name)) => resolved(folder).join(name),
        None => path.to_owned(),
    }
}

/// At most `most` lines from line `first` on, counted from 1.
fn lines(text: String, first: Option<u32>, most: Option<u32>) -> String {
    if first.is_none_or(|first| first <= 1) && most.is_none() {
        return text;
    }
    let skipped = first.unwrap_or(1).saturating_sub(1) as usize;
    let most = most.map_or(usize::MAX, |most| most as usize);
    text.split_inclusive('\n').skip(skipped).take(most).collect()
}

/// Replaces a file atomically. Its permissions stay.
fn replace(target: &Path, content: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let permissions = match fs::metadata(target) {
        Ok(found) if found.is_file() => Some(found.permissions()),
        Ok(_) => return Err(io::Error::other("it is not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".grove-{}", random::tag()));
    let beside = folder.join(beside);
    let written = fill(&beside, content, permissions).and_then(|()| fs::rename(&beside, target));
    if written.is_err() {
        fs::remove_file(&beside).ok();
    }
    written
}

fn fill(path: &Path, content: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    // A new file gets what the umask leaves; a replaced one stays private until it has its own permissions.
    let mode = if permissions.is_some() { 0o600 } else { 0o666 };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(content)?;
    match permissions {
        Some(permissions) => file.set_permissions(permissions),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::Arc;

    use async_trait::async_trait;
    use grove_core::SessionId;

    use super::*;
    use crate::acp::pool::Documents;
    use crate::acp::serve::{NOT_FOUND, ServiceScope};

    #[derive(Debug)]
    struct OpenDocument(PathBuf);

    #[async_trait]
    impl Documents for OpenDocument {
        async fn text(&self, _session: &SessionId, path: &Path) -> Option<String> {
            (path == self.0).then(|| "not saved".to_owned())
        }

        async fn write(&self, _session: &SessionId, path: &Path, on_disk: Option<&str>, text: &str) -> bool {
            let is_open = path == self.0 && on_disk != Some("not saved");
            // This editor saves some texts, formats others, and keeps the rest unsaved.
            if is_open && !text.is_empty() {
                fs::write(path, text.replace("ugly", "pretty")).unwrap();
            }
            is_open
        }
    }

    struct FilesFixture {
        _folder: tempfile::TempDir,
        work: PathBuf,
        outside: PathBuf,
        services: AgentServices,
    }

    fn fixture() -> FilesFixture {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (work, outside) = (root.join("work"), root.join("outside"));
        for path in [&work, &outside, &work.join("secret")] {
            fs::create_dir(path).unwrap();
        }
        fs::write(work.join("a.txt"), "one\ntwo\nthree").unwrap();
        fs::write(outside.join("b.txt"), "b").unwrap();
        fs::write(work.join("secret/token"), "t").unwrap();
        symlink(&outside, work.join("way-out")).unwrap();
        symlink(outside.join("none"), work.join("to-nothing")).unwrap();
        symlink(work.join("a.txt"), work.join("link")).unwrap();
        let service_scope = ServiceScope {
            session: "s".into(),
            cwd: work.clone(),
            directories: vec![work.clone()],
            private: vec![work.join("secret"), work.join("later")],
            documents: Arc::new(OpenDocument(work.join("open.txt"))),
            spills: Arc::new(()),
            files: FileScope::Workspace,
        };
        FilesFixture { _folder: folder, work, outside, services: AgentServices::new(service_scope, "tag".to_owned()) }
    }

    impl FilesFixture {
        async fn read(&self, path: &Path, line: Option<u32>, limit: Option<u32>) -> Result<String, ErrorObject> {
            let request = acp::ReadTextFileRequest::new("s", path).line(line).limit(limit);
            self.services.read_text_file(request).await.map(|answer| answer.content)
        }

        async fn write(&self, path: &Path, content: &str) -> Result<(), ErrorObject> {
            let planned = self.services.plan_write(acp::WriteTextFileRequest::new("s", path, content)).await?;
            if let Some(protected) = planned.protected {
                return Err(ErrorObject::invalid_params(protected.reason));
            }
            self.services.write(planned).await.map(|_| ())
        }
    }

    #[tokio::test]
    async fn a_file_is_read_from_a_line_on_and_as_an_editor_shows_it() {
        let fixture = fixture();
        let file = fixture.work.join("a.txt");
        assert_eq!(fixture.read(&file, None, None).await.unwrap(), "one\ntwo\nthree");
        assert_eq!(fixture.read(&file, Some(2), Some(1)).await.unwrap(), "two\n");
        assert_eq!(fixture.read(&file, Some(3), None).await.unwrap(), "three");
        assert_eq!(fixture.read(&file, Some(0), Some(1)).await.unwrap(), "one\n");
        assert_eq!(fixture.read(&file, Some(9), None).await.unwrap(), "");
        assert_eq!(fixture.read(&fixture.work.join("open.txt"), None, None).await.unwrap(), "not saved");
        let missing = fixture.read(&fixture.work.join("none"), None, None).await.unwrap_err();
        assert_eq!(missing.code, NOT_FOUND);
        assert!(missing.message.starts_with("Resource not found: /"), "{missing}");
        let above = fixture.read(&fixture.work.join("new/deep/file"), None, None).await.unwrap_err();
        assert!(above.message.contains("Resource not found"), "{above}");
        fs::File::create(fixture.work.join("big")).unwrap().set_len(READ_BYTES + 1).unwrap();
        let large = fixture.read(&fixture.work.join("big"), None, None).await.unwrap_err();
        assert!(large.message.contains("larger than"), "{large}");
        fs::write(fixture.work.join("bytes"), [0xff]).unwrap();
        assert!(
            fixture
                .read(&fixture.work.join("bytes"), None, None)
                .await
                .unwrap_err()
                .message
                .contains("not a text file")
        );
    }

    #[tokio::test]
    async fn nothing_is_read_or_written_outside_the_working_directories() {
        let fixture = fixture();
        for path in
            ["../outside/b.txt", "way-out/b.txt", "way-out/new", "to-nothing", "secret/token", "secret/new", "later/x"]
        {
            let path = fixture.work.join(path);
            assert!(fixture.write(&path, "x").await.is_err(), "{}", path.display());
            assert!(fixture.read(&path, None, None).await.is_err(), "{}", path.display());
        }
        for path in ["a.txt", "", "/etc/passwd"] {
            assert!(fixture.read(Path::new(path), None, None).await.is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(&fixture.outside).unwrap().count(), 1);
        assert!(!fixture.work.join("later").exists());
        assert_eq!(fs::read_to_string(fixture.work.join("secret/token")).unwrap(), "t");
    }

    #[tokio::test]
    async fn a_write_into_git_or_configuration_is_not_done_without_a_question_and_leaves_nothing_behind() {
        let fixture = fixture();
        for name in ["objects", "refs", "hooks"] {
            fs::create_dir_all(fixture.work.join("data").join(name)).unwrap();
        }
        fs::write(fixture.work.join("data/HEAD"), "ref: refs/heads/main").unwrap();
        symlink(fixture.work.join("data"), fixture.work.join("innocent")).unwrap();
        symlink(fixture.work.join("data/hooks"), fixture.work.join(".git")).unwrap();
        for path in
            [".git/pre-commit", "innocent/hooks/post-merge", "data/config", "new/.GIT/hooks/x", ".claude/settings.json"]
        {
            let error = fixture.write(&fixture.work.join(path), "x").await.unwrap_err();
            assert!(error.message.contains("run programs"), "{path}: {error}");
        }
        assert!(!fixture.work.join("new").exists(), "not even a folder");
        assert!(!fixture.work.join("data/config").exists());
    }

    #[tokio::test]
    async fn a_file_with_unsaved_changes_is_written_by_the_editor_and_else_by_the_host() {
        let fixture = fixture();
        let open = fixture.work.join("open.txt");
        for (content, saved) in [("new", "new"), ("ugly", "pretty"), ("", "")] {
            fs::write(&open, "old").unwrap();
            fixture.write(&open, content).await.unwrap();
            assert_eq!(fs::read_to_string(&open).unwrap(), saved, "{content:?}");
        }
        // A file without unsaved changes, and one that is not open, are the host's.
        for (file, before) in [(&open, "not saved"), (&fixture.work.join("a.txt"), "one")] {
            fs::write(file, before).unwrap();
            fixture.write(file, "ugly").await.unwrap();
            assert_eq!(fs::read_to_string(file).unwrap(), "ugly");
        }
    }

    #[tokio::test]
    async fn a_file_is_replaced_whole_and_keeps_its_permissions() {
        let fixture = fixture();
        let file = fixture.work.join("a.txt");
        fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        fixture.write(&fixture.work.join("link"), "new").await.unwrap();
        assert!(fixture.work.join("link").is_symlink(), "what a link leads to is written, not the link");
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        fixture.write(&fixture.work.join("x/y/z.txt"), "z").await.unwrap();
        assert_eq!(fs::read_to_string(fixture.work.join("x/y/z.txt")).unwrap(), "z");
        assert!(fixture.write(&fixture.work.join("x"), "a folder").await.is_err());
        assert!(fixture.write(&fixture.work.join("n/../../outside/c"), "c").await.is_err());
        let left: Vec<_> = fs::read_dir(&fixture.work).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains(".grove-")), "{left:?}");
    }
}
