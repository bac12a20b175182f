//! Limits of the session hub.

use grove_session_hub::limits as hub;
use grove_sessions::limits as sessions;
use grove_wire::limits as wire;

use crate::{Limit, LimitGroup, bytes, count, time};

pub(super) fn groups() -> Vec<LimitGroup> {
    vec![list_of_sessions()]
}

fn list_of_sessions() -> LimitGroup {
    let rows = vec![
        Limit::new(
            "hub-query",
            bytes(sessions::QUERY_BYTES),
            "message through the session hub",
            "the message is refused (-32602)",
        ),
        Limit::new(
            "hub-attachments",
            count(sessions::ATTACHMENTS),
            "message through the session hub",
            "the message is refused (-32602)",
        ),
        Limit::new(
            "hub-attachment",
            bytes(sessions::ATTACHMENT_BYTES),
            "attachment of such a message",
            "the message is refused (-32602)",
        ),
        Limit::new(
            "hub-viewers",
            count(hub::DETACHED_VIEWERS),
            "host, disconnected",
            "the viewer that left first is forgotten",
        ),
        Limit::new("hub-frames", count(hub::PENDING_FRAMES), "subscriber of the session hub", "it gets the list again"),
        Limit::new("hub-hosts", count(hub::HOSTS_AT_ONCE), "list, at a time", "further hosts wait"),
        Limit::new("hub-host-time", time(hub::HOST_TIME), "list of another host", "its cached sessions are shown"),
        Limit::new(
            "hub-first-list",
            time(hub::FIRST_LIST_TIME),
            "list of this host",
            "the first list is sent without them",
        ),
        Limit::new("hub-linger", time(hub::LINGER_TIME), "session hub without connections", "the session hub ends"),
        Limit::new("hub-list-events", count(sessions::LIST_EVENTS), "listener", "it lists again"),
        Limit::new("hub-host-rows", count(sessions::HOST_ROWS), "other host", "further sessions are left out"),
        Limit::new("hub-histories", count(sessions::HISTORIES), "other tool", "older sessions are left out"),
        Limit::new("hub-cached-rows", count(sessions::CACHED_ROWS), "other host", "older sessions are not cached"),
        Limit::new(
            "hub-followed",
            count(sessions::FOLLOWED_SESSIONS),
            "other host, running sessions",
            "of further ones only the list is shown",
        ),
        Limit::new(
            "hub-followed-waiting",
            count(sessions::FOLLOWED_WAITING),
            "host, sessions that wait for a person",
            "further ones are listed without what they ask",
        ),
        Limit::new(
            "hub-followed-chats",
            count(sessions::FOLLOWED_CHATS),
            "session of another host",
            "further chats are not followed",
        ),
        Limit::new(
            "hub-changes",
            count(sessions::CHANGES),
            "chat of another host",
            "further changed files are left out",
        ),
        Limit::new("hub-drafts", count(sessions::DRAFTS), "other host", "the draft is refused"),
        Limit::new("hub-offers", count(sessions::OFFERS), "answer", "further folders are left out"),
        Limit::new("hub-row-chats", count(wire::ROW_CHATS), "row", "further chats are left out"),
        Limit::new("hub-row-changes", count(wire::ROW_CHANGES), "chat of a row", "further changed files are left out"),
        Limit::new(
            "hub-row-activity",
            count(wire::ROW_ACTIVITY_CHARS),
            "activity of a row, in characters",
            "the rest is left out",
        ),
        Limit::new("hub-activity-time", time(hub::ACTIVITY_TIME), "row, at least", "the newest activity is told later"),
        Limit::new(
            "hub-session-waiting",
            count(sessions::SESSION_WAITING),
            "session that waits",
            "further requests are shown in the session",
        ),
        Limit::new("hub-pins", count(sessions::PINS), "host", "the pin is refused (-32602)"),
        Limit::new("hub-last-chats", count(sessions::LAST_CHATS), "host", "the oldest is forgotten"),
        Limit::new("hub-trust-answers", count(sessions::TRUST_ANSWERS), "host", "the answer is refused"),
    ];
    LimitGroup {
        subject: "List of all sessions",
        about: "The session hub lists the sessions of this host, of other hosts and of other tools.",
        limits: rows,
    }
}
