//! Changes at the storage client.
//!
//! Each change runs in its own task, which holds the file's lock until the client has answered, or the call's time is
//! over. So a caller that timed out, or was dropped, leaves no call behind that the next one could overtake. A change
//! without an answer in time is watched: see [`unconfirmed`](super::unconfirmed).

use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;

use super::remote::{CallError, SentCall, answered};
use super::unconfirmed::ReadBack;
use super::wire::{
    FILE_MODE, FOLDER_MODE, MkdirParams, ReaddirWithTypesResult, RenameParams, RmParams, SessionFsMethod, WriteParams,
};
use super::{RpcFs, failed, wire};
use crate::path::file_parts;
use crate::{FileKind, FsError, LockGuard, Removal, Result, SessionFs, Stat};

/// The time until a client that did not answer is asked again about a late append.
const AGAIN: Duration = Duration::from_secs(1);

impl RpcFs {
    /// Replaces the content of a file.
    pub(super) async fn replace(&self, path: &str, bytes: Vec<u8>) -> Result<()> {
        self.file_location(path)?;
        let (fs, at) = (self.clone(), path.to_owned());
        self.change(path, async move { fs.put(&at, bytes).await }).await
    }

    /// Adds bytes to the end of a file.
    pub(super) async fn append(&self, path: &str, bytes: Vec<u8>) -> Result<()> {
        let location = self.file_location(path)?;
        let (fs, at) = (self.clone(), path.to_owned());
        self.change(path, async move {
            let bytes = match String::from_utf8(bytes) {
                Ok(content) if fs.is_guarded(&at)? => return fs.append_guarded(&at, location, content).await,
                Ok(content) => {
                    let done = fs.send_append(&at, location, content).await;
                    return fs.explained(done).await;
                }
                Err(error) => error.into_bytes(),
            };
            if !fs.is_binary() {
                return Err(FsError::NotText { path: at });
            }
            // The wire cannot append bytes.
            let mut whole = fs.fetch_or_empty(&at).await?;
            whole.extend_from_slice(&bytes);
            fs.put(&at, whole).await
        })
        .await
    }

    /// Cuts a file.
    pub(super) async fn cut(&self, path: &str, length: u64) -> Result<()> {
        self.file_location(path)?;
        let (fs, at) = (self.clone(), path.to_owned());
        self.change(path, async move {
            let mut whole = fs.fetch_counting(&at).await?;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if whole.len() <= length {
                return Ok(());
            }
            whole.truncate(length);
            fs.put(&at, whole).await
        })
        .await
    }

    pub(super) async fn make_folder(&self, path: &str) -> Result<()> {
        let location = self.location(path)?;
        let (fs, at) = (self.clone(), path.to_owned());
        self.change(path, async move {
            let done = fs.mkdir_at(&location, &at).await;
            match done {
                Err(error @ FsError::Other { .. }) => match fs.look(&at).await {
                    Ok(stat) if stat.kind == FileKind::Folder => Ok(()),
                    Ok(_) => Err(FsError::AlreadyExists { path: at }),
                    Err(_) => Err(fs.why(error).await),
                },
                done => done,
            }
        })
        .await
    }

    pub(super) async fn remove(&self, path: &str, what: Removal) -> Result<()> {
        let location = self.file_location(path)?;
        let (fs, at) = (self.clone(), path.to_owned());
        self.change(path, async move {
            let recursive = match what {
                Removal::Everything => true,
                // On the wire only a recursive removal deletes folders.
                Removal::One => match fs.look(&at).await {
                    Ok(stat) if stat.kind == FileKind::Folder => {
                        let params = fs.params(&location);
                        let inside: ReaddirWithTypesResult =
                            fs.call(SessionFsMethod::ReaddirWithTypes, &params, &at).await?;
                        if let Some(error) = inside.error {
                            return Err(failed(error, &at));
                        }
                        if !inside.entries.is_empty() {
                            return Err(FsError::NotEmpty { path: at });
                        }
                        true
                    }
                    Ok(_) => false,
                    Err(error) => return Err(fs.why(error).await),
                },
            };
            let session_id = fs.shared.session.clone();
            let params = RmParams { session_id, path: location, recursive: Some(recursive), force: Some(false) };
            match fs.act(SessionFsMethod::Rm, &params, &at).await {
                Err(error) => Err(fs.why_not_there(error).await),
                Ok(()) => {
                    fs.remote().unconfirmed.forget(&fs.key_of(&fs.location(&at)?));
                    Ok(())
                }
            }
        })
        .await
    }

    fn is_guarded(&self, path: &str) -> Result<bool> {
        Ok(self.remote().unconfirmed.is_guarded(&self.lock_key(path)?))
    }

