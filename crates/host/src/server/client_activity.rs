//! Who uses the host, and when nobody has for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::host::Host;
use crate::sequencer::HostStopped;

/// How often to look, at most and at least.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(10);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The clients that came and went.
#[derive(Debug, Default)]
pub(super) struct ClientActivity {
    /// How many are here, whether they have said who they are or not.
    here: AtomicUsize,
    /// How often somebody came: one who came and went between two looks was there too.
    ever: AtomicU64,
}

/// A client, for as long as this is held.
#[derive(Debug)]
pub(super) struct ActivityGuard(Arc<ClientActivity>);

impl ClientActivity {
    pub(super) fn begin(self: &Arc<Self>) -> ActivityGuard {
        self.here.fetch_add(1, Ordering::Relaxed);
        self.announced();
        ActivityGuard(self.clone())
    }

    /// Somebody is about to come.
    pub(super) fn announced(&self) {
        self.ever.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until there has been no client and no turn for this long.
    ///
    /// Time is counted in sleeps instead of read from the clock: a machine that slept all night was not idle.
    pub(super) async fn over(&self, host: &Host, patience: Duration) -> Result<(), HostStopped> {
        let step = (patience / 10).clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
        let mut quiet = Duration::ZERO;
        let mut seen = self.ever.load(Ordering::Relaxed);
        while quiet < patience {
            let step = step.min(patience - quiet);
            host.0.env.clock.sleep(step).await;
            let status = host.status().await?;
            let ever = self.ever.load(Ordering::Relaxed);
            let used = ever != seen
                || self.here.load(Ordering::Relaxed) > 0
                || status.connections > 0
                || status.running_turns > 0;
            seen = ever;
            quiet = if used { Duration::ZERO } else { quiet + step };
        }
        Ok(())
    }
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.0.here.fetch_sub(1, Ordering::Relaxed);
        // The time without clients begins now.
        self.0.announced();
    }
}
