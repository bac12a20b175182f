//! Earlier versions of the plan: `plan-history.jsonl`.
//!
//! A fork of an earlier moment begins with the plan of that moment. So every write of the plan, and every begin and end
//! of a turn, records the plan here if it changed. Agents and people may write `plan.md` themselves: the next check
//! finds their version, with the time of the file.
//!
//! Each line is a version: `{"at":<milliseconds>,"plan":<text>}`, with `null` from when there was none; a version that
//! is too large has its size as `bytes` in place of its text. A line that was cut off is left out. A session that never
//! had a plan has no such file.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{LARGEST_TEXT, PLAN, PLAN_HISTORY, Workspace, WorkspaceError};
use crate::{FileKind, FsError};

/// The largest plan whose text is recorded. A fork from the time of a larger one gets the present plan.
pub const LONGEST_PLAN: usize = 256 * 1024;
/// The largest history. Past it the oldest versions are dropped, until half of it is left.
pub const LARGEST_HISTORY: usize = 4 * 1024 * 1024;

/// The plan at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanAtTime {
    /// Unknown: a fork gets the present plan, and reports it if it was written since.
    Unknown,
    None,
    Was(String),
}

/// The known state of a plan's versions, for repeated checks. It belongs to one session.
#[derive(Clone, Debug, Default)]
pub struct PlanTracker(Option<TrackedPlan>);

#[derive(Clone, Debug)]
struct TrackedPlan {
    /// The time of the file's last change and its size, if it existed.
    file: Option<(SystemTime, u64)>,
    /// The newest recorded version.
    newest: Option<PlanVersion>,
    /// The size of the history in bytes; `None` if its last line is cut off.
    size: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PlanVersion {
    /// The start of this version, in milliseconds since 1970.
    at: u64,
    plan: PlanAtTime,
    /// Its size, if its text is not kept.
    bytes: u64,
}

/// The occasion of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanCheck {
    /// It may have been written since the last check: the file's time counts.
    Perhaps,
    /// It was just written: the present time counts.
    Written,
}

impl PlanTracker {
    /// Records the plan if it differs from the newest recorded version. Returns whether it did. `now` is in
    /// milliseconds since 1970.
    pub async fn note(&mut self, workspace: &Workspace<'_>, look: PlanCheck, now: u64) -> Result<bool, WorkspaceError> {
        let file = workspace.plan_file().await?;
        let mut known = match self.0.take() {
            Some(known) if known.file == file && look == PlanCheck::Perhaps => {
                self.0 = Some(known);
                return Ok(false);
            }
            Some(known) => known,
            None => workspace.known().await?,
        };
        let plan = workspace.plan_then(file).await?;
        let was_missing = known.file.is_none();
        known.file = file;
        let is_noted = match &known.newest {
            Some(newest) => newest.is(&plan),
            None => plan.plan == PlanAtTime::None,
        };
        if is_noted {
            self.0 = Some(known);
            return Ok(false);
        }
        let last = known.newest.as_ref().map_or(0, |newest| newest.at);
        let at = match (look, file) {
            (PlanCheck::Perhaps, Some((modified, _))) => millis(modified).min(now),
            (PlanCheck::Perhaps | PlanCheck::Written, _) => now,
        };
        let version = PlanVersion { at: at.max(last), ..plan };
        let mut lines = String::new();
        if known.newest.is_none() && was_missing {
            lines.push_str(&PlanVersion { at: 0, plan: PlanAtTime::None, bytes: 0 }.line());
        }
        lines.push_str(&version.line());
        // After a failure half way, the next check starts over.
        known.size = Some(workspace.append_history(known.size, &lines).await?);
        known.newest = Some(version);
        self.0 = Some(known);
        Ok(true)
    }
}

