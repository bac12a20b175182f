//! The clients of the host, and the time without any.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use grove_host::Host;
use grove_host::sequencer::HostStopped;

/// The shortest and the longest interval between two checks.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(10);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The clients that connected and disconnected.
#[derive(Debug, Default)]
pub(super) struct ClientActivity {
    /// The connected clients, identified or not.
    here: AtomicUsize,
    /// The number of connects: it also counts a client that came and left between two checks.
    ever: AtomicU64,
}

/// Counts as a client until it is dropped.
#[derive(Debug)]
pub(super) struct ActivityGuard(Arc<ClientActivity>);

impl ClientActivity {
    pub(super) fn begin(self: &Arc<Self>) -> ActivityGuard {
        self.here.fetch_add(1, Ordering::Relaxed);
        self.announced();
        ActivityGuard(self.clone())
    }

    /// Counts a client that is about to connect.
    pub(super) fn announced(&self) {
        self.ever.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until there has been no client and no turn for this long.
    ///
    /// Time is counted in sleeps instead of read from the clock: a machine that was suspended all night was not idle.
    pub(super) async fn over(&self, host: &Host, patience: Duration) -> Result<(), HostStopped> {
        let step = (patience / 10).clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
        let mut quiet = Duration::ZERO;
        let mut seen = self.ever.load(Ordering::Relaxed);
        while quiet < patience {
            let step = step.min(patience - quiet);
            host.env().clock.sleep(step).await;
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
        // The time without clients starts now.
        self.0.announced();
    }
}