    /// The bytes of a file that count. The caller holds its lock.
    pub(super) async fn fetch_counting(&self, path: &str) -> Result<Vec<u8>> {
        let mut content = self.fetch(path).await?;
        let found = self.remote().unconfirmed.read(&self.lock_key(path)?, &content);
        if let ReadBack::Late { counts, .. } = found {
            content.truncate(counts);
        }
        Ok(content)
    }

    async fn fetch_or_empty(&self, path: &str) -> Result<Vec<u8>> {
        match self.fetch(path).await {
            Err(FsError::NotFound { .. }) => Ok(Vec::new()),
            read => read,
        }
    }

    /// Appends to a file, and watches the append if the client does not answer.
    async fn send_append(&self, path: &str, location: String, content: String) -> Result<()> {
        let bytes = content.clone().into_bytes();
        let params = self.write_params(&location, content);
        let mut sent = self.remote().send(SessionFsMethod::AppendFile, &params, path)?;
        let limit = self.remote().limits.call;
        match tokio::time::timeout(limit, &mut sent).await {
            Ok(Err(CallError::Disconnected)) => {
                self.watch(path, bytes, Box::pin(std::future::pending()))?;
                Err(FsError::Disconnected { path: path.to_owned() })
            }
            Ok(answer) => done(answered(answer, path)?, path),
            Err(_) => {
                self.watch(path, bytes, sent)?;
                Err(FsError::TimedOut { path: path.to_owned(), limit })
            }
        }
    }

    /// Appends to a file that an earlier append may still reach: replaces the file's valid content, with more at its
    /// end.
    async fn append_guarded(&self, path: &str, location: String, content: String) -> Result<()> {
        let key = self.lock_key(path)?;
        let mut whole = match self.fetch_or_empty(path).await {
            Err(FsError::TooLarge { .. }) => {
                self.remote().unconfirmed.forget(&key);
                let done = self.send_append(path, location, content).await;
                return self.explained(done).await;
            }
            read => read?,
        };
        match self.remote().unconfirmed.read(&key, &whole) {
            ReadBack::Whole if !self.remote().unconfirmed.is_guarded(&key) => {
                let done = self.send_append(path, location, content).await;
                return self.explained(done).await;
            }
            ReadBack::Whole => {}
            ReadBack::Late { counts, .. } => whole.truncate(counts),
            ReadBack::Changed => {
                let reason = "it was changed by others meanwhile: read it again".to_owned();
                return Err(FsError::Other { path: path.to_owned(), reason });
            }
        }
        whole.extend_from_slice(content.as_bytes());
        self.put(path, whole).await
    }

    /// Waits for the late answer of an append in its own task, and ensures that the append is there once.
    fn watch(&self, path: &str, content: Vec<u8>, sent: SentCall) -> Result<()> {
        let (fs, path, key) = (self.clone(), path.to_owned(), self.lock_key(path)?);
        let number = self.remote().appends.fetch_add(1, Ordering::Relaxed);
        if content.is_empty() || !self.remote().unconfirmed.add(&key, content, number) {
            return Ok(());
        }
        tokio::spawn(async move {
            let late = tokio::time::sleep(fs.remote().limits.late);
            tokio::pin!(late);
            let answer = tokio::select! {
                answer = sent => Some(answer),
                () = &mut late => None,
            };
            match answer.map(|answer| answered(answer, &path).and_then(|value| done(value, &path))) {
                // The client reports that it did not do it.
                Some(Err(FsError::Other { .. } | FsError::NotFound { .. })) => {}
                // It did it, or no longer will: bytes that do not count are cut off.
                Some(Ok(())) => fs.cut_late(&path, &key, number, late).await,
                Some(Err(_)) => {
                    late.await;
                    fs.cut_late(&path, &key, number, std::future::ready(())).await;
                }
                None => fs.cut_late(&path, &key, number, std::future::ready(())).await,
            }
            fs.remote().unconfirmed.settle(&key, number);
        });
        Ok(())
    }

