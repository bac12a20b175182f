//! Limits of connections and tokens: how many there are, and what each may do.

use grove_host::{Limits, limits as host};
use grove_server::limits as server;
use grove_wire::x_grove;

use crate::{Limit, LimitGroup, LimitValue, bytes, count, time};

pub(super) fn groups(limits: &Limits) -> Vec<LimitGroup> {
    vec![use_of_the_host(limits), connections(limits), tokens(), http()]
}

/// The bounds of the use that a client makes of the host.
fn use_of_the_host(limits: &Limits) -> LimitGroup {
    let about = "Large calls search, summarize, copy or move a session: trees, compactions, merges, forks, imports, exports, \
                 history lists, completions. Starts create a session or a chat, and with it an agent.";
    let rows = vec![
        Limit::new(
            "requests",
            LimitValue::CountRate(limits.requests),
            "connection",
            "uses `token-requests`; with that empty, reading pauses",
        )
        .set_by("limits.requests"),
        Limit::new(
            "token-requests",
            LimitValue::CountRate(limits.token_requests),
            "token",
            "reading from the sender pauses",
        )
        .set_by("limits.token-requests"),
        Limit::new(
            "bytes",
            LimitValue::ByteRate(limits.bytes),
            "connection",
            "uses `token-bytes`; with that empty, reading pauses",
        )
        .set_by("limits.bytes"),
        Limit::new("token-bytes", LimitValue::ByteRate(limits.token_bytes), "token", "reading from the sender pauses")
            .set_by("limits.token-bytes"),
        Limit::new("open-answers", count(limits.open_answers), "connection", "its next requests wait; reading pauses")
            .set_by("limits.open-answers"),
        Limit::new(
            "token-open-requests",
            count(limits.token_open_requests),
            "token",
            "the request is refused (-32029)",
        )
        .set_by("limits.token-open-requests"),
        Limit::new(
            "subscriptions",
            count(limits.subscriptions),
            "connection",
            "the subscription, or opening a session in the SDK, is refused (-32029)",
        )
        .set_by("limits.subscriptions"),
        Limit::new("watches", count(limits.watches), "connection", "the watch is refused (-32029)")
            .set_by("limits.watches"),
        Limit::new(
            "token-subscriptions",
            count(limits.token_subscriptions),
            "token",
            "the subscription or watch is refused (-32029)",
        )
        .set_by("limits.token-subscriptions"),
        Limit::new("large-calls", count(limits.large_calls), "connection, at a time", "the call is refused (-32029)")
            .set_by("limits.large-calls"),
        Limit::new(
            "token-large-calls",
            count(limits.token_large_calls),
            "token, at a time",
            "the call is refused (-32029)",
        )
        .set_by("limits.token-large-calls"),
        Limit::new("token-starts", LimitValue::CountRate(limits.token_starts), "token", "the call is refused (-32029)")
            .set_by("limits.token-starts"),
        Limit::new("imports", count(limits.imports), "connection, at a time", "the import is refused (-32602)")
            .set_by("limits.imports"),
    ];
    LimitGroup { subject: "Use of the host", about, limits: rows }
}

fn connections(limits: &Limits) -> LimitGroup {
    let rows = vec![
        Limit::new("connections", count(limits.connections), "host, authenticated", "the connection is rejected (503)")
            .set_by("limits.connections"),
        Limit::new("token-connections", count(limits.token_connections), "token", "the connection is rejected (503)")
            .set_by("limits.token-connections"),
        Limit::new(
            "owner-connections",
            count(limits.owner_connections),
            "owner's socket",
            "the newest connection is dropped",
        ),
        Limit::new(
            "unauthenticated-connections",
            count(limits.unauthenticated_connections),
            "listener",
            "one that gave a wrong token, or is waited for, is closed; else accepting pauses",
        ),
        Limit::new(
            "unauthenticated-bytes",
            bytes(limits.unauthenticated_bytes),
            "SDK connection",
            "the connection is closed",
        ),
        Limit::new(
            "unauthenticated-time",
            time(limits.unauthenticated_time),
            "SDK connection",
            "the connection is closed",
        ),
        Limit::new(
            "handshakes",
            count(server::HANDSHAKES),
            "TLS listener, at a time",
            "the oldest handshake is dropped",
        ),
        Limit::new("handshake-time", time(server::HANDSHAKE_TIMEOUT), "TLS connection", "the connection is closed"),
        Limit::new(
            "known-clients",
            count(limits.known_clients),
            "host",
            "the client that left first is forgotten; it gets snapshots when it returns",
        ),
        Limit::new("client-id", bytes(server::CLIENT_ID_BYTES), "client", "`initialize` is refused (-32602)"),
        Limit::new(
            "connection-silence",
            time(limits.connection_silence),
            "connection",
            "after three pings the connection is closed (4008)",
        ),
        Limit::new(
            "write-silence",
            time(limits.write_silence),
            "connection",
            "a client that reads nothing is disconnected (4008)",
        ),
        Limit::new(
            "close-grace",
            time(server::CLOSE_GRACE),
            "connection",
            "the socket is closed without its last words",
        ),
        Limit::new(
            "oversize-delay",
            time(server::OVERSIZE_DELAY),
            "connection",
            "a connection with a message that is too large is closed (1009) that much later",
        ),
        Limit::new("client-grace", time(limits.client_grace), "session", "an absent client's tools and requests end"),
        Limit::new(
            "attached-clients",
            count(x_grove::presence::MAX_ATTACHED_CLIENTS),
            "list of a session's clients",
            "`more` counts the others",
        ),
        Limit::new(
            "attended-told",
            count(server::ATTENDED_TOLD),
            "report of the host (`/healthz`)",
            "further sessions with clients are counted",
        ),
        Limit::new(
            "attached-told",
            count(server::ATTACHED_TOLD),
            "session in that report",
            "further clients are counted; names have at most 40 characters",
        ),
        Limit::new(
            "party-name",
            count(grove_core::MAX_PARTY_NAME_CHARS),
            "name of a token or client",
            "the rest of the name is cut",
        ),
        Limit::new(
            "return-grace",
            time(host::PRESENCE_GRACE),
            "session",
            "an absent client leaves the list of its clients",
        ),
        Limit::new(
            "usage-addresses",
            count(host::USAGE_ADDRESSES),
            "host",
            "addresses without connections are forgotten, and begin with full rates again",
        ),
        Limit::new("presence-notice", time(host::PRESENCE_NOTICE), "session", "further changes are told together"),
    ];
    LimitGroup { subject: "Connections", about: "", limits: rows }
}