impl Workspace<'_> {
    /// The plan at a moment, in milliseconds since 1970.
    pub async fn plan_at(&self, at: u64) -> Result<PlanAtTime, WorkspaceError> {
        let mut versions = parsed(&self.history().await?);
        let file = self.plan_file().await?;
        let now = self.plan_then(file).await?;
        let last = versions.last();
        if last.map_or(now.plan != PlanAtTime::None, |last| !last.is(&now)) {
            // There was no check since. A plan that was deleted existed until then.
            let since = file.map_or(u64::MAX, |(modified, _)| millis(modified));
            let since = since.max(last.map_or(0, |last| last.at));
            versions.push(PlanVersion { at: since, ..now });
        }
        if versions.is_empty() {
            return Ok(PlanAtTime::None);
        }
        let then = versions.into_iter().rev().find(|version| version.at <= at);
        Ok(then.map_or(PlanAtTime::Unknown, |version| version.plan))
    }

    /// The history up to a moment, for a fork of that moment.
    pub(crate) async fn history_until(&self, at: u64) -> Result<String, WorkspaceError> {
        let versions = parsed(&self.history().await?).into_iter();
        Ok(versions.take_while(|version| version.at <= at).map(|version| version.line()).collect())
    }

    async fn known(&self) -> Result<TrackedPlan, WorkspaceError> {
        let history = self.history().await?;
        let newest = parsed(&history).pop();
        let is_whole = history.is_empty() || history.ends_with('\n');
        // If there is a plan now, whether there was one before the first check is unknown.
        let file = self.plan_file().await?;
        Ok(TrackedPlan { file, newest, size: is_whole.then_some(history.len()) })
    }

    /// The whole file. One that is too large, not text or not a file is not ours, and the history starts over.
    async fn history(&self) -> Result<String, WorkspaceError> {
        match self.read_text(PLAN_HISTORY, LARGEST_HISTORY).await {
            Ok(text) => Ok(text.unwrap_or_default()),
            Err(WorkspaceError::TooLarge { .. } | WorkspaceError::NotText { .. }) => Ok(String::new()),
            Err(WorkspaceError::Fs(FsError::Link { .. } | FsError::IsADirectory { .. })) => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    /// Adds lines to the history, which has this size. Returns its new size.
    async fn append_history(&self, size: Option<usize>, lines: &str) -> Result<usize, WorkspaceError> {
        match size {
            Some(size) if size > 0 && size + lines.len() <= LARGEST_HISTORY => {
                self.store.append_file(&self.path(PLAN_HISTORY), lines.as_bytes()).await?;
                Ok(size + lines.len())
            }
            Some(_) | None => {
                let history = self.history().await?;
                let mut versions: Vec<String> = parsed(&history).iter().map(PlanVersion::line).collect();
                versions.extend(lines.split_inclusive('\n').map(str::to_owned));
                let mut bytes: usize = versions.iter().map(String::len).sum();
                let mut first = 0;
                if bytes > LARGEST_HISTORY {
                    while bytes > LARGEST_HISTORY / 2 && first + 1 < versions.len() {
                        bytes -= versions[first].len();
                        first += 1;
                    }
                }
                self.write(PLAN_HISTORY, versions[first..].concat().as_bytes()).await?;
                Ok(bytes)
            }
        }
    }

    /// The time of the plan's last change and its size; `None` if there is none, or if it is not a file.
    async fn plan_file(&self) -> Result<Option<(SystemTime, u64)>, WorkspaceError> {
        match self.store.stat(&self.path(PLAN)).await {
            Ok(stat) if stat.kind == FileKind::File => Ok(Some((stat.modified, stat.size))),
            Ok(_) | Err(FsError::NotFound { .. } | FsError::NotADirectory { .. } | FsError::Link { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The present plan, as a version without a time.
    async fn plan_then(&self, file: Option<(SystemTime, u64)>) -> Result<PlanVersion, WorkspaceError> {
        let Some((_, size)) = file else { return Ok(PlanVersion { at: 0, plan: PlanAtTime::None, bytes: 0 }) };
        let unkept = PlanVersion { at: 0, plan: PlanAtTime::Unknown, bytes: size };
        if size > LONGEST_PLAN as u64 {
            return Ok(unkept);
        }
        match self.read_text(PLAN, LARGEST_TEXT).await {
            Ok(Some(text)) if text.len() <= LONGEST_PLAN => {
                Ok(PlanVersion { at: 0, plan: PlanAtTime::Was(text), bytes: 0 })
            }
            Ok(None) => Ok(PlanVersion { at: 0, plan: PlanAtTime::None, bytes: 0 }),
            Ok(Some(_)) | Err(WorkspaceError::NotText { .. } | WorkspaceError::TooLarge { .. }) => Ok(unkept),
            Err(error) => Err(error),
        }
    }
}

impl PlanVersion {
    /// Returns whether this is the same plan.
    fn is(&self, other: &Self) -> bool {
        self.plan == other.plan && self.bytes == other.bytes
    }

    fn line(&self) -> String {
        let value = match &self.plan {
            PlanAtTime::Unknown => json!({"at": self.at, "bytes": self.bytes}),
            PlanAtTime::None => json!({"at": self.at, "plan": null}),
            PlanAtTime::Was(text) => json!({"at": self.at, "plan": text}),
        };
        format!("{value}\n")
    }

    fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let at = value.get("at")?.as_u64()?;
        let (plan, bytes) = match (value.get("plan"), value.get("bytes").and_then(Value::as_u64)) {
            (Some(Value::Null), _) => (PlanAtTime::None, 0),
            (Some(Value::String(text)), _) => (PlanAtTime::Was(text.clone()), 0),
            (Some(_), _) | (None, None) => return None,
            (None, Some(bytes)) => (PlanAtTime::Unknown, bytes),
        };
        Some(Self { at, plan, bytes })
    }
}

/// The versions of a history, in their order. Unreadable lines are left out.
fn parsed(history: &str) -> Vec<PlanVersion> {
    history.split('\n').filter_map(PlanVersion::parse).collect()
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryFs, SessionFs};

    const FOLDER: Option<&str> = Some("s");

    async fn set(watch: &mut PlanTracker, workspace: &Workspace<'_>, text: Option<&str>, at: u64) {
        watch.note(workspace, PlanCheck::Perhaps, at).await.unwrap();
        match text {
            Some(text) => workspace.set_plan(text).await.unwrap(),
            None => drop(workspace.delete_plan().await.unwrap()),
        }
        watch.note(workspace, PlanCheck::Written, at).await.unwrap();
    }

    fn was(text: &str) -> PlanAtTime {
        PlanAtTime::Was(text.to_owned())
    }

    #[tokio::test]
    async fn a_plan_is_known_for_every_moment_since_it_is_noted() {
        let store = MemoryFs::default();
        let workspace = Workspace::of(&store, FOLDER).unwrap();
        let mut watch = PlanTracker::default();
        watch.note(&workspace, PlanCheck::Perhaps, 5).await.unwrap();
        assert!(!store.exists("s").await.unwrap(), "a session that never had one writes nothing");
        assert_eq!(workspace.plan_at(5).await.unwrap(), PlanAtTime::None);
        set(&mut watch, &workspace, Some("one"), 10).await;
        set(&mut watch, &workspace, Some("one"), 15).await;
        // Another host continues.
        let mut watch = PlanTracker::default();
        set(&mut watch, &workspace, Some("two"), 20).await;
        set(&mut watch, &workspace, None, 30).await;
        set(&mut watch, &workspace, Some("one"), 40).await;
        let cases = [(9, PlanAtTime::None), (10, was("one")), (19, was("one")), (20, was("two")), (29, was("two"))];
        for (at, plan) in cases.into_iter().chain([(30, PlanAtTime::None), (39, PlanAtTime::None), (40, was("one"))]) {
            assert_eq!(workspace.plan_at(at).await.unwrap(), plan, "{at}");
        }
        assert_eq!(store.read_text("s/plan-history.jsonl").await.unwrap().lines().count(), 5);
        assert_eq!(parsed(&workspace.history_until(20).await.unwrap()).len(), 3);
    }

    #[tokio::test]
    async fn what_others_wrote_is_found_with_the_time_of_the_file() {
        let store = MemoryFs::default();
        let workspace = Workspace::of(&store, FOLDER).unwrap();
        let mut watch = PlanTracker::default();
        // There is one before the first check: the earlier state is unknown.
        store.write_text("s/plan.md", "theirs").await.unwrap();
        let written = millis(store.stat("s/plan.md").await.unwrap().modified);
        assert_eq!(workspace.plan_at(written - 1).await.unwrap(), PlanAtTime::Unknown);
        assert!(watch.note(&workspace, PlanCheck::Perhaps, u64::MAX).await.unwrap());
        assert!(!watch.note(&workspace, PlanCheck::Perhaps, u64::MAX).await.unwrap());
        assert_eq!(workspace.plan_at(written - 1).await.unwrap(), PlanAtTime::Unknown);
        assert_eq!(workspace.plan_at(written).await.unwrap(), was("theirs"));
        // Written since, without a check.
        std::thread::sleep(std::time::Duration::from_millis(5));
        store.write_text("s/plan.md", "later").await.unwrap();
        assert_eq!(workspace.plan_at(written + 1).await.unwrap(), was("theirs"));
        assert_eq!(workspace.plan_at(u64::MAX - 1).await.unwrap(), was("later"));
        store.rm("s/plan.md", crate::Removal::One).await.unwrap();
        assert_eq!(workspace.plan_at(written + 1).await.unwrap(), was("theirs"));
        // A plan that appeared between two checks of a session without one did not exist before.
        let other = Workspace::of(&store, Some("t")).unwrap();
        let mut watch = PlanTracker::default();
        watch.note(&other, PlanCheck::Perhaps, 1).await.unwrap();
        store.write_text("t/plan.md", "theirs").await.unwrap();
        watch.note(&other, PlanCheck::Perhaps, u64::MAX).await.unwrap();
        assert_eq!(other.plan_at(7).await.unwrap(), PlanAtTime::None);
    }

    #[tokio::test]
    async fn a_history_has_a_bound_and_what_is_before_it_is_unknown() {
        let store = MemoryFs::default();
        let workspace = Workspace::of(&store, FOLDER).unwrap();
        let mut watch = PlanTracker::default();
        for at in 1..40 {
            set(&mut watch, &workspace, Some(&format!("{at}{}", "x".repeat(LONGEST_PLAN - 2))), at).await;
            assert!(store.stat("s/plan-history.jsonl").await.unwrap().size <= LARGEST_HISTORY as u64);
        }
        assert_eq!(workspace.plan_at(1).await.unwrap(), PlanAtTime::Unknown);
        assert!(matches!(workspace.plan_at(39).await.unwrap(), PlanAtTime::Was(text) if text.starts_with("39x")));
        set(&mut watch, &workspace, Some(&"x".repeat(LONGEST_PLAN + 1)), 50).await;
        set(&mut watch, &workspace, Some("short"), 60).await;
        assert_eq!(workspace.plan_at(55).await.unwrap(), PlanAtTime::Unknown, "it was too large");
        assert_eq!(workspace.plan_at(60).await.unwrap(), was("short"));
    }

    #[tokio::test]
    async fn a_history_that_was_cut_off_anywhere_goes_on() {
        let store = MemoryFs::default();
        let workspace = Workspace::of(&store, FOLDER).unwrap();
        let mut watch = PlanTracker::default();
        set(&mut watch, &workspace, Some("one"), 10).await;
        set(&mut watch, &workspace, Some("two\n"), 20).await;
        let whole = store.read_file("s/plan-history.jsonl").await.unwrap();
        for end in 0..whole.len() {
            store.write_file("s/plan-history.jsonl", &whole[..end]).await.unwrap();
            store.write_text("s/plan.md", "two\n").await.unwrap();
            let mut watch = PlanTracker::default();
            set(&mut watch, &workspace, Some("three"), u64::MAX - 1).await;
            assert_eq!(workspace.plan_at(u64::MAX - 1).await.unwrap(), was("three"), "{end}");
            let now = millis(SystemTime::now()) + 60_000;
            assert_eq!(workspace.plan_at(now).await.unwrap(), was("two\n"), "{end}");
            let text = store.read_text("s/plan-history.jsonl").await.unwrap();
            assert!(text.lines().all(|line| PlanVersion::parse(line).is_some()), "{end}: {text}");
        }
    }
}
