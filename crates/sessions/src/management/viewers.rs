//! The viewers: each has its own selection, over one list.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::view::{ActiveView, ReplacementRequest, Selection};
use crate::ids::ProviderId;
use crate::registry::RegisteredProvider;
use crate::session::SessionState;

/// The id of a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ViewerId(u64);

/// One viewer.
#[derive(Debug, Default)]
pub(super) struct Viewer {
    pub(super) selection: Selection,
    view: watch::Sender<Arc<ActiveView>>,
}

/// All viewers.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    all: BTreeMap<ViewerId, Viewer>,
    next: u64,
}

impl Viewers {
    pub(super) fn add(&mut self) -> ViewerId {
        self.next += 1;
        let id = ViewerId(self.next);
        self.all.insert(id, Viewer::default());
        id
    }

    pub(super) fn remove(&mut self, id: ViewerId) {
        self.all.remove(&id);
    }

    pub(super) fn get(&self, id: ViewerId) -> Option<&Viewer> {
        self.all.get(&id)
    }

    pub(super) fn selection(&mut self, id: ViewerId) -> Option<&mut Selection> {
        self.all.get_mut(&id).map(|viewer| &mut viewer.selection)
    }

    pub(super) fn selections(&mut self) -> impl Iterator<Item = &mut Selection> {
        self.all.values_mut().map(|viewer| &mut viewer.selection)
    }

    /// The replacement requests that were not begun yet. They count as begun from now on.
    pub(super) fn replacement_requests(&mut self) -> Vec<(ViewerId, ReplacementRequest)> {
        let replacement_requests =
            self.all.iter_mut().filter_map(|(id, viewer)| Some((*id, viewer.selection.begin_replacement()?)));
        replacement_requests.collect()
    }

    /// Updates every view from its selection. `true`: one of them changed.
    pub(super) fn look(&mut self, entries: &[RegisteredProvider], persisted: Option<&ProviderId>) -> bool {
        let mut differs = false;
        for viewer in self.all.values_mut() {
            let view = viewer.selection.view(entries, persisted);
            differs |= viewer.view.send_if_modified(|known| {
                let differs = **known != view;
                if differs {
                    *known = Arc::new(view);
                }
                differs
            });
        }
        differs
    }

    /// The active sessions of all viewers, for waiting until one of them changes.
    pub(super) fn active(&self) -> Vec<watch::Receiver<Arc<SessionState>>> {
        let active = self.all.values().filter_map(|viewer| Some(viewer.selection.active()?.receiver()));
        active
            .map(|mut receiver| {
                receiver.mark_unchanged();
                receiver
            })
            .collect()
    }
}

impl Viewer {
    pub(super) fn view(&self) -> Arc<ActiveView> {
        self.view.borrow().clone()
    }

    pub(super) fn follow(&self) -> watch::Receiver<Arc<ActiveView>> {
        self.view.subscribe()
    }
}