fn http() -> LimitGroup {
    let longest = server::WRONG_TOKEN_DELAY * 2_u32.pow(server::WRONG_TOKEN_DOUBLINGS);
    let proofs = grove_host::Rate { per_second: server::PROOFS_PER_SECOND, burst: server::PROOF_BURST };
    let rows = vec![
        Limit::new(
            "http-head",
            bytes(server::HEAD_BYTES),
            "request",
            "the request is refused (431), and the connection closed",
        ),
        Limit::new("http-head-time", time(server::HEAD_TIMEOUT), "request", "the connection is closed"),
        Limit::new("http-body", bytes(server::BODY_BYTES), "request", "the request is refused (413)"),
        Limit::new("pairing-body", bytes(server::PAIRING_BODY_BYTES), "`POST /pair`", "the request is refused (413)"),
        Limit::new("status-damage", count(server::STATUS_DAMAGE), "`GET /healthz`", "further damage is counted"),
        Limit::new(
            "status-allow-all",
            count(server::STATUS_ALLOW_ALL),
            "`GET /healthz`",
            "further sessions that allow everything are counted",
        ),
        Limit::new("tickets", count(server::TICKETS), "host", "the oldest ticket is void"),
        Limit::new("ticket-time", time(server::TICKET_LIFETIME), "ticket", "the ticket is void (401)"),
        Limit::new("proofs", LimitValue::CountRate(proofs), "listener", "the proof is refused (429)"),
        Limit::new(
            "wrong-token-delay",
            time(server::WRONG_TOKEN_DELAY),
            "address",
            "it doubles with each wrong token, up to `wrong-token-longest-delay`",
        ),
        Limit::new(
            "wrong-token-longest-delay",
            time(longest),
            "address",
            "further wrong tokens are answered this much later",
        ),
        Limit::new(
            "wrong-token-window",
            time(server::WRONG_TOKEN_WINDOW),
            "address",
            "earlier wrong tokens count no more",
        ),
    ];
    LimitGroup { subject: "HTTP", about: "", limits: rows }
}

fn tokens() -> LimitGroup {
    let rows = vec![
        Limit::new("tokens", count(host::TOKENS), "host", "the token is refused"),
        Limit::new("token-name", bytes(host::TOKEN_NAME_BYTES), "token", "the token is refused"),
        Limit::new(
            "token-scopes",
            count(server::NAMED_SCOPES),
            "request for a token",
            "the request is refused (-32602)",
        ),
        Limit::new("codes", count(host::CODES), "host, unused", "the oldest code is void"),
        Limit::new("code-time", time(host::CODE_TIME), "one-time code", "the code is void (401)"),
        Limit::new("page-tokens", count(host::PAGE_TOKENS), "host", "the token that expires first is revoked"),
        Limit::new(
            "page-token-time",
            time(host::PAGE_TOKEN_TIME),
            "token of a page, since its last login",
            "the token has expired (401)",
        ),
        Limit::new(
            "wrong-token-addresses",
            count(server::WRONG_TOKEN_ADDRESSES),
            "listener",
            "the address with the fewest wrong tokens is forgotten",
        ),
        Limit::new(
            "recorded-wrong-tokens",
            count(server::RECORDED_WRONG_TOKENS),
            "address and minute",
            "of further ones only each doubling is in the audit log",
        ),
        Limit::new(
            "audit-subject",
            bytes(host::AUDITED_SUBJECT_BYTES),
            "request in an audit record",
            "the subject is left out, and `grove policy test` skips the request",
        ),
        Limit::new("client-hook", time(host::CLIENT_HOOK_TIME), "call of a client's hook", "the hook has failed"),
        Limit::new(
            "hook-client",
            time(host::HOOK_CLIENT_WAIT),
            "call of a hook whose client is away",
            "the hook has failed",
        ),
        Limit::new(
            "hook-context",
            bytes(host::HOOK_CONTEXT_BYTES),
            "text that hooks add to a prompt",
            "the text is cut",
        ),
        Limit::new(
            "hook-reason",
            count(host::HOOK_REASON_CHARS),
            "reason of a hook, in characters",
            "the reason is cut",
        ),
        Limit::new("hooked-prompts", count(host::HOOKED_PROMPTS), "session with hooks", "the prompt is refused"),
        Limit::new(
            "stop-blocks",
            count(host::STOP_BLOCKS),
            "session whose hooks do not let the agent stop",
            "the agent stops",
        ),
        Limit::new(
            "audit-text",
            count(host::AUDIT_TEXT_CHARS),
            "text of an audit record, in characters",
            "the text is cut",
        ),
    ];
    LimitGroup { subject: "Tokens", about: "", limits: rows }
}
