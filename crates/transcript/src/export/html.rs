//! A session as one self-contained HTML file.
//!
//! The file runs no script and loads nothing, which its policy enforces in browsers as well: a session's contents are
//! only text. The agent's Markdown becomes elements without attributes from the session, except the address of a link,
//! which must be a web address.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_core::{is_unprintable, printable};
use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd};
use sha2::{Digest, Sha256};

use super::{Heading, OutlineBody, OutlineItem, OutlineKind, SessionOutline, TurnOutline, TurnWriter};
use crate::normal::TranscriptTurn;

const STYLE: &str = include_str!("html.css");

/// Writes HTML.
#[derive(Debug)]
pub struct Html<W> {
    out: W,
    turns: usize,
}

impl<W: Write> Html<W> {
    pub fn begin(mut out: W, heading: Heading<'_>) -> io::Result<Self> {
        let SessionOutline { title, facts } = SessionOutline::of(heading);
        let title = escaped(&title);
        let hash = STANDARD.encode(Sha256::digest(STYLE));
        let policy = format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'");
        writeln!(out, "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">")?;
        writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">")?;
        writeln!(out, "<meta name=\"referrer\" content=\"no-referrer\">")?;
        writeln!(out, "<meta name=\"viewport\" content=\"width=device-width\">")?;
        writeln!(out, "<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<dl>")?;
        for (name, fact) in facts {
            writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&fact))?;
        }
        writeln!(out, "</dl>")?;
        Ok(Self { out, turns: 0 })
    }

    fn outline(&mut self, turn: &TurnOutline, number: &str) -> io::Result<()> {
        writeln!(self.out, "<section>\n<h2>{number} · {}</h2>", turn.speaker)?;
        if !turn.facts.is_empty() {
            writeln!(self.out, "<p class=\"facts\">{}</p>", escaped(&turn.facts.join(" · ")))?;
        }
        writeln!(self.out, "<div class=\"message\">{}</div>", escaped(&turn.message))?;
        self.list("attached", &turn.attachments)?;
        for piece in &turn.pieces {
            self.piece(piece, number)?;
        }
        if let Some(state) = &turn.state {
            writeln!(self.out, "<p class=\"state\">{}</p>", escaped(state))?;
        }
        for (name, lines) in &turn.lists {
            self.list(name, lines)?;
        }
        writeln!(self.out, "</section>")
    }

    fn list(&mut self, name: &str, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "<p class=\"label\">{name}</p>\n<ul>")?;
        for line in lines {
            writeln!(self.out, "<li>{}</li>", escaped(line))?;
        }
        writeln!(self.out, "</ul>")
    }

    fn piece(&mut self, piece: &OutlineItem, number: &str) -> io::Result<()> {
        if piece.kind == OutlineKind::AgentText {
            for body in &piece.bodies {
                writeln!(self.out, "<div class=\"said\">{}</div>", from_markdown(&body.text))?;
            }
            return Ok(());
        }
        // Parts that people read first are open; an agent's work is collapsed.
        let open = if matches!(piece.kind, OutlineKind::Question | OutlineKind::Notice) { " open" } else { "" };
        let facts = match piece.facts.is_empty() {
            true => String::new(),
            false => format!(" <span class=\"facts\">{}</span>", escaped(&piece.facts.join(" · "))),
        };
        writeln!(self.out, "<details{open}><summary>{}{facts}</summary>", escaped(&piece.head))?;
        for OutlineBody { label, text } in &piece.bodies {
            if !label.is_empty() {
                writeln!(self.out, "<p class=\"label\">{label}</p>")?;
            }
            // A line end after the tag is not part of the text.
            writeln!(self.out, "<pre>\n{}</pre>", escaped(text))?;
        }
        if !piece.turns.is_empty() {
            writeln!(self.out, "<div class=\"turns\">")?;
            for (at, turn) in piece.turns.iter().enumerate() {
                self.outline(turn, &format!("{number}.{}", at + 1))?;
            }
            writeln!(self.out, "</div>")?;
        }
        writeln!(self.out, "</details>")
    }
}

impl<W: Write> TurnWriter for Html<W> {
    fn turn(&mut self, turn: &TranscriptTurn) -> io::Result<()> {
        self.turns += 1;
        let number = self.turns.to_string();
        self.outline(&TurnOutline::of(turn), &number)
    }

    fn finish(&mut self) -> io::Result<()> {
        writeln!(self.out, "</body>\n</html>")?;
        self.out.flush()
    }
}

/// Escapes text for any place.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(letter),
            // Not valid in a document, or it would change the direction of other text.
            letter if is_unprintable(letter) => {}
            letter => safe.push(letter),
        }
    }
    safe
}

/// Markdown as elements. Tags in it become text, pictures links, and links must lead to the web.
fn from_markdown(text: &str) -> String {
    let text = printable(text);
    let events = Parser::new_ext(&text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    // True for each open link with a target; the others are left out, and their texts stay.
    let mut links: Vec<bool> = Vec::new();
    let events = events.filter_map(|event| match event {
        Event::Html(tags) | Event::InlineHtml(tags) => Some(Event::Text(tags)),
        Event::Start(Tag::HtmlBlock) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) => Some(Event::End(TagEnd::Paragraph)),
        // A column's alignment would be a style attribute, which the policy forbids.
        Event::Start(Tag::Table(columns)) => Some(Event::Start(Tag::Table(vec![Alignment::None; columns.len()]))),
        // The language of a code block would be an attribute from the session.
        Event::Start(Tag::CodeBlock(_)) => Some(Event::Start(Tag::CodeBlock(pulldown_cmark::CodeBlockKind::Indented))),
        Event::Start(Tag::Link { link_type, dest_url, id, .. } | Tag::Image { link_type, dest_url, id, .. }) => {
            let leads = is_web(&dest_url);
            links.push(leads);
            leads.then(|| Event::Start(Tag::Link { link_type, dest_url, title: "".into(), id }))
        }
        Event::End(TagEnd::Link | TagEnd::Image) => links.pop().unwrap_or(false).then_some(Event::End(TagEnd::Link)),
        event => Some(event),
    });
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events);
    html
}

fn is_web(address: &str) -> bool {
    let begins = |head: &str| address.get(..head.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(head));
    begins("https://") || begins("http://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_has_elements_and_no_tag_link_or_picture_of_its_own() {
        for (text, expected) in [
            ("a **b** `c<d`", "<p>a <strong>b</strong> <code>c&lt;d</code></p>\n"),
            ("x <img src=y onerror=z>", "<p>x &lt;img src=y onerror=z&gt;</p>\n"),
            ("<script>\nalert(1)\n</script>", "<p>&lt;script&gt;\nalert(1)\n&lt;/script&gt;</p>\n"),
            ("[a](javascript:alert%281%29)", "<p>a</p>\n"),
            ("[a](data:text/html,x)", "<p>a</p>\n"),
            ("[a](https://b.c \"t\")", "<p><a href=\"https://b.c\">a</a></p>\n"),
            ("![a](https://b.c/d.png)", "<p><a href=\"https://b.c/d.png\">a</a></p>\n"),
            ("![a](file:///d.png)", "<p>a</p>\n"),
            ("```\" onload=x\ny\n```", "<pre><code>y\n</code></pre>\n"),
        ] {
            assert_eq!(from_markdown(text), expected);
        }
    }

    #[test]
    fn the_style_neither_ends_its_element_nor_loads_anything() {
        for never in ["<", "url(", "@import", "http"] {
            assert!(!STYLE.contains(never), "{never}");
        }
    }
}
