//! The title of a session before anybody names it.

/// The title of a session without a message, and of one whose first message is empty.
pub const UNTITLED: &str = "New Session";

const CHARACTERS: usize = 100;

/// The title from a first message: its first line that is not empty, at most 100 characters.
pub fn first_title(query: &str) -> String {
    let line = query.trim().lines().next().unwrap_or_default().trim_end();
    if line.is_empty() {
        return UNTITLED.to_owned();
    }
    line.chars().take(CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_title_is_the_first_line_cut_at_a_hundred_characters() {
        assert_eq!(first_title("Fix the build\nand the tests"), "Fix the build");
        assert_eq!(first_title("\r\n  Fix it \r\nnow"), "Fix it");
        assert_eq!(first_title("é".repeat(250).as_str()), "é".repeat(100));
        assert_eq!(first_title(&"x".repeat(100)).len(), 100);
        for empty in ["", "  \n\t\n"] {
            assert_eq!(first_title(empty), "New Session");
        }
    }
}
