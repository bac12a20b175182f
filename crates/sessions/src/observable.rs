//! A property of a changing object: its present value, and each later one.
//!
//! A session has a single channel, which carries its whole state. A property is a projection of that: ten thousand
//! sessions with twenty properties each have ten thousand channels, and a property costs nothing until it is read.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::session::SessionState;

/// A property: its present value, and each later one. Values in between may be skipped, the newest never is.
pub struct Observable<T, S = SessionState> {
    source: watch::Receiver<Arc<S>>,
    /// `None` if the owner of the property is gone: then it keeps its value.
    project: Project<S, T>,
    last: T,
}

type Project<S, T> = Box<dyn Fn(&S) -> Option<T> + Send + Sync>;

impl<T: PartialEq + Clone, S> Observable<T, S> {
    pub(crate) fn new(source: watch::Receiver<Arc<S>>, project: impl Fn(&S) -> T + Send + Sync + 'static) -> Self {
        let last = project(&source.borrow());
        Self { source, project: Box::new(move |state| Some(project(state))), last }
    }

    /// A property of an owner that may disappear: `first` is its value if the owner is already gone.
    pub(crate) fn of_part(
        source: watch::Receiver<Arc<S>>,
        first: T,
        project: impl Fn(&S) -> Option<T> + Send + Sync + 'static,
    ) -> Self {
        let last = project(&source.borrow()).unwrap_or(first);
        Self { source, project: Box::new(project), last }
    }

    /// The present value.
    pub fn get(&self) -> T {
        (self.project)(&self.source.borrow()).unwrap_or_else(|| self.last.clone())
    }

    /// The next value that differs from the last returned one, `None` when there will be no more. Dropping the future
    /// loses nothing.
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
        f.debug_struct("Observable").field("last", &self.last).finish_non_exhaustive()
    }
}
