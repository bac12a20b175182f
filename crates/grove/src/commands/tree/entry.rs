//! Finding the entry for an argument.

use grove_wire::x_grove::TreeRow;

use crate::show::table::short;

/// Finds an entry by its id, its label, or the beginning of its id.
pub(super) fn find<'a>(rows: &'a [TreeRow], wanted: &str, session: &str) -> Result<&'a TreeRow, String> {
    if let Some(row) = rows.iter().find(|row| row.id == wanted) {
        return Ok(row);
    }
    let named = fitting(rows, |row| row.label.as_deref() == Some(wanted));
    // A label must match exactly, so it comes before the beginning of an id.
    let (fitting, how) = match named.is_empty() {
        false => (named, "the label"),
        true => (fitting(rows, |row| !wanted.is_empty() && row.id.starts_with(wanted)), "the beginning"),
    };
    match fitting.as_slice() {
        [row] => Ok(row),
        [] => Err(format!("there is no entry {wanted:?} in {session}: `grove tree {session} --filter all` lists them")),
        several => {
            let ids = short(&several.iter().map(|row| row.id.as_str()).collect::<Vec<_>>()).join(", ");
            Err(format!("{wanted:?} is {how} of several entries ({ids}): give the id of one"))
        }
    }
}

fn fitting(rows: &[TreeRow], fits: impl Fn(&TreeRow) -> bool) -> Vec<&TreeRow> {
    rows.iter().filter(|row| fits(row)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(id: &str, label: Option<&str>) -> TreeRow {
        let row = json!({"id": id, "parent": null, "depth": 0, "indent": 0, "kind": "message", "role": "user",
            "text": "", "label": label, "active": true, "leaf": false, "hasChildren": false});
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn an_entry_is_meant_by_its_id_its_label_or_the_beginning_of_its_id() {
        let rows =
            [row("aaaa0001", None), row("aaaa0002", Some("twice")), row("bbbb0003", Some("aaa")), row("aaaa", None)];
        let found = |wanted: &str| find(&rows, wanted, "s").map(|row| row.id.as_str());
        assert_eq!(found("aaaa0002"), Ok("aaaa0002"));
        assert_eq!(found("b"), Ok("bbbb0003"));
        assert_eq!(found("twice"), Ok("aaaa0002"));
        assert_eq!(found("aaa"), Ok("bbbb0003"), "a whole label comes before the beginning of an id");
        assert_eq!(found("aaaa"), Ok("aaaa"), "a whole id comes first");
        assert!(found("aaaa000").unwrap_err().contains("several entries (aaaa0001, aaaa0002)"));
        for unknown in ["", "c", "twic", "aaaa00011"] {
            assert!(found(unknown).unwrap_err().contains("no entry"), "{unknown}");
        }
    }

    #[test]
    fn a_label_that_several_have_means_none_of_them() {
        let rows = [row("aaaa0001", Some("x")), row("aaaa0002", Some("x"))];
        assert!(find(&rows, "x", "s").unwrap_err().contains("the label of several entries"));
    }
}
