//! The turns of a snapshot or of a page.

use std::sync::Arc;

use grove_core::Turn;

/// The newest turns of at most `bytes` together, and the very newest whatever its size.
pub(crate) fn newest(turns: &[Arc<Turn>], encode: impl Fn(&Turn) -> Arc<str>, bytes: usize) -> Vec<Arc<str>> {
    let mut left = bytes;
    let mut window = Vec::new();
    for turn in turns.iter().rev() {
        let json = encode(turn);
        if json.len() > left && !window.is_empty() {
            break;
        }
        left = left.saturating_sub(json.len());
        window.push(json);
    }
    window.reverse();
    window
}
