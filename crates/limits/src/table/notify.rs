//! Limits of notifications.

use grove_notify::limits as notify;

use crate::{Limit, LimitGroup, bytes, count, time};

pub(super) fn groups() -> Vec<LimitGroup> {
    vec![devices(), messages()]
}

fn devices() -> LimitGroup {
    let rows = vec![
        Limit::new("notify-devices", count(notify::DEVICES), "host", "the device is refused (-32029)"),
        Limit::new("notify-token-devices", count(notify::TOKEN_DEVICES), "token", "the device is refused (-32029)"),
        Limit::new(
            "notify-device-name",
            count(notify::DEVICE_NAME),
            "name of a device, in characters",
            "the rest is left out",
        ),
        Limit::new("notify-address", bytes(notify::URL_BYTES), "address of a push service", "it is refused (-32602)"),
        Limit::new("notify-quiet", bytes(notify::QUIET_BYTES), "text of quiet hours", "it is refused (-32602)"),
    ];
    LimitGroup { subject: "Devices that are told", about: "", limits: rows }
}

fn messages() -> LimitGroup {
    let rows = vec![
        Limit::new("notify-events", count(notify::EVENTS), "host", "the open requests are looked at again"),
        Limit::new("notify-open", count(notify::OPEN_NOTICES), "host", "the oldest notice is forgotten"),
        Limit::new(
            "notify-requests",
            count(notify::OPEN_REQUESTS),
            "session, open requests",
            "further ones do not keep the notice open",
        ),
        Limit::new("notify-settle", time(notify::SETTLE_TIME), "notice", "it is told, unless it was answered"),
        Limit::new(
            "notify-attended",
            time(notify::ATTENDED_TIME),
            "notice of an open session",
            "it is told, unless it was answered or read",
        ),
        Limit::new("notify-rate", count(notify::RATE), "device or webhook, in the time below", "further notices wait"),
        Limit::new("notify-rate-time", time(notify::RATE_TIME), "device or webhook", "notices count no more"),
        Limit::new("notify-title", count(notify::TITLE_CHARS), "title, in characters", "it is shortened"),
        Limit::new("notify-text", count(notify::TEXT_CHARS), "text, in characters", "it is shortened"),
        Limit::new("notify-message", bytes(notify::MESSAGE_BYTES), "message to a device", "it is not sent"),
        Limit::new("notify-deliveries", count(notify::DELIVERIES), "host, at a time", "the newest message is dropped"),
        Limit::new("notify-attempts", count(notify::ATTEMPTS as usize), "message", "it is dropped"),
        Limit::new("notify-pause", time(notify::PAUSE), "pause that a service asks for", "it is tried again"),
        Limit::new("notify-time", time(notify::REQUEST_TIME), "attempt", "it has failed"),
        Limit::new("notify-answer", bytes(notify::ANSWER_BYTES), "answer of a service", "the rest is not read"),
    ];
    LimitGroup { subject: "Notifications", about: "", limits: rows }
}
