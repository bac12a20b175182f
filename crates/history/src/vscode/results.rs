//! Results of tools: text, or a tree of prompt pieces.

use grove_transcript::ToolOutput;
use serde_json::Value;

use crate::limits::MAX_DEPTH;

/// An entry of `toolCallResults`, flattened. The tree is kept beside the text.
pub(crate) fn output_of(result: Value) -> ToolOutput {
    let text = match &result {
        Value::String(text) => text.clone(),
        _ => {
            let items = result.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let texts: Vec<String> = items.iter().map(item_text).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
    };
    let raw = (!result.is_string()).then_some(result);
    ToolOutput { text, raw }
}

fn item_text(item: &Value) -> String {
    match item.get("value").unwrap_or(item) {
        Value::String(text) => text.clone(),
        value => match value.get("node") {
            Some(node) => flattened(node),
            None => value.as_object().map_or_else(|| value.to_string(), |_| String::new()),
        },
    }
}

/// The texts of a tree in order. A piece may ask for a line of its own.
pub fn flattened(node: &Value) -> String {
    let mut text = String::new();
    // A stack instead of recursion: the file decides the depth of a tree.
    let mut open = vec![(node, 0)];
    while let Some((node, depth)) = open.pop() {
        if node.get("lineBreakBefore").and_then(Value::as_bool) == Some(true)
            && !text.is_empty()
            && !text.ends_with('\n')
        {
            text.push('\n');
        }
        if let Some(piece) = node.get("text").and_then(Value::as_str) {
            text.push_str(piece);
        }
        if let Some(children) = node.get("children").and_then(Value::as_array)
            && depth < MAX_DEPTH
        {
            open.extend(children.iter().rev().map(|child| (child, depth + 1)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tree_of_nodes_is_flattened_to_its_text_and_kept() {
        let result = json!({"$mid": 20, "content": [{"$mid": 23, "value": {"node": {"type": 1, "children": [
            {"type": 2, "text": "one", "lineBreakBefore": false},
            {"type": 1, "children": [{"type": 2, "text": " two"}]},
            {"type": 2, "text": "three\n", "lineBreakBefore": true},
            {"type": 2, "text": "four", "lineBreakBefore": true},
        ]}}}, {"value": "five"}]});
        let output = output_of(result.clone());
        assert_eq!(output.text, "one two\nthree\nfour\nfive");
        assert_eq!(output.raw, Some(result));
    }

    #[test]
    fn a_result_that_is_text_stays_text() {
        assert_eq!(output_of(json!("done")), ToolOutput { text: "done".into(), raw: None });
        assert_eq!(output_of(json!({"content": [{"value": "a"}]})).text, "a");
        assert_eq!(output_of(json!(null)).text, "");
    }
}
