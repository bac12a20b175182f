//! The fuzz body of subscriptions: the address and the keys of a device come from a client, and the host sends to them.

use grove_notify::http::{Reach, TargetUrl, is_public};
use grove_notify::push::encryption::{DeviceKeys, encrypt};
use grove_notify::{KindSet, QuietHours};

/// The message that is encrypted with keys that were accepted.
const MESSAGE: &[u8] = b"message";

/// Any lines as the members of a subscription: each is read or refused, and what was read is what was meant.
pub fn subscription(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let mut line = || lines.next().unwrap_or_default();
    address(line());
    if let Ok(keys) = DeviceKeys::read(line(), line()) {
        let (p256dh, auth) = keys.texts();
        assert_eq!(DeviceKeys::read(&p256dh, &auth).as_ref(), Ok(&keys));
        // A point that is not on the curve is refused there.
        encrypt(MESSAGE, &keys, [0; 16]).ok();
    }
    if let Ok(quiet) = line().parse::<QuietHours>() {
        assert_eq!(quiet.to_string().parse::<QuietHours>().as_ref(), Ok(&quiet));
        for now in [0, 1_772_366_400_000, u64::MAX] {
            assert!(quiet.end_of(now).is_none_or(|end| end > now));
        }
    }
    if let Ok(kinds) = KindSet::read(line().split(',')) {
        assert_eq!(KindSet::read(kinds.names().iter().map(String::as_str)), Ok(kinds));
    }
}

fn address(text: &str) {
    let Ok(url) = TargetUrl::read(text, Reach::Public) else { return };
    assert!(url.is_https() && url.port() == 443 && !url.host().is_empty(), "{text}");
    assert!(url.host().parse().map_or(true, is_public), "{text}");
    let head = [url.host(), url.authority(), url.path()].concat();
    assert!(head.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
    assert!(TargetUrl::read(text, Reach::Private).is_ok(), "{text}");
}
