//! The agents of disposed sessions, until they are gone.
//!
//! A disposed session has no task any more, and its agent says goodbye by itself. A host that ends waits for that.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts the sessions whose agents are leaving.
#[derive(Debug)]
pub(crate) struct Departures(watch::Sender<usize>);

/// The agents of one session that are leaving; dropped when they are gone.
#[derive(Debug)]
pub(crate) struct Departure(Arc<Departures>);

impl Default for Departures {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Departures {
    pub(crate) fn begin(self: &Arc<Self>) -> Departure {
        self.0.send_modify(|count| *count += 1);
        Departure(Arc::clone(self))
    }

    /// Waits until nobody is leaving.
    pub(crate) async fn settled(&self) {
        // The sender is here, so the wait cannot fail.
        self.0.subscribe().wait_for(|count| *count == 0).await.map(drop).ok();
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn departures_are_settled_when_the_last_one_is_over() {
        let departures = Arc::new(Departures::default());
        assert!(departures.settled().now_or_never().is_some());
        let (one, other) = (departures.begin(), departures.begin());
        drop(one);
        assert!(departures.settled().now_or_never().is_none());
        drop(other);
        assert!(departures.settled().now_or_never().is_some());
    }
}