    /// Cuts off an append that arrived after later reads or writes. A client that does not answer is asked again until
    /// `late`.
    async fn cut_late(&self, path: &str, key: &str, number: u64, late: impl Future<Output = ()>) {
        let mut late = std::pin::pin!(late);
        loop {
            let (fs, at, of) = (self.clone(), path.to_owned(), key.to_owned());
            let cut = self.change(path, async move {
                if !fs.remote().unconfirmed.has(&of, number) {
                    return Ok(());
                }
                let mut content = fs.fetch(&at).await?;
                if let ReadBack::Late { counts, .. } = fs.remote().unconfirmed.read(&of, &content) {
                    content.truncate(counts);
                    fs.put(&at, content).await?;
                }
                Ok(())
            });
            match cut.await {
                Err(FsError::TimedOut { .. } | FsError::Disconnected { .. }) => {}
                Ok(()) | Err(_) => return,
            }
            tokio::select! {
                () = &mut late => return,
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }

    pub(super) async fn rename_to(&self, from: &str, to: &str) -> Result<()> {
        let (source, target) = (self.file_location(from)?, self.file_location(to)?);
        let (fs, at, to) = (self.clone(), from.to_owned(), to.to_owned());
        // Both files are locked, always in the same order, so that no two renames wait for each other.
        let (first, second) = (self.lock_key(from)?, self.lock_key(&to)?);
        let (first, second) = if first <= second { (first, second) } else { (second, first) };
        let one = self.held(from, &first).await?;
        let other = if first == second { None } else { Some(self.held(from, &second).await?) };
        self.run(from, async move {
            let _held = (one, other);
            if source == target {
                let found = fs.look(&at).await;
                return fs.explained(found).await.map(|_| ());
            }
            let renamed = fs.act(SessionFsMethod::Rename, &fs.rename_params(&source, &target), &at).await;
            fs.forget(&source);
            fs.forget(&target);
            if renamed.is_ok() {
                fs.remote().unconfirmed.forget(&fs.key_of(&source));
                fs.remote().unconfirmed.forget(&fs.key_of(&target));
            }
            match renamed {
                Err(error @ FsError::Other { .. }) => Err(fs.why_not_renamed(error, &to).await),
                done => done,
            }
        })
        .await
    }

    /// Waits for a file's lock, then changes the file.
    async fn change<T, W>(&self, path: &str, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T>> + Send + 'static,
    {
        let held = self.held(path, &self.lock_key(path)?).await?;
        let (fs, location) = (self.clone(), self.location(path)?);
        self.run(path, async move {
            let done = work.await;
            fs.forget(&location);
            drop(held);
            done
        })
        .await
    }

    pub(super) async fn held(&self, path: &str, key: &str) -> Result<LockGuard> {
        self.in_time(path, async { Ok(self.remote().locks.hold(key).await) }).await
    }

    /// Runs a change to its end, even if the caller stops waiting.
    async fn run<T, W>(&self, path: &str, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T>> + Send + 'static,
    {
        // Taken before the task starts: changes that nobody waits for are bounded as well.
        let turn = self.in_time(path, self.remote().turn(path)).await?;
        let task = tokio::spawn(async move {
            let done = work.await;
            drop(turn);
            done
        });
        self.in_time(path, async {
            match task.await {
                Ok(done) => done,
                Err(error) => Err(FsError::Other { path: path.to_owned(), reason: error.to_string() }),
            }
        })
        .await
    }

    /// Writes a temporary file beside the target, and renames it.
    async fn put(&self, path: &str, bytes: Vec<u8>) -> Result<()> {
        let limit = self.remote().limits.file;
        if bytes.len() as u64 > limit {
            return Err(FsError::TooLarge { path: path.to_owned(), limit });
        }
        let location = self.file_location(path)?;
        let key = self.key_of(&location);
        let expected = self.remote().unconfirmed.is_guarded(&key).then(|| bytes.clone());
        let (method, content) = match String::from_utf8(bytes) {
            Ok(text) => (SessionFsMethod::WriteFile, text),
            Err(error) if self.is_binary() => (SessionFsMethod::WriteFileBytes, STANDARD.encode(error.as_bytes())),
            Err(_) => return Err(FsError::NotText { path: path.to_owned() }),
        };
        for old in self.remote().unconfirmed.temporary(&key) {
            self.remove_temporary(&old, path).await?;
            self.remote().unconfirmed.temporary_gone(&key, &old);
        }
        if let Some(expected) = &expected {
            self.remote().unconfirmed.replaced(&key, expected, false);
        }
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = self.join(&[&self.location(folder)?, &temporary_name(path)?]);
        let params = self.write_params(&beside, content);
        match self.act(method, &params, path).await {
            Err(FsError::NotFound { .. }) => {
                let made = self.mkdir_at(&self.location(folder)?, path).await;
                self.explained(made).await?;
                self.act(method, &params, path).await?;
            }
            done => {
                if let Err(FsError::TimedOut { .. } | FsError::Disconnected { .. }) = &done {
                    // It may have been written all the same, and is removed with the next change.
                    self.remote().unconfirmed.add_temporary(&key, beside.clone());
                }
                self.explained(done).await?;
            }
        }
        let renamed = self.act(SessionFsMethod::Rename, &self.rename_params(&beside, &location), path).await;
        if let Err(error) = renamed {
            // The rename's own error is the one to report. A rename without an answer must find nothing if it comes
            // late.
            let is_gone = self.remove_temporary(&beside, path).await.is_ok();
            if !is_gone && matches!(error, FsError::TimedOut { .. } | FsError::Disconnected { .. }) {
                self.remote().unconfirmed.add_temporary(&key, beside);
            }
            return Err(self.why(error).await);
        }
        if let Some(expected) = &expected {
            self.remote().unconfirmed.replaced(&key, expected, true);
        }
        Ok(())
    }

    async fn remove_temporary(&self, location: &str, path: &str) -> Result<()> {
        let session_id = self.shared.session.clone();
        let (recursive, force) = (Some(false), Some(true));
        let params = RmParams { session_id, path: location.to_owned(), recursive, force };
        match self.act(SessionFsMethod::Rm, &params, path).await {
            Err(FsError::NotFound { .. }) => Ok(()),
            done => done,
        }
    }

    /// Writes a temporary file with this text, returns its stat and removes it.
    pub(super) async fn stat_of_text(&self, text: &str, path: &str) -> Result<Stat> {
        let name = temporary_name(path)?;
        let beside = self.join(&[&self.location("")?, &name]);
        self.act(SessionFsMethod::WriteFile, &self.write_params(&beside, text.to_owned()), path).await?;
        let stat = self.look(&name).await;
        // A leftover file does no harm.
        self.remove_temporary(&beside, path).await.ok();
        stat
    }

    async fn mkdir_at(&self, location: &str, path: &str) -> Result<()> {
        let session_id = self.shared.session.clone();
        let (recursive, mode) = (Some(true), Some(FOLDER_MODE));
        let params = MkdirParams { session_id, path: location.to_owned(), recursive, mode };
        self.act(SessionFsMethod::Mkdir, &params, path).await
    }

    /// Makes a call that has no result.
    async fn act<P: Serialize>(&self, method: SessionFsMethod, params: &P, path: &str) -> Result<()> {
        done(self.call::<_, Value>(method, params, path).await?, path)
    }

    async fn explained<T>(&self, done: Result<T>) -> Result<T> {
        match done {
            Err(error) => Err(self.why(error).await),
            done => done,
        }
    }

    /// The reason why a rename failed.
    async fn why_not_renamed(&self, error: FsError, to: &str) -> FsError {
        let path = error.path().to_owned();
        let Ok(source) = self.look(&path).await else { return self.why_not_there(error).await };
        if self.is_blocked(to).await {
            return FsError::NotADirectory { path };
        }
        if to.strip_prefix(&path).is_some_and(|rest| rest.starts_with('/')) {
            // A folder cannot be moved into itself, and there is no code for that.
            return error;
        }
        if path.strip_prefix(to).is_some_and(|rest| rest.starts_with('/')) {
            return FsError::NotEmpty { path };
        }
        match (source.kind, self.look(to).await.map(|target| target.kind)) {
            (FileKind::File | FileKind::Other, Ok(FileKind::Folder)) => FsError::IsADirectory { path },
            (FileKind::Folder, Ok(FileKind::File | FileKind::Other)) => FsError::NotADirectory { path },
            (FileKind::Folder, Ok(FileKind::Folder)) => FsError::NotEmpty { path },
            (FileKind::File | FileKind::Other, Ok(FileKind::File | FileKind::Other)) | (_, Err(_)) => error,
        }
    }

    fn write_params(&self, location: &str, content: String) -> WriteParams {
        let session_id = self.shared.session.clone();
        WriteParams { session_id, path: location.to_owned(), content, mode: Some(FILE_MODE) }
    }

    fn rename_params(&self, source: &str, target: &str) -> RenameParams {
        RenameParams { session_id: self.shared.session.clone(), src: source.to_owned(), dest: target.to_owned() }
    }
}

/// Reads the answer of a call that has no result.
fn done(answer: Value, path: &str) -> Result<()> {
    match answer {
        Value::Object(error) if error.contains_key("code") => {
            let error: wire::WireError = serde_json::from_value(Value::Object(error))
                .map_err(|error| FsError::BadAnswer { path: path.to_owned(), reason: error.to_string() })?;
            Err(failed(error, path))
        }
        // Some clients answer with an empty object, some with nothing.
        _ => Ok(()),
    }
}

/// A unique name for a file that is renamed at once.
fn temporary_name(path: &str) -> Result<String> {
    file_parts(path)?;
    let mut random = [0; 16];
    match getrandom::fill(&mut random) {
        Ok(()) => Ok(format!("grove-{}.tmp", hex::encode(random))),
        Err(error) => Err(FsError::Other { path: path.to_owned(), reason: format!("no random numbers: {error}") }),
    }
}
