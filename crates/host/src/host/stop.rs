//! Stopping the host.

use tokio::sync::oneshot;

use super::Host;
use crate::sequencer::ToSequencer;
use crate::session::{SessionHandle, ToSession};
use crate::subscriber::DisconnectReason;

impl Host {
    /// Stops: no new turns, a grace period for running ones, then an error for the rest; closes connections.
    pub async fn stop(&self) {
        self.stop_sessions().await;
        // Everything published before this is in the queues by now.
        self.0.sequencer.tell(ToSequencer::CloseAll(DisconnectReason::Stopping)).await.ok();
        self.0.unattached.end();
        self.0.terminals.end().await;
    }

    /// Stops a host whose storage was deleted: clients are told so. Sessions that wait for something to be written are given
    /// up after a while.
    pub async fn stop_without_storage(&self) {
        let patience = self.0.env.clock.sleep(self.0.config.limits.stop_grace);
        futures_util::future::select(Box::pin(self.stop_sessions()), patience).await;
        self.0.sequencer.tell(ToSequencer::CloseAll(DisconnectReason::StorageLost)).await.ok();
        self.0.unattached.end();
        self.0.terminals.end().await;
    }

    async fn stop_sessions(&self) {
        let open: Vec<SessionHandle> = {
            let mut sessions = self.sessions();
            sessions.stopping = true;
            sessions.open.values().cloned().collect()
        };
        let mut ending = Vec::new();
        for handle in open {
            let (done, stopped) = oneshot::channel();
            if handle.inbox.send(ToSession::Stop(done)).await.is_ok() {
                ending.push(stopped);
            }
        }
        for stopped in ending {
            // A session that was disposed meanwhile has stopped as well.
            stopped.await.ok();
        }
        let patience = self.0.env.clock.sleep(self.0.config.limits.stop_grace);
        futures_util::future::select(Box::pin(self.0.departures.settled()), patience).await;
        self.remove_spills_of_evicted().await;
    }
}
