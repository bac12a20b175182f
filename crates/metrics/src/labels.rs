//! The labels of metrics. Each is an enum: its values are known when the program is compiled.

/// A label with a bounded set of values.
pub trait Label: Copy + 'static {
    /// The name of the label.
    const NAME: &'static str;
    /// Every value, in the order of [`Label::index`].
    const ALL: &'static [Self];

    /// The value in the text format.
    fn value(self) -> &'static str;
    /// The position of the value in [`Label::ALL`].
    fn index(self) -> usize;
}

macro_rules! label {
    ($(#[$doc:meta])* $type:ident $name:literal { $($variant:ident = $value:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($variant),+ }

        impl Label for $type {
            const NAME: &'static str = $name;
            const ALL: &'static [Self] = &[$($type::$variant),+];

            fn value(self) -> &'static str {
                match self { $($type::$variant => $value),+ }
            }

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

label! {
    /// The dialect of a connection.
    ProtocolLabel "dialect" { V1 = "v1", Ahp = "ahp", Copilot = "copilot" }
}

label! {
    /// The transport of a connection's messages.
    TransportLabel "transport" { WebSocket = "websocket", Copilot = "copilot" }
}

label! {
    /// The end of a notification.
    NotificationLabel "outcome" {
        Delivered = "delivered",
        Failed = "failed",
        Gone = "gone",
        Replaced = "replaced",
        Dropped = "dropped",
        Tested = "tested",
    }
}

label! {
    /// The reason why a connection ended.
    CloseLabel "reason" {
        Gone = "gone",
        Behind = "behind",
        TakenOver = "taken_over",
        Stopping = "stopping",
        StorageLost = "storage_lost",
        TooBig = "too_big",
        Silent = "silent",
        NoVersion = "no_version",
        TokenEnded = "token_ended",
        Moved = "moved",
    }
}

label! {
    /// The kind of a refused request.
    RefusalLabel "kind" {
        InvalidParams = "invalid_params",
        InvalidState = "invalid_state",
        SessionNotFound = "session_not_found",
        AgentNotFound = "agent_not_found",
        SessionExists = "session_exists",
        Busy = "busy",
        NotFound = "not_found",
        NotPermitted = "not_permitted",
        Exists = "exists",
        LimitReached = "limit_reached",
        Failed = "failed",
        Malformed = "malformed",
        UnknownMethod = "unknown_method",
        Other = "other",
    }
}

label! {
    /// The outcome of a turn.
    TurnLabel "outcome" { Completed = "completed", Cancelled = "cancelled", Failed = "failed" }
}

label! {
    /// The outcome of a tool call.
    ToolCallLabel "outcome" { Succeeded = "succeeded", Failed = "failed", Denied = "denied" }
}

label! {
    /// The answer to a permission request.
    PermissionLabel "outcome" { Allowed = "allowed", Denied = "denied", Withdrawn = "withdrawn" }
}

label! {
    /// The first start of a chat's agent under this host, or a later one.
    AgentStartLabel "kind" { First = "first", Again = "again" }
}

label! {
    /// The time at which a batch must reach the disk.
    SyncLabel "sync" { Now = "now", Later = "later" }
}

label! {
    /// The answer to a client that reconnects.
    ReconnectLabel "answer" { Replay = "replay", Snapshots = "snapshots" }
}

label! {
    /// The kind of a store's call.
    StoreCallLabel "call" {
        Read = "read",
        Write = "write",
        Append = "append",
        Sync = "sync",
        List = "list",
        Change = "change",
    }
}

label! {
    /// An operation whose duration is watched.
    SlowLabel "operation" {
        JournalWrite = "journal_write",
        StoreCall = "store_call",
        AgentStart = "agent_start",
        Request = "request",
    }
}
