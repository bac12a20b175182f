//! Generated names from outside: whatever the fault of one, every backend reports the same.

use grove_fs::{BadName, FsError, RelativeName, Removal, SessionFs};
use proptest::prelude::*;

use crate::support::every_confined;

/// Hostile pieces beside harmless ones, so that most names have a fault, and many have several.
fn piece() -> impl Strategy<Value = String> {
    let classes = prop_oneof![
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just("/".to_owned()),
        Just("\\".to_owned()),
        Just("//".to_owned()),
        Just("C:".to_owned()),
        Just("\\\\server\\".to_owned()),
        Just("\0".to_owned()),
        Just("\u{1b}[2J".to_owned()),
        Just("\u{202e}".to_owned()),
        Just("\u{200b}".to_owned()),
        Just("\u{fe0f}".to_owned()),
        Just("．．".to_owned()),
        Just("／".to_owned()),
        Just("∕".to_owned()),
        Just("e\u{301}".to_owned()),
        Just("ﬁ".to_owned()),
        Just("CON".to_owned()),
        Just("lpt9.txt".to_owned()),
        Just(":".to_owned()),
        Just("*".to_owned()),
        Just(" ".to_owned()),
        Just("%2e%2e".to_owned()),
        (240_usize..1100).prop_map(|length| "n".repeat(length)),
    ];
    prop_oneof![3 => classes, 2 => "[a-zäß日🌲._-]{1,6}", 1 => any::<String>()]
}

fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_name_that_is_taken_stays_in_its_folder(name in name()) {
        let Ok(taken) = RelativeName::parse(&name) else { return Ok(()) };
        prop_assert_eq!(taken.as_str(), &name);
        let folder = std::path::Path::new("/folder");
        let path = folder.join(taken.as_str());
        prop_assert!(path.starts_with(folder));
        let plain = path.components().skip(2).all(|part| matches!(part, std::path::Component::Normal(_)));
        prop_assert!(plain);
        prop_assert_eq!(path.components().count(), 2 + taken.parts().count());
    }

    #[test]
    fn what_is_taken_is_taken_part_by_part(name in name()) {
        if let Ok(taken) = RelativeName::parse(&name) {
            for part in taken.parts() {
                prop_assert!(RelativeName::parse(part).is_ok(), "{:?}", part);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_backend_says_the_same_of_a_name(name in name()) {
        let expected = RelativeName::parse(&name).map(|_| ());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            for (subject, view) in every_confined() {
                let (backend, name) = (subject.name, name.as_str());
                assert_eq!(view.write_text(name, "x").await, expected, "{backend}");
                assert_eq!(view.append_text(name, "y").await, expected, "{backend}");
                assert_eq!(view.read_file(name).await.map(|bytes| assert_eq!(bytes, b"xy")), expected, "{backend}");
                assert_eq!(view.read_range(name, 1, 1).await.map(drop), expected, "{backend}");
                assert_eq!(view.read_lines(name, 9).await.map(drop), expected, "{backend}");
                assert_eq!(view.truncate(name, 1).await, expected, "{backend}");
                assert_eq!(view.sync(name).await, expected, "{backend}");
                if let Err(error) = &expected && !name.is_empty() {
                    assert_eq!(view.stat(name).await.map(drop), expected, "{backend}");
                    assert_eq!(view.exists(name).await.map(drop), expected, "{backend}");
                    assert_eq!(view.mkdir(name).await, expected, "{backend}");
                    assert_eq!(view.readdir(name).await.map(drop), expected, "{backend}");
                    assert_eq!(view.location(name).map(drop), expected, "{backend}");
                    assert_eq!(view.rename(name, "ok").await, expected, "{backend}");
                    assert_eq!(error.code(), "EINVAL");
                }
                assert_eq!(view.rm(name, Removal::Everything).await, expected, "{backend}");
            }
        });
    }
}

#[test]
fn a_message_about_a_name_cannot_steer_a_terminal() {
    let hostile = format!("\u{1b}[2J\u{202e}{}", "x".repeat(5000));
    let message = RelativeName::parse(&hostile).unwrap_err().to_string();
    assert!(message.chars().all(|character| !character.is_control() && character != '\u{202e}'), "{message}");
    assert!(message.len() < 400, "{message}");
}

#[test]
fn where_several_things_are_wrong_the_first_of_the_list_is_told() {
    for (name, reason) in [
        ("CON/..", BadName::Dots),
        ("a\u{200b}\0", BadName::Nul),
        ("/../NUL", BadName::Absolute),
        ("a /b:", BadName::Forbidden),
    ] {
        let expected = FsError::BadName { path: name.to_owned(), reason };
        assert_eq!(RelativeName::parse(name).unwrap_err(), expected);
    }
}
