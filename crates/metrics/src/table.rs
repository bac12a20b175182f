//! The table of all metrics.

use std::time::Duration;

use crate::encode::MetricFamily;
use crate::labels::*;
use crate::process::ProcessUsage;
use crate::slow::SlowThreshold;
use crate::value::{Counter, Gauge, Info, Labelled, Metric, Seconds, Sizes};

/// A metric's row of the reference page.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) kind: &'static str,
    /// The label and its values.
    pub(crate) label: fn() -> Option<(&'static str, Vec<&'static str>)>,
}

macro_rules! metrics {
    ($($field:ident: $type:ty = $name:literal, $help:literal;)+) => {
        /// Every metric of a host.
        #[derive(Debug, Default)]
        pub struct Metrics {
            /// The duration above which an operation is slow. It is no metric itself.
            pub slow_threshold: SlowThreshold,
            $(#[doc = $help] pub $field: $type,)+
        }

        /// Every metric, in the order of the text format.
        pub(crate) const DEFINITIONS: &[Definition] = &[$(Definition {
            name: $name,
            help: $help,
            kind: <$type as Metric>::KIND,
            label: <$type as Metric>::label,
        }),+];

        impl Metrics {
            /// All metrics with their numbers.
            pub fn families(&self) -> Vec<MetricFamily> {
                vec![$(MetricFamily::of($name, $help, &self.$field)),+]
            }
        }
    };
}

metrics! {
    build_info: Info = "grove_build_info", "The version of the program; the value is always 1.";
    uptime: Gauge = "grove_uptime_seconds", "The time since the host started.";
    open_files: Gauge = "process_open_fds", "Open file descriptors of the process.";
    open_files_limit: Gauge = "process_max_fds", "The limit of open file descriptors.";
    resident_bytes: Gauge = "process_resident_memory_bytes", "Memory of the process that is in RAM.";
    threads: Gauge = "process_threads", "Threads of the process.";

    connections: Labelled<ProtocolLabel, Gauge> = "grove_connections", "Connections whose client has said which dialect it speaks.";
    connections_opened: Labelled<ProtocolLabel, Counter> = "grove_connections_opened_total", "Connections since the start, by dialect.";
    connections_closed: Labelled<CloseLabel, Counter> = "grove_connections_closed_total", "Connections that ended; `behind` is close code 4008 after a full queue, `silent` the same code after no sign of life.";
    subscriptions: Gauge = "grove_subscriptions", "Subscriptions of all connections.";
    messages_received: Labelled<TransportLabel, Counter> = "grove_messages_received_total", "Frames received from clients.";
    received_bytes: Labelled<TransportLabel, Counter> = "grove_received_bytes_total", "Bytes of these frames.";
    messages_sent: Labelled<TransportLabel, Counter> = "grove_messages_sent_total", "Frames given to the sockets of clients.";
    sent_bytes: Labelled<TransportLabel, Counter> = "grove_sent_bytes_total", "Bytes of these frames.";
    request_seconds: Seconds = "grove_request_seconds", "The time until a client's frame was handled, or its slow work was started.";
    refusals: Labelled<RefusalLabel, Counter> = "grove_refusals_total", "Requests that were answered with an error.";
    wrong_tokens: Counter = "grove_wrong_tokens_total", "Requests and log-ins with a wrong token, ticket or proof.";
    process_lookups: Counter = "grove_process_lookups_total", "Searches for the process behind a connection, which read all of /proc for one over TCP.";
    reconnects: Labelled<ReconnectLabel, Counter> = "grove_reconnects_total", "Clients that reconnected: with the events that they missed, or with snapshots.";

    sessions: Gauge = "grove_sessions", "Sessions that the host has, in memory or not.";
    sessions_loaded: Gauge = "grove_sessions_loaded", "Sessions in memory.";
    sessions_created: Counter = "grove_sessions_created_total", "Sessions that were created or imported.";
    sessions_removed: Counter = "grove_sessions_removed_total", "Sessions that were deleted.";
    sessions_evicted: Counter = "grove_sessions_evicted_total", "Idle sessions that left memory.";

    turns_running: Gauge = "grove_turns_running", "Turns that run now.";
    turns_started: Counter = "grove_turns_started_total", "Turns that began.";
    turns_finished: Labelled<TurnLabel, Counter> = "grove_turns_finished_total", "Turns that ended.";
    turn_seconds: Seconds = "grove_turn_seconds", "The duration of turns that ended.";
    tool_calls: Labelled<ToolCallLabel, Counter> = "grove_tool_calls_total", "Tool calls that ended; `denied` ones did not run, or their result was withheld.";
    permission_requests: Counter = "grove_permission_requests_total", "Permission requests that were put to a person.";
    permission_answers: Labelled<PermissionLabel, Counter> = "grove_permission_answers_total", "Permission requests that are settled; `withdrawn` ones ended with their turn.";
    permission_wait_seconds: Seconds = "grove_permission_wait_seconds", "The time that permission requests waited for an answer.";

    notifications: Labelled<NotificationLabel, Counter> = "grove_notifications_total", "Messages to devices and the webhook; `gone` ones ended a subscription, `dropped` ones found the queue full.";

    agent_starts: Labelled<AgentStartLabel, Counter> = "grove_agent_starts_total", "Connections to agents that were opened for a chat.";
    agent_start_failures: Counter = "grove_agent_start_failures_total", "Connections to agents that could not be opened.";
    agent_start_seconds: Seconds = "grove_agent_start_seconds", "The time that opening a connection to an agent took.";

    journal_batches: Labelled<SyncLabel, Counter> = "grove_journal_batches_total", "Batches that were written to the journal.";
    journal_events: Counter = "grove_journal_events_total", "Events in these batches.";
    journal_bytes: Counter = "grove_journal_bytes_total", "Bytes that were written to the journal's files.";
    journal_errors: Counter = "grove_journal_errors_total", "Batches that could not be written.";
    journal_write_seconds: Seconds = "grove_journal_write_seconds", "The time of a batch's write, without its sync.";
    journal_sync_seconds: Seconds = "grove_journal_sync_seconds", "The time of a batch's fdatasync.";
    sequencer_batch: Sizes = "grove_sequencer_batch_messages", "Messages that the sequencer handled together.";

    store_calls: Labelled<StoreCallLabel, Counter> = "grove_store_calls_total", "Calls of the stores of sessions, except those of storage clients.";
    store_errors: Labelled<StoreCallLabel, Counter> = "grove_store_errors_total", "Calls that failed. A missing file is no failure.";
    store_seconds: Seconds = "grove_store_call_seconds", "The time of these calls.";

    slow_operations: Labelled<SlowLabel, Counter> = "grove_slow_operations_total", "Operations that took longer than `slow-ms`; the log names each.";
}

/// The numbers of sessions and turns, which the state of the host has.
#[derive(Clone, Copy, Debug)]
pub struct Sessions {
    pub all: usize,
    pub loaded: usize,
    pub running_turns: usize,
}

impl Metrics {
    /// All metrics in Prometheus' text format.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        self.families().iter().for_each(|family| family.write(&mut out));
        out
    }

    /// Sets the gauges that are read when somebody asks for them.
    pub fn refresh(&self, sessions: Sessions, uptime: Duration) {
        self.sessions.set(sessions.all as u64);
        self.sessions_loaded.set(sessions.loaded as u64);
        self.turns_running.set(sessions.running_turns as u64);
        self.uptime.set(uptime.as_secs());
        let usage = ProcessUsage::read();
        let gauges = [
            (&self.open_files, usage.open_files),
            (&self.open_files_limit, usage.open_files_limit),
            (&self.resident_bytes, usage.resident_bytes),
            (&self.threads, usage.threads),
        ];
        for (gauge, number) in gauges {
            number.into_iter().for_each(|number| gauge.set(number));
        }
    }
}
