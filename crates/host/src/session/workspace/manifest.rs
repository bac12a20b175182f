//! Keeps `workspace.yaml` up to date.

use grove_core::*;
use grove_fs::SessionFs;
use grove_fs::workspace::{Field, Manifest, Value, Workspace, WorkspaceError};
use grove_storage::artifacts::moment;
use grove_storage::paths;
use grove_work::{local_path, remote_name};

use crate::env::Spawn;
use crate::session::persistence::ManifestUpdate;
use crate::session::read_checkout;

/// The facts about a session in the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct ManifestFacts {
    id: String,
    cwd: Option<String>,
    /// `None` if the session has no name of its own.
    name: Option<String>,
    named_by_person: Option<bool>,
    new_forks: u64,
    created_at: jiff::Timestamp,
    updated_at: jiff::Timestamp,
    checkout: Checkout,
}

impl ManifestFacts {
    /// Adds the current checkout. Reading it may take a while.
    pub(super) async fn seen_now(mut self, spawn: &dyn Spawn) -> Self {
        if let Some(seen) = read_checkout(spawn, self.cwd.as_deref()).await {
            self.checkout = seen;
        }
        self
    }
}

/// A manifest with the current facts, and all its other members.
pub(super) fn updated(manifest: Option<Manifest>, facts: &ManifestFacts) -> Manifest {
    let mut manifest = manifest.unwrap_or_else(|| Manifest::new(&facts.id, facts.cwd.as_deref(), facts.created_at));
    let mut set = |field: Field, text: Option<&str>| match text {
        Some(text) => manifest.set(field, Value::Text(text)),
        None => manifest.remove(field),
    };
    let checkout = &facts.checkout;
    set(Field::Id, Some(&facts.id));
    set(Field::Cwd, facts.cwd.as_deref());
    set(Field::GitRoot, checkout.root.as_deref());
    set(Field::Repository, checkout.remote.as_deref().and_then(remote_name).as_deref());
    set(Field::Branch, checkout.branch.as_deref());
    set(Field::Name, facts.name.as_deref());
    if let Some(named) = facts.named_by_person {
        manifest.set(Field::UserNamed, Value::Flag(named));
    }
    if facts.new_forks > 0 {
        let counted = manifest.number(Field::ForkCount).ok().flatten().unwrap_or(0);
        manifest.set(Field::ForkCount, Value::Number(counted + facts.new_forks));
    }
    manifest.set(Field::CreatedAt, Value::Time(facts.created_at));
    manifest.set(Field::UpdatedAt, Value::Time(facts.updated_at));
    manifest
}

/// Updates a manifest, and creates the workspace if there is none yet.
pub(in crate::session) async fn put(
    fs: &dyn SessionFs,
    folder: &str,
    facts: &ManifestFacts,
) -> Result<(), WorkspaceError> {
    let workspace = Workspace::of(fs, Some(folder))?;
    match workspace.manifest().await? {
        None => workspace.create(&updated(None, facts)).await,
        Some(manifest) => {
            let true_one = updated(Some(manifest.clone()), facts);
            if true_one == manifest { Ok(()) } else { workspace.set_manifest(&true_one).await }
        }
    }
}

/// The manifest of a session, as its task knows it.
#[derive(Debug, Default)]
pub(super) struct ManifestState {
    /// The facts that were last written.
    written: Option<ManifestFacts>,
    /// Says whether the user gave the session's name, if that is known.
    named_by_person: Option<bool>,
    /// The number of forks that the manifest does not count yet.
    new_forks: u64,
}

impl ManifestState {
    /// The facts that the manifest should have.
    pub(super) fn facts(&self, session: &Session) -> ManifestFacts {
        let directory = session.working_directories.first();
        let cwd = directory.map(|uri| match local_path(uri) {
            Ok(path) => path.to_string_lossy().into_owned(),
            Err(_) => uri.clone(),
        });
        ManifestFacts {
            id: session.id.to_string(),
            cwd,
            name: Some(session.title.clone()).filter(|_| session.title_source != TitleSource::None),
            named_by_person: self.named_by_person,
            new_forks: self.new_forks,
            created_at: moment(session.created_at),
            updated_at: moment(session.modified_at),
            checkout: session.checkout.clone(),
        }
    }

    /// Notes the source of the session's name.
    pub(super) fn named_by(&mut self, source: TitleSource) {
        self.named_by_person = Some(source == TitleSource::Person);
    }

    /// Counts a fork of the session.
    pub(super) fn count_fork(&mut self) {
        self.new_forks += 1;
    }

