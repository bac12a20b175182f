//! The methods and events of the SDK's declarations, and what a host does with each.
//!
//! The table is `surface.txt`. Tests compare it with the methods and events here, with the page `docs/copilot.md`, and
//! with the declarations of the installed SDK.

/// The table.
pub const TABLE: &str = include_str!("surface.txt");

/// The answer of a host to a method that it does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// It answers with a constant: what is true without the feature. The text is JSON.
    Absent(&'static str),
    /// It refuses, with the reason.
    Refused(&'static str),
}

/// A method that the SDK declares and a host does not serve. `None` for a served or an unknown one.
pub fn unserved(method: &str) -> Option<Unserved> {
    let found = lines().find(|(_, name, _)| *name == method)?;
    match found {
        ("absent", _, rest) => rest.split_once(' ').map(|(_, answer)| Unserved::Absent(answer)),
        ("refused", _, reason) => Some(Unserved::Refused(text_of(reason)?)),
        _ => None,
    }
}

/// The text of a reason.
pub fn text_of(reason: &str) -> Option<&'static str> {
    lines().find(|(kind, name, _)| *kind == "reason" && *name == reason).map(|(_, _, text)| text)
}

/// The lines of the table: the kind, the name, and the rest.
pub fn lines() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| {
        let (kind, rest) = line.split_once(' ')?;
        let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        Some((kind, name, rest))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::copilot::EventData;
    use crate::copilot::methods::Method;

    fn of(kinds: &[&str]) -> BTreeSet<&'static str> {
        lines().filter(|(kind, _, _)| kinds.contains(kind)).map(|(_, name, _)| name).collect()
    }

    #[test]
    fn the_table_has_every_method_and_event_once_and_each_line_can_be_read() {
        let served: BTreeSet<&str> = Method::ALL.iter().map(|method| method.as_str()).collect();
        assert_eq!(of(&["served", "other"]), served);
        assert_eq!(of(&["sent"]), EventData::KINDS.iter().copied().collect());
        // A method and an event may have the same name.
        let named = lines().filter(|(kind, _, _)| *kind != "reason");
        let names: Vec<_> = named.map(|(kind, name, _)| (kind.ends_with("sent"), name)).collect();
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len());
        for (kind, name, rest) in lines() {
            let reason = match kind {
                "served" | "other" | "sent" => continue,
                "reason" => {
                    let is_used =
                        |(kind, _, rest): (&str, &str, &str)| kind != "reason" && rest.split(' ').next() == Some(name);
                    assert!(!rest.is_empty() && lines().any(is_used), "{name}");
                    continue;
                }
                "absent" => {
                    let (reason, answer) = rest.split_once(' ').unwrap();
                    serde_json::from_str::<serde_json::Value>(answer).unwrap();
                    assert_eq!(unserved(name), Some(Unserved::Absent(answer)));
                    reason
                }
                "refused" | "unsent" => rest,
                unknown => panic!("{unknown}"),
            };
            assert!(text_of(reason).is_some(), "{name} has no reason {reason}");
        }
        assert_eq!(unserved("session.send"), None);
        assert_eq!(unserved("session.unheardOf"), None);
        let Some(Unserved::Refused(reason)) = unserved("account.getQuota") else { panic!() };
        assert!(reason.contains("accounts"), "{reason}");
    }
}
