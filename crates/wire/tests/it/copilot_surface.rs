//! The page `docs/copilot.md` lists what the host does not serve, with the reasons.

use std::path::Path;

use grove_wire::copilot::surface;

const BEGIN: &str = "<!-- what is not served: written from crates/wire/src/copilot/surface.txt -->";
const END: &str = "<!-- end of what is not served -->";

/// The names of a kind with a reason, as code.
fn names(kind: &str, reason: &str) -> String {
    let lines = surface::lines().filter(|(mine, _, rest)| *mine == kind && rest.split(' ').next() == Some(reason));
    let names: Vec<String> = lines.map(|(_, name, _)| format!("`{}`", name.trim_start_matches("session."))).collect();
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}

fn rows() -> String {
    let mut rows = String::from("| reason | refused | answered as empty | events never sent |\n|---|---|---|---|\n");
    for (_, reason, text) in surface::lines().filter(|(kind, _, _)| *kind == "reason") {
        let columns = ["refused", "absent", "unsent"].map(|kind| names(kind, reason));
        rows.push_str(&format!("| {text} | {} |\n", columns.join(" | ")));
    }
    rows
}

#[test]
fn the_page_lists_everything_that_is_not_served_with_its_reason() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/copilot.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}\n\n{}\n{END}{after}", rows());
    if std::env::var_os("GROVE_COPILOT_WRITE").is_some() {
        std::fs::write(&path, &expected).unwrap();
        return;
    }
    assert!(
        page == expected,
        "write the page again: GROVE_COPILOT_WRITE=1 cargo test -p grove-wire --test it the_page_lists"
    );
}
