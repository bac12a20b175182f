//! Parts of a path that Windows does not allow.

use super::BadName;

/// The fault of a part on Windows.
pub(crate) fn fault(part: &str) -> Option<BadName> {
    if part.contains(['<', '>', ':', '"', '|', '?', '*']) {
        return Some(BadName::Forbidden);
    }
    if part.ends_with(|character: char| character == '.' || character.is_whitespace()) {
        return Some(BadName::Trailing);
    }
    is_reserved(part).then_some(BadName::Reserved)
}

/// Returns whether a part is a device on Windows, whatever its case and its extension.
fn is_reserved(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end();
    if ["con", "prn", "aux", "nul", "conin$", "conout$"].iter().any(|name| stem.eq_ignore_ascii_case(name)) {
        return true;
    }
    // Ports have one digit; the superscripts of Latin-1 count as digits there.
    let mut characters = stem.chars();
    let is_port =
        characters.next_back().is_some_and(|digit| digit.is_ascii_digit() || matches!(digit, '¹' | '²' | '³'));
    is_port && ["com", "lpt"].iter().any(|name| characters.as_str().eq_ignore_ascii_case(name))
}
