//! Versions of the Agent Host Protocol: negotiation, refusals, and the additions of each.

use ahp_types as published;
use grove_wire::ahp::version::{CURRENT, OLDEST, SUPPORTED, knows, supported_ranges};
use grove_wire::ahp::{Action, NegotiationError, NotificationMethod, Version, introduced_in, negotiate};

#[test]
fn the_highest_offered_version_in_a_served_range_is_agreed_on() {
    let table: [(&[&str], Option<&str>); 16] = [
        (&["1.0.0"], Some("1.0.0")),
        (&["0.9.0"], Some("0.9.0")),
        (&["0.9.0", "1.0.0"], Some("1.0.0")),
        (&["1.0.0", "0.9.0"], Some("1.0.0")),
        (&["1.4.0", "1.0.0"], Some("1.4.0")),
        (&["1.2.10", "1.2.9"], Some("1.2.10")),
        (&["1.0.1", "1.0.1"], Some("1.0.1")),
        (&["2.0.0", "0.9.4"], Some("0.9.4")),
        (&["0.10.0", "0.9.1"], Some("0.9.1")),
        (&["18446744073709551615.0.0", "1.0.0"], Some("1.0.0")),
        (&["2.0.0"], None),
        (&["0.10.0"], None),
        (&["0.8.9"], None),
        (&["0.0.1"], None),
        (&["11.0.0"], None),
        (&[], None),
    ];
    for (offered, expected) in table {
        let agreed = negotiate(offered);
        assert_eq!(agreed.clone().ok().map(|version| version.to_string()).as_deref(), expected, "{offered:?}");
        assert!(expected.is_some() || agreed == Err(NegotiationError::Unsupported), "{offered:?}");

        let offered: Vec<String> = offered.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(published::version::negotiate_protocol_version(&offered).unwrap(), expected, "{offered:?}");
    }
}

#[test]
fn one_malformed_version_refuses_the_offer() {
    for text in [
        "",
        "1",
        "1.0",
        "1.0.0.0",
        "v1.0.0",
        "1.0.0-beta",
        "1.0.0+1",
        "01.0.0",
        "1.00.0",
        "1.0.",
        " 1.0.0",
        "1.0.0\n",
        "+1.0.0",
        "-1.0.0",
        "1.0.18446744073709551616",
        "1.0.٣",
    ] {
        for offered in [vec![text], vec!["1.0.0", text], vec![text, "1.0.0"]] {
            assert!(matches!(negotiate(&offered), Err(NegotiationError::Malformed(_))), "{offered:?}");
            let offered: Vec<String> = offered.into_iter().map(str::to_owned).collect();
            assert!(published::version::negotiate_protocol_version(&offered).is_err(), "{offered:?}");
        }
    }
}

#[test]
fn what_is_served_is_what_is_published() {
    assert_eq!(SUPPORTED.map(|version| version.to_string()), published::version::SUPPORTED_PROTOCOL_VERSIONS);
    assert_eq!(CURRENT.to_string(), published::version::PROTOCOL_VERSION);
    assert_eq!(supported_ranges(), ["^1.0.0", "^0.9.0"]);
    assert!(NegotiationError::Unsupported.to_string().contains("^1.0.0 and ^0.9.0"));
}

#[test]
fn only_canvases_came_after_the_oldest_version() {
    let later: Vec<&str> = Action::kinds().map(|(kind, _)| kind).filter(|kind| !knows(OLDEST, kind)).collect();
    assert_eq!(later, ["chat/canvasesChanged"]);
    assert_eq!(introduced_in("canvas/stateChanged"), Version::new(0, 10, 0));
    assert!(Action::kinds().all(|(kind, _)| knows(CURRENT, kind)));
    assert!(NotificationMethod::ALL.iter().all(|method| knows(OLDEST, method.as_str())));
}
