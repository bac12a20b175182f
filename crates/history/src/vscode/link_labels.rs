//! Texts for people, as VS Code writes them: Markdown whose links to files have no label.

use grove_transcript::uri::location_of_uri;

use crate::json::JsonMembers;

/// A message with its links labelled.
pub(crate) fn message(members: &mut JsonMembers, key: &str) -> Option<String> {
    members.message(key).map(|text| labelled(&text))
}

/// `[](file:///a/b.rs)` is shown as `b.rs`, as VS Code renders it.
pub(crate) fn labelled(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[](") {
        shown.push_str(before);
        let Some((uri, after)) = link.split_once(')') else {
            shown.push_str("[](");
            rest = link;
            break;
        };
        shown.push_str(location_of_uri(uri).name());
        rest = after;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::labelled;

    #[test]
    fn a_link_without_a_label_is_shown_as_its_file() {
        assert_eq!(labelled("Read [](file:///a/my%20b.rs), lines 1 to 2"), "Read my b.rs, lines 1 to 2");
        assert_eq!(labelled("[](x"), "[](x");
        assert_eq!(labelled("[a](b)"), "[a](b)");
    }
}
