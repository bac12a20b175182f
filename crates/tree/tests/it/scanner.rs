//! The scanner accepts the same lines as serde_json, and reports the same fields.

use std::collections::BTreeMap;

use grove_tree::scan::{Level, MAX_DEPTH, Scanner, Shape, text_of};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// A line's shape, and the last value of each field.
type ScanResult = Option<(Shape, BTreeMap<Vec<u8>, Vec<u8>>)>;

fn scanned(line: &[u8]) -> ScanResult {
    let mut fields = BTreeMap::new();
    let shape = Scanner::default().scan(line, |name, value| {
        fields.insert(name.to_vec(), value.to_vec());
    });
    shape.ok().map(|shape| (shape, fields))
}

/// The same for a line that has to be UTF-8.
fn scanned_utf8(line: &[u8]) -> ScanResult {
    let mut fields = BTreeMap::new();
    let shape = Scanner::default().scan_utf8_with(line, "message", |level, name, value| {
        if level == Level::Line {
            fields.insert(name.to_vec(), value.to_vec());
        }
    });
    shape.ok().map(|shape| (shape, fields))
}

/// The same by serde_json.
fn parsed(line: &[u8]) -> ScanResult {
    if line.iter().all(|byte| b" \t\r\n".contains(byte)) {
        return Some((Shape::Blank, BTreeMap::new()));
    }
    let raw: &RawValue = serde_json::from_slice(line).ok()?;
    let mut fields = BTreeMap::new();
    let shape = match raw.get().as_bytes() {
        b"null" => Shape::Null,
        [b'{', ..] => {
            struct Fields<'a>(&'a mut BTreeMap<Vec<u8>, Vec<u8>>);
            impl<'de> Visitor<'de> for Fields<'_> {
                type Value = ();
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                    // Names are read raw and compared decoded: a lone surrogate is not valid in a string.
                    while let Some((name, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
                        let name = text_of(name.get().as_bytes()).unwrap().into_owned();
                        self.0.insert(name, value.get().as_bytes().to_vec());
                    }
                    Ok(())
                }
            }
            let mut deserializer = serde_json::Deserializer::from_slice(line);
            deserializer.deserialize_map(Fields(&mut fields)).unwrap();
            Shape::JsonObject
        }
        _ => Shape::Other,
    };
    Some((shape, fields))
}

fn same(line: &[u8]) -> Result<(), TestCaseError> {
    let text = String::from_utf8_lossy(line);
    if std::str::from_utf8(line).is_ok() {
        prop_assert_eq!(scanned(line), parsed(line), "{}", text);
        prop_assert_eq!(scanned_utf8(line), scanned(line), "{}", text);
    } else {
        // Without the check, only texts that are not UTF-8 are accepted beyond what serde_json accepts.
        prop_assert_eq!(scanned_utf8(line), None, "{}", text);
        prop_assert_eq!(scanned(line).is_some(), parsed(text.as_bytes()).is_some(), "{}", text);
    }
    Ok(())
}

/// Any JSON, with spaces and odd texts.
fn json() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        r#""[a-z ]{0,40}""#,
        r#""(\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}|[a-zé🌲]){0,12}""#,
        Just(r#""\ud800""#.to_owned()),
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
        text,
    ];
    let white = || "[ \t\r]{0,2}";
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let list = (vec((white(), inner.clone()), 0..5), white()).prop_map(|(items, end)| {
            let items: Vec<String> = items.into_iter().map(|(white, item)| format!("{white}{item}{white}")).collect();
            format!("[{}{end}]", items.join(","))
        });
        let name = prop_oneof![
            Just(r#""type""#.to_owned()),
            Just(r#""id""#.to_owned()),
            Just(r#""parentId""#.to_owned()),
            Just(r#""timestamp""#.to_owned()),
            Just(r#""\u0069d""#.to_owned()),
            r#""[a-z]{0,3}""#,
        ];
        let object = (vec((white(), name, inner), 0..6), white()).prop_map(|(fields, end)| {
            let fields: Vec<String> =
                fields.iter().map(|(white, name, value)| format!("{white}{name}{white}:{white}{value}")).collect();
            format!("{{{}{end}}}", fields.join(","))
        });
        prop_oneof![list, object.clone(), object]
    })
}

/// Changes a few bytes of a line.
fn mutated(line: &str, changes: &[(usize, u8, u8)]) -> Vec<u8> {
    const BYTES: &[u8] = b"\"\\{}[]:,0-1.eEutfn \t\x01\x7f\xc3a";
    let mut bytes = line.as_bytes().to_vec();
    for (place, kind, byte) in changes {
        let at = place % (bytes.len() + 1);
        let byte = BYTES[*byte as usize % BYTES.len()];
        match kind % 4 {
            0 if at < bytes.len() => bytes[at] = byte,
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            _ => bytes.insert(at, byte),
        }
    }
    bytes
}

/// The first and last bytes of the ranges that UTF-8 distinguishes.
const EDGES: &[u8] = &[
    b'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0,
    0xf1, 0xf3, 0xf4, 0xf5, 0xff,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_json_is_accepted_with_its_fields(line in json()) {
        prop_assert!(scanned(line.as_bytes()).is_some(), "{}", line);
        same(line.as_bytes())?;
    }

    #[test]
    fn broken_json_is_refused_exactly_where_serde_json_refuses_it(
        line in json(),
        changes in vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..4),
    ) {
        same(&mutated(&line, &changes))?;
    }

    #[test]
    fn any_bytes_are_accepted_or_refused_alike(line in vec(any::<u8>(), 0..40)) {
        same(&line)?;
    }

    #[test]
    fn a_text_is_utf8_exactly_where_the_standard_library_says_so(
        before in "[a-z\\u{e9}]{0,40}",
        bytes in vec(prop::sample::select(EDGES), 1..5),
        after in "[a-z\\u{1f332}]{0,40}",
    ) {
        let text = [before.as_bytes(), &bytes, after.as_bytes()].concat();
        same(&[b"{\"", text.as_slice(), b"\":[\"", text.as_slice(), b"\"]}"].concat())?;
    }

    #[test]
    fn texts_of_any_length_end_at_their_quote(
        before in "[a-z]{0,70}",
        special in prop_oneof![Just("\\n"), Just("\u{1}"), Just("\\\""), Just("é"), Just("\\x"), Just("")],
        after in "[a-z]{0,70}",
    ) {
        same(format!("{{\"{before}{special}{after}\":\"{after}{special}{before}\"}}").as_bytes())?;
    }
}

#[test]
fn every_prefix_of_a_line_is_refused() {
    let line = r#"{"type":"message","n":[-1.5e+3,true,null,{"a":{}}],"t":"a\ud83c\u0041\n"}"#;
    for end in 1..line.len() {
        assert_eq!(scanned(&line.as_bytes()[..end]), None, "{}", &line[..end]);
    }
    assert!(scanned(line.as_bytes()).is_some());
}

#[test]
fn depth_is_the_only_thing_that_is_refused_beyond_json() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(scanned(nested(MAX_DEPTH).as_bytes()).is_some());
    assert!(scanned(nested(MAX_DEPTH + 1).as_bytes()).is_none());
}
