//! One property of something that changes: its value now, and each value after it.
//!
//! A session has a single channel, which carries all of it. A property is a projection of that: ten thousand sessions
//! with twenty properties each have ten thousand channels, and a property costs nothing until somebody looks.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::session::SessionState;

/// A property: its value now, and each value after it. Values in between may be skipped, the newest never is.
pub struct Observable<T, S = SessionState> {
    source: watch::Receiver<Arc<S>>,
    /// `None` where what the property belongs to is gone: then it stays what it was.
    project: Project<S, T>,
    last: T,
}

type Project<S, T> = Box<dyn Fn(&S) -> Option<T> + Send + Sync>;

impl<T: PartialEq + Clone, S> Observable<T, S> {
    pub(crate) fn new(source: watch::Receiver<Arc<S>>, project: impl Fn(&S) -> T + Send + Sync + 'static) -> Self {
        let last = project(&source.borrow());
        Self { source, project: Box::new(move |state| Some(project(state))), last }
    }

    /// A property of something that may go: `first` is what it is where that is gone already.
    pub(crate) fn of_part(
        source: watch::Receiver<Arc<S>>,
        first: T,
        project: impl Fn(&S) -> Option<T> + Send + Sync + 'static,
    ) -> Self {
        let last = project(&source.borrow()).unwrap_or(first);
        Self { source, project: Box::new(project), last }
    }

    /// The value now.
    pub fn get(&self) -> T {
        (self.project)(&self.source.borrow()).unwrap_or_else(|| self.last.clone())
    }

    /// The next value that differs from the one last given, `None` when there will be no more. Dropping the future loses
    /// nothing.
    pub async fn changed(&mut self) -> Option<T> {
        loop {
            let now = (self.project)(&self.source.borrow_and_update());
            if let Some(now) = now
                && now != self.last
            {
                self.last = now.clone();
                return Some(now);
            }
            self.source.changed().await.ok()?;
        }
    }
}

impl<T: fmt::Debug, S> fmt::Debug for Observable<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("last", &self.last).finish_non_exhaustive()
    }
}
