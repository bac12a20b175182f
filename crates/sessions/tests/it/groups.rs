//! Sessions under headings.

use std::sync::Arc;

use grove_sessions::grouping::{GroupLocation, SessionGroup, group};
use grove_sessions::session::SessionWorkspace;
use grove_sessions::{Metadata, Session, SessionSource};

use crate::provider::TestProvider;

/// Sessions named by the position of their metadata in the list.
struct Rows(Vec<Arc<SessionSource>>);

impl Rows {
    fn of(all: &[Metadata]) -> Self {
        let provider = TestProvider::new("p");
        let row = |(number, metadata): (usize, &Metadata)| {
            let source = provider.make(&number.to_string(), "/");
            source.update(|state| state.workspace = metadata.workspace(None).map(Arc::new));
            source
        };
        Self(all.iter().enumerate().map(row).collect())
    }

    fn sessions(&self) -> Vec<Session> {
        self.0.iter().map(|source| source.session()).collect()
    }

    fn groups(&self) -> Vec<SessionGroup> {
        group(self.sessions())
    }

    /// Each heading with the sessions below it.
    fn headings(&self) -> Vec<String> {
        let below = |group: &SessionGroup| {
            group.sessions.iter().map(|session| session.id().local().to_owned()).collect::<Vec<_>>()
        };
        self.groups().iter().map(|group| format!("{}: {}", group.heading(), below(group).join(" "))).collect()
    }
}

#[test]
fn sessions_of_one_folder_stand_under_its_label() {
    let rows = Rows::of(&[Metadata::local("/w/b"), Metadata::local("/w/A"), Metadata::local("/w/b")]);
    assert_eq!(rows.headings(), ["A: 1", "b: 0 2"]);
}

#[test]
fn folders_of_one_name_stay_apart_and_show_where_they_lie() {
    let rows = Rows::of(&[Metadata::local("/x/work/app"), Metadata::local("/x/play/app"), Metadata::local("/x/site")]);
    assert_eq!(rows.headings(), ["app (play): 1", "app (work): 0", "site: 2"]);
    let rows = Rows::of(&[Metadata::local("/one/src/app"), Metadata::local("/two/src/app")]);
    assert_eq!(rows.headings(), ["app (one/src): 0", "app (two/src): 1"]);
    let rows = Rows::of(&[Metadata::local("/app"), Metadata::local("/two/app")]);
    assert_eq!(rows.headings(), ["app (file:///app): 0", "app (file:///two/app): 1"]);
}

#[test]
fn the_same_folder_on_another_host_is_a_group_of_its_own() {
    let rows = Rows::of(&[Metadata::local("/w/app"), Metadata::remote("dev-box", "/w/app")]);
    assert_eq!(rows.headings(), ["app: 0", "app [dev-box]: 1"]);
    let remote = &rows.groups()[1];
    assert_eq!(remote.key.as_ref().unwrap().host.as_deref(), Some("dev-box"));
}

#[test]
fn the_same_repository_on_another_host_is_a_group_of_its_own() {
    let clone = |metadata: Metadata| metadata.with("repositoryUrl", "https://github.com/acme/site");
    let there = clone(Metadata::remote("dev-box", "/srv/site"));
    let rows = Rows::of(&[clone(Metadata::local("/w/site")), there.clone(), there]);
    assert_eq!(rows.headings(), ["site: 0", "site [dev-box]: 1 2"]);
    let keys: Vec<_> = rows.groups().into_iter().map(|group| group.key.unwrap()).collect();
    assert_eq!(keys[0].place, GroupLocation::Repository("github.com/acme/site".into()));
    assert_eq!((keys[0].host.as_deref(), keys[1].host.as_deref()), (None, Some("dev-box")));
    assert_eq!(keys[0].place, keys[1].place, "only the host tells them apart");
}

#[test]
fn places_of_one_label_that_only_the_host_tells_apart_name_it() {
    let rows = Rows::of(&[Metadata::cloud("acme", "site"), Metadata::cloud("acme", "site")]);
    rows.0[1].update(|state| {
        let workspace: &mut SessionWorkspace = Arc::make_mut(state.workspace.as_mut().unwrap());
        workspace.host = Some("dev-box".into());
    });
    assert_eq!(rows.headings(), ["site (dev-box github.com/acme/site): 1", "site (github.com/acme/site): 0"]);
}

#[test]
fn a_repository_is_one_group_wherever_it_was_cloned() {
    let clone = |folder: &str| Metadata::local(folder).with("repositoryUrl", "https://github.com/acme/site");
    let rows =
        Rows::of(&[clone("/w/site"), clone("/w/copy"), Metadata::cloud("acme", "site"), Metadata::local("/w/site")]);
    assert_eq!(rows.headings(), ["site (acme): 0 1 2", "site (w): 3"]);
    let groups = rows.groups();
    assert_eq!(groups[0].key.as_ref().unwrap().place, GroupLocation::Repository("github.com/acme/site".into()));
}

#[test]
fn worktrees_stand_with_their_repository() {
    let main = Metadata::local("/w/app").with("repositoryPath", "/w/app");
    let rows = Rows::of(&[main, Metadata::worktree("/w/app", "/w/app.worktrees/fix")]);
    assert_eq!(rows.headings(), ["app: 0 1"]);
}

#[test]
fn sessions_without_a_place_or_a_label_come_last() {
    let nameless = Metadata::default().with("repositoryNwo", "owner/");
    let rows = Rows::of(&[Metadata::default(), Metadata::local("/w/zebra"), nameless]);
    assert_eq!(rows.headings(), ["zebra: 1", "Unknown: 0 2"]);
    let named_so = Rows::of(&[Metadata::default(), Metadata::local("/w/Unknown"), Metadata::local("/w/zebra")]);
    assert_eq!(named_so.headings(), ["Unknown: 1", "zebra: 2", "Unknown: 0"]);
}

#[test]
fn a_group_is_called_as_most_of_its_sessions_call_it() {
    let called = |label: &str| {
        let mut workspace = SessionWorkspace::new("file:///w/app", label);
        workspace.host = Some("h".into());
        workspace
    };
    let provider = TestProvider::new("p");
    let sources: Vec<_> = ["b", "a", "b", "c", "a"]
        .iter()
        .enumerate()
        .map(|(number, label)| {
            let source = provider.make(&number.to_string(), "/");
            source.update(|state| state.workspace = Some(Arc::new(called(label))));
            source
        })
        .collect();
    let groups = group(sources.iter().map(|source| source.session()));
    assert_eq!((groups.len(), &*groups[0].label), (1, "a"), "of equally many the first in the alphabet");
}
