//! The session list: fetched once, updated by notifications, fetched again after each reconnect.

use indexmap::IndexMap;

use crate::dialect::{Dialect, ListChange};

/// A change of a dialect's session list.
pub(crate) type SessionListChange<D> = ListChange<<D as Dialect>::SessionRow, <D as Dialect>::SessionRowPatch>;

/// The sessions of a host, in its order; those that were added since the list was fetched come first.
pub struct SessionList<D: Dialect> {
    rows: IndexMap<String, D::SessionRow>,
    fetch: Option<Fetch<D>>,
    fetched: u64,
}

/// A list that is being fetched.
struct Fetch<D: Dialect> {
    rows: IndexMap<String, D::SessionRow>,
    pages: usize,
    /// Changes since the request. The response may be older, so they are applied once more at the end.
    news: Vec<SessionListChange<D>>,
    /// Resources that may have been removed while there was no connection; the list will tell.
    doubtful: Vec<String>,
}

impl<D: Dialect> SessionList<D> {
    pub(crate) fn new() -> Self {
        Self { rows: IndexMap::new(), fetch: None, fetched: 0 }
    }

    /// Returns whether the list was ever fetched. Before that, a missing session means nothing.
    pub fn is_fetched(&self) -> bool {
        self.fetched > 0
    }

    /// The number of completed fetches.
    pub fn fetched(&self) -> u64 {
        self.fetched
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn get(&self, session: &str) -> Option<&D::SessionRow> {
        self.rows.get(session)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &D::SessionRow> {
        self.rows.values()
    }

    pub(crate) fn begin(&mut self, doubtful: Vec<String>) {
        self.fetch = Some(Fetch { rows: IndexMap::new(), pages: 0, news: Vec::new(), doubtful });
    }

    pub(crate) fn is_fetching(&self) -> bool {
        self.fetch.is_some()
    }

    /// Adds a page. Returns the number of pages so far.
    pub(crate) fn page(&mut self, rows: Vec<D::SessionRow>) -> usize {
        let Some(fetch) = &mut self.fetch else { return 0 };
        fetch.rows.extend(rows.into_iter().map(|row| (D::row_uri(&row).to_owned(), row)));
        fetch.pages += 1;
        fetch.pages
    }

    /// Completes the list. Returns the doubtful resources of the request.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let Some(fetch) = self.fetch.take() else { return Vec::new() };
        self.rows = fetch.rows;
        self.fetched += 1;
        for news in fetch.news {
            // A row in the response is at least as new as the change that added it.
            let listed = matches!(&news, ListChange::Added(row) if self.rows.contains_key(D::row_uri(row)));
            if !listed {
                self.apply(news);
            }
        }
        fetch.doubtful
    }

    /// Abandons the fetch; the old list stays.
    pub(crate) fn abandon(&mut self) {
        self.fetch = None;
    }

    pub(crate) fn take(&mut self, news: SessionListChange<D>) {
        if let Some(fetch) = &mut self.fetch {
            fetch.news.push(news.clone());
        }
        self.apply(news);
    }

    fn apply(&mut self, news: SessionListChange<D>) {
        match news {
            ListChange::Added(row) => {
                let session = D::row_uri(&row).to_owned();
                match self.rows.get_mut(&session) {
                    Some(old) => *old = row,
                    None => {
                        self.rows.shift_insert(0, session, row);
                    }
                }
            }
            ListChange::Removed(session) => {
                self.rows.shift_remove(&session);
            }
            ListChange::Changed { session, patch } => {
                if let Some(row) = self.rows.get_mut(&session) {
                    D::patch(row, &patch);
                }
            }
        }
    }
}

impl<D: Dialect> std::fmt::Debug for SessionList<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("SessionList");
        shown.field("fetched", &self.fetched).field("rows", &self.rows).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use grove_wire::v1::{SessionStatus, SessionSummary};

    use super::*;
    use crate::V1;

    fn row(session: &str, title: &str) -> SessionSummary {
        SessionSummary {
            resource: session.to_owned(),
            provider: "p".to_owned(),
            title: title.to_owned(),
            status: SessionStatus::Idle,
            created_at: 0,
            modified_at: 0,
            model: None,
            working_directory: None,
        }
    }

    fn added(session: &str, title: &str) -> SessionListChange<V1> {
        ListChange::Added(row(session, title))
    }

    fn removed(session: &str) -> SessionListChange<V1> {
        ListChange::Removed(session.to_owned())
    }

    fn shown(list: &SessionList<V1>) -> String {
        list.iter().map(|row| format!("{}={} ", row.resource, row.title)).collect()
    }

    #[test]
    fn a_list_is_what_was_fetched_and_what_was_told_since() {
        let mut list = SessionList::<V1>::new();
        assert!(!list.is_fetched());
        list.begin(Vec::new());
        list.page(vec![row("a", "1"), row("b", "1")]);
        list.page(vec![row("c", "1")]);
        assert!(list.is_empty(), "not before it is whole");
        list.finish();
        assert_eq!(shown(&list), "a=1 b=1 c=1 ");
        list.take(added("d", "1"));
        list.take(removed("b"));
        list.take(removed("unknown"));
        list.take(added("c", "2"));
        assert_eq!(shown(&list), "d=1 a=1 c=2 ");
        list.begin(Vec::new());
        list.page(vec![row("a", "3")]);
        list.finish();
        assert_eq!(shown(&list), "a=3 ");
        assert_eq!(list.fetched(), 2);
    }

    #[test]
    fn what_is_told_while_the_list_is_on_its_way_is_not_lost() {
        let mut list = SessionList::<V1>::new();
        list.begin(vec!["x".to_owned()]);
        list.take(added("new", "1"));
        list.take(added("short", "1"));
        list.take(removed("short"));
        list.take(added("known", "old"));
        list.take(removed("gone"));
        assert_eq!(list.len(), 2, "changes are shown meanwhile");
        // The response was made between these changes.
        list.page(vec![row("known", "1"), row("gone", "1"), row("a", "1")]);
        assert_eq!(list.finish(), ["x"]);
        assert_eq!(shown(&list), "new=1 known=1 a=1 ");
        list.begin(Vec::new());
        list.page(vec![]);
        list.abandon();
        assert_eq!(list.len(), 3, "the old one stays");
    }
}
