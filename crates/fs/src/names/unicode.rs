//! Characters that a name may not have.

use unicode_normalization::char::decompose_compatible;

use super::BadName;

/// The fault of a character, wherever it is.
pub(super) fn fault(character: char) -> Option<BadName> {
    match character {
        '\0' => Some(BadName::Nul),
        // Line and paragraph separators break lines in lists of names.
        '\u{2028}' | '\u{2029}' => Some(BadName::Control),
        _ if character.is_control() => Some(BadName::Control),
        _ if character.is_ascii() => None,
        _ if turns_direction(character) => Some(BadName::Direction),
        _ if is_invisible(character) => Some(BadName::Invisible),
        _ if looks_like_a_separator(character) => Some(BadName::Lookalike),
        _ => None,
    }
}

fn turns_direction(character: char) -> bool {
    matches!(character, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_invisible(character: char) -> bool {
    // The last two of every plane are not characters, and have no glyph.
    (u32::from(character) & 0xfffe) == 0xfffe
        || matches!(
            character,
            '\u{00ad}'
                | '\u{034f}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200d}'
                | '\u{2060}'..='\u{2065}'
                | '\u{206a}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fdd0}'..='\u{fdef}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns whether a program that normalises text, or a reader, takes this for a dot or a slash.
fn looks_like_a_separator(character: char) -> bool {
    let mut becomes_one = false;
    decompose_compatible(character, |part| becomes_one |= matches!(part, '.' | '/' | '\\'));
    // Slashes that no normalisation changes to plain ones.
    becomes_one
        || matches!(
            character,
            '\u{2044}' | '\u{2215}' | '\u{2216}' | '\u{27cb}' | '\u{27cd}' | '\u{29f5}' | '\u{29f8}' | '\u{29f9}'
        )
}
