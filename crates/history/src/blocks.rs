//! Splits a model's prompt text into its blocks.
//!
//! A block is `<name …>` at the beginning of a line up to its end tag. Blocks are not nested: the inside of one is its
//! text, tags included. Text outside of any block is kept as a block without a name.

use grove_transcript::ContextBlock;

/// The maximum number of tags without an end. Text with more of them is taken as text.
const MAX_UNCLOSED: usize = 200;
/// The block with the person's words. It may contain any tag, so it ends with the last of its end tags.
const USER_REQUEST: &str = "userRequest";

/// The blocks of one text.
pub fn blocks(text: &str) -> Vec<ContextBlock> {
    let mut found = Vec::new();
    let mut unclosed: Vec<&str> = Vec::new();
    let (mut at, mut loose) = (0, 0);
    while let Some(open) = next_line_start(text, at) {
        let Some(tag) = tag_at(&text[open..]) else {
            at = open + 1;
            continue;
        };
        let body = open + tag.length;
        let end = if unclosed.contains(&tag.name) { None } else { end_of(text, body, tag.name) };
        let Some((end, next)) = end else {
            if unclosed.len() == MAX_UNCLOSED {
                break;
            }
            unclosed.push(tag.name);
            at = body;
            continue;
        };
        push_loose(&mut found, &text[loose..open]);
        found.push(ContextBlock {
            name: tag.name.to_owned(),
            attributes: tag.attributes.to_owned(),
            text: text[body..end].trim_matches('\n').to_owned(),
        });
        (at, loose) = (next, next);
    }
    push_loose(&mut found, &text[loose..]);
    found
}

struct Tag<'a> {
    name: &'a str,
    attributes: &'a str,
    length: usize,
}

/// The next `<` with only blanks before it on its line, or after `from` on that line: a block may begin after the end
/// of another.
fn next_line_start(text: &str, from: usize) -> Option<usize> {
    let mut line = from;
    loop {
        let rest = text.get(line..)?;
        let open = rest.find(|letter: char| letter == '<' || letter == '\n' || !letter.is_whitespace())?;
        line += match rest.as_bytes()[open] {
            b'<' => return Some(line + open),
            b'\n' => open + 1,
            _ => memchr::memchr(b'\n', rest.as_bytes())? + 1,
        };
    }
}

fn tag_at(text: &str) -> Option<Tag<'_>> {
    let inner = text.strip_prefix('<')?;
    let length = inner.find(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '_' | '-'))?;
    let name = &inner[..length];
    if !name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        return None;
    }
    let rest = &inner[length..];
    let close = rest.find(['>', '\n']).filter(|at| rest.as_bytes().get(*at) == Some(&b'>'))?;
    if rest[..close].ends_with('/') || !(close == 0 || rest.starts_with(' ')) {
        return None;
    }
    Some(Tag { name, attributes: rest[..close].trim(), length: 1 + length + close + 1 })
}

/// The end of the block's text, and the start of what follows.
fn end_of(text: &str, body: usize, name: &str) -> Option<(usize, usize)> {
    let end_tag = format!("</{name}>");
    let at = if name == USER_REQUEST { text[body..].rfind(&end_tag) } else { matching(&text[body..], name, &end_tag) };
    at.map(|at| (body + at, body + at + end_tag.len()))
}

/// The matching end tag, if blocks of one name may be nested.
fn matching(text: &str, name: &str, end_tag: &str) -> Option<usize> {
    let begin_tag = format!("<{name}");
    let mut depth = 1_usize;
    let mut at = 0;
    let mut last = None;
    loop {
        let Some(end) = text[at..].find(end_tag).map(|end| at + end) else {
            // More tags begin than end: the last end is the best guess.
            return last;
        };
        let begins =
            |(begin, _): &(usize, &str)| matches!(text.as_bytes().get(at + begin + begin_tag.len()), Some(b'>' | b' '));
        depth += text[at..end].match_indices(begin_tag.as_str()).filter(begins).count();
        depth -= 1;
        if depth == 0 {
            return Some(end);
        }
        last = Some(end);
        at = end + end_tag.len();
    }
}

fn push_loose(found: &mut Vec<ContextBlock>, text: &str) {
    let text = text.trim();
    if !text.is_empty() {
        found.push(ContextBlock { text: text.to_owned(), ..ContextBlock::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_one_name_may_hold_each_other_and_a_tag_without_an_end_is_text() {
        let found = blocks("<a>\n<a>x</a>\n</a>\n<open>\n<b>y</b>");
        let texts: Vec<_> = found.iter().map(|block| (block.name.as_str(), block.text.as_str())).collect();
        assert_eq!(texts, [("a", "<a>x</a>"), ("", "<open>"), ("b", "y")]);
    }
}