    /// Says whether the written manifest counts every fork.
    pub(super) fn counts_all_forks(&self) -> bool {
        self.new_forks == 0
    }

    /// Forgets what was written: the file was changed otherwise.
    pub(super) fn changed(&mut self) {
        self.written = None;
    }

    /// The manifest, to be written outside the task.
    pub(super) fn update(&self, session: &Session) -> ManifestUpdate {
        ManifestUpdate { facts: self.facts(session), written: self.written.clone() }
    }

    /// Notes the facts that the manifest has now.
    pub(super) fn saved(&mut self, facts: Option<ManifestFacts>) {
        if let Some(facts) = facts {
            self.new_forks = self.new_forks.saturating_sub(facts.new_forks);
            self.written = Some(ManifestFacts { new_forks: 0, ..facts });
        }
    }

    /// Updates the manifest, and creates the workspace if there is none yet.
    ///
    /// A failure costs nothing but the manifest: it is retried with the next change.
    pub(super) async fn write(&mut self, session: &Session, store: &dyn SessionFs) {
        let facts = self.facts(session);
        if self.written.as_ref() == Some(&facts) {
            return;
        }
        match put(store, &paths::folder(&session.id), &facts).await {
            Ok(()) => self.saved(Some(facts)),
            Err(error) => {
                tracing::warn!(session = %session.id, %error, "the session's manifest could not be written");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> ManifestFacts {
        ManifestFacts {
            id: "s1".into(),
            cwd: Some("/w".into()),
            name: Some("A: name".into()),
            named_by_person: None,
            new_forks: 0,
            created_at: moment(Timestamp(1_000)),
            updated_at: moment(Timestamp(2_000)),
            checkout: Checkout {
                root: Some("/w".into()),
                branch: Some("main".into()),
                remote: Some("https://example.org/o/n".into()),
                ..Checkout::default()
            },
        }
    }

    #[test]
    fn a_manifest_says_what_is_so_and_keeps_what_else_it_says() {
        let old =
            Manifest::parse("id: s1\ncwd: /old\nbranch: gone\nuser_named: true\nmine: 1\nfork_count: 2\n").unwrap();
        let new = updated(Some(old), &ManifestFacts { new_forks: 1, ..facts() });
        let text = |field| new.text(field).unwrap().map(str::to_owned);
        assert_eq!(text(Field::Cwd).as_deref(), Some("/w"));
        assert_eq!(text(Field::Repository).as_deref(), Some("o/n"));
        assert_eq!(text(Field::Branch).as_deref(), Some("main"));
        assert_eq!(text(Field::Name).as_deref(), Some("A: name"));
        assert_eq!(new.flag(Field::UserNamed).unwrap(), Some(true), "nobody has seen another name being given");
        assert_eq!(new.number(Field::ForkCount).unwrap(), Some(3));
        assert!(new.to_string().contains("mine: 1\n"), "{new}");
        let without = updated(Some(new), &ManifestFacts { checkout: Checkout::default(), name: None, ..facts() });
        assert_eq!((without.text(Field::GitRoot).unwrap(), without.text(Field::Branch).unwrap()), (None, None));
        assert_eq!(without.text(Field::Name).unwrap(), None);
    }

    #[test]
    fn a_manifest_that_is_true_stays_as_it_is() {
        let new = updated(None, &facts());
        assert_eq!(updated(Some(new.clone()), &facts()).to_string(), new.to_string());
    }

    #[tokio::test]
    async fn a_fork_is_counted_once_however_often_the_manifest_is_written() {
        let session = crate::session::reports::tests::session_with(vec![]);
        let store = grove_fs::MemoryFs::default();
        let count = async || {
            let folder = paths::folder(&session.id);
            let workspace = Workspace::of(&store, Some(&folder)).unwrap();
            workspace.manifest().await.unwrap().unwrap().number(Field::ForkCount).unwrap()
        };
        let mut state = ManifestState::default();
        state.write(&session, &store).await;
        assert_eq!(count().await, Some(0));
        state.count_fork();
        assert!(!state.counts_all_forks());
        state.write(&session, &store).await;
        state.changed();
        state.write(&session, &store).await;
        assert_eq!(count().await, Some(1));
        // One that comes while a save is running is not lost.
        state.count_fork();
        let update = state.update(&session);
        state.count_fork();
        state.saved(Some(update.facts));
        assert!(!state.counts_all_forks());
        state.write(&session, &store).await;
        assert_eq!((count().await, state.counts_all_forks()), (Some(2), true));
    }
}
