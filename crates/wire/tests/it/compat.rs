//! Compares the released types of version 1 with the current ones.
//!
//! `src/v1/frozen.json` has one JSON schema per type. A current type may have a new optional field, and a tagged union
//! a new variant; everything else must stay unchanged. Names of Rust types and descriptions do not matter on the wire;
//! but a type that the file names must exist under that name.

use std::collections::BTreeMap;

use grove_wire::v1::*;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

const FROZEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/v1/frozen.json");

/// The state of a snapshot.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "only its schema is looked at")]
enum State {
    Root(RootState),
    Session(SessionState),
}

type Schemas = Map<String, Value>;

/// The current schemas of everything that version 1 sends or receives, by the names of the types.
pub(crate) fn living() -> Schemas {
    // The host's output is described as it is serialized, its input as it is deserialized.
    let mut sent = SchemaSettings::draft2020_12().for_serialize().into_generator();
    sent.subschema_for::<State>();
    sent.subschema_for::<ActionParams<Action>>();
    sent.subschema_for::<NotificationParams>();
    sent.subschema_for::<InitializeResult<State>>();
    sent.subschema_for::<ReconnectResult<ActionEnvelope<Action>, State>>();
    sent.subschema_for::<Snapshot<State>>();
    sent.subschema_for::<ListSessionsResult>();
    sent.subschema_for::<FetchTurnsResult>();
    sent.subschema_for::<FetchContentResult>();
    sent.subschema_for::<BrowseDirectoryResult>();
    let mut received = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    received.subschema_for::<InitializeParams>();
    received.subschema_for::<ReconnectParams>();
    received.subschema_for::<SubscribeParams>();
    received.subschema_for::<CreateSessionParams>();
    received.subschema_for::<DisposeSessionParams>();
    received.subschema_for::<ListSessionsParams>();
    received.subschema_for::<FetchTurnsParams>();
    received.subschema_for::<FetchContentParams>();
    received.subschema_for::<BrowseDirectoryParams>();
    received.subschema_for::<DispatchActionParams>();
    let mut all = definitions(sent);
    for (name, schema) in definitions(received) {
        let other = all.insert(name.clone(), schema.clone());
        assert!(other.is_none_or(|other| other == schema), "{name} is written and read differently: name it twice");
    }
    all
}

fn definitions(mut generator: SchemaGenerator) -> Schemas {
    let described = generator.take_definitions(true);
    described.into_iter().map(|(name, schema)| (name, without_words(schema))).collect()
}

/// The schema without descriptions.
fn without_words(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.into_iter().filter_map(|(key, value)| match (key.as_str(), value) {
                ("description" | "title", Value::String(_)) | ("default" | "examples", _) => None,
                // The names of properties are not keywords.
                ("properties", Value::Object(properties)) => {
                    let properties = properties.into_iter().map(|(name, value)| (name, without_words(value)));
                    Some((key, Value::Object(properties.collect())))
                }
                (_, value) => Some((key, without_words(value))),
            });
            folded(kept.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_words).collect()),
        other => other,
    }
}

/// An enum of words becomes one list of them, whether or not each has a description.
fn folded(schema: Map<String, Value>) -> Value {
    let words = |variant: &Value| match (variant.get("const"), variant.get("enum")) {
        _ if variant.get("type") != Some(&Value::from("string")) => None,
        (Some(word), None) => Some(vec![word.clone()]),
        (None, Some(Value::Array(words))) => Some(words.clone()),
        _ => None,
    };
    let listed = match schema.get("oneOf") {
        Some(Value::Array(variants)) if schema.len() == 1 => variants.iter().map(words).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    match listed {
        Some(words) => serde_json::json!({"type": "string", "enum": words.concat()}),
        None => Value::Object(schema),
    }
}

/// The changes in `living` that break a peer with `frozen`.
fn breaks(frozen: &Schemas, living: &Schemas) -> Vec<String> {
    let mut comparison = Comparison { frozen, living, open: Vec::new(), problems: Vec::new() };
    for (name, schema) in frozen {
        match living.get(name) {
            Some(now) => comparison.schema(name, schema, now),
            None => comparison.problem(name, "is gone"),
        }
    }
    comparison.problems
}

struct Comparison<'a> {
    frozen: &'a Schemas,
    living: &'a Schemas,
    /// The references being followed, so that a recursive type ends.
    open: Vec<(String, String)>,
    problems: Vec<String>,
}

impl Comparison<'_> {
    fn problem(&mut self, path: &str, what: &str) {
        self.problems.push(format!("{path} {what}"));
    }

    /// The problems of one comparison on its own.
    fn tried(&mut self, path: &str, was: &Value, now: &Value) -> Vec<String> {
        let earlier = std::mem::take(&mut self.problems);
        self.schema(path, was, now);
        std::mem::replace(&mut self.problems, earlier)
    }

    fn schema(&mut self, path: &str, was: &Value, now: &Value) {
        let followed = (reference(was), reference(now));
        if let (Some(was), Some(now)) = followed {
            let pair = (was.to_owned(), now.to_owned());
            if self.open.contains(&pair) {
                return;
            }
            self.open.push(pair);
        }
        let (frozen, living) = (self.frozen, self.living);
        let (was, now) = (resolve(frozen, was), resolve(living, now));
        self.members(path, was, now);
        self.variants(path, &Union::of(frozen, was), &Union::of(living, now));
        if let (Some(_), Some(_)) = followed {
            self.open.pop();
        }
    }

    /// Compares fields, items, and keywords of simple types.
    fn members(&mut self, path: &str, was: &Value, now: &Value) {
        for keyword in ["type", "format", "const", "enum"] {
            if simple(was, keyword) != simple(now, keyword) {
                self.problem(path, &format!("is of another type (`{keyword}`)"));
            }
        }
        for keyword in ["items", "additionalProperties"] {
            match (was.get(keyword), now.get(keyword)) {
                (Some(was), Some(now)) => self.schema(&format!("{path}[]"), was, now),
                (None, None) => {}
                (Some(_), None) | (None, Some(_)) => self.problem(path, &format!("is of another type (`{keyword}`)")),
            }
        }
        let (fields_were, fields_are) = (fields(was), fields(now));
        for (name, (was, was_required)) in &fields_were {
            let path = format!("{path}.{name}");
            match fields_are.get(name) {
                None => self.problem(&path, "was removed or renamed"),
                Some((now, is_required)) => {
                    match (was_required, is_required) {
                        (true, false) => self.problem(&path, "was required and is optional"),
                        (false, true) => self.problem(&path, "was optional and is required"),
                        (true, true) | (false, false) => {}
                    }
                    self.schema(&path, was, now);
                }
            }
        }
        for (name, (_, required)) in &fields_are {
            if *required && !fields_were.contains_key(name) {
                self.problem(&format!("{path}.{name}"), "is new and required");
            }
        }
    }

    /// Every old variant must exist; new ones may come if a tag distinguishes them.
    fn variants(&mut self, path: &str, was: &Union<'_>, now: &Union<'_>) {
        if was.nullable != now.nullable {
            self.problem(path, "is of another type (`null`)");
        }
        if was.variants.is_empty() != now.variants.is_empty() {
            return self.problem(path, "is of another type (a union or none)");
        }
        for (tag, variant) in &was.variants {
            let candidates: Vec<&Value> =
                now.variants.iter().filter(|(other, _)| other == tag).map(|(_, variant)| *variant).collect();
            let path = format!("{path}({tag})");
            let tried = candidates.into_iter().map(|candidate| self.tried(&path, variant, candidate));
            match tried.min_by_key(Vec::len) {
                None => self.problem(&path, "is gone"),
                Some(problems) => self.problems.extend(problems),
            }
        }
    }
}

/// The alternatives of a schema, each under its tag.
struct Union<'a> {
    nullable: bool,
    variants: Vec<(String, &'a Value)>,
}

impl<'a> Union<'a> {
    fn of(schemas: &'a Schemas, schema: &'a Value) -> Self {
        let listed = ["oneOf", "anyOf"].iter().filter_map(|keyword| schema.get(keyword)?.as_array()).flatten();
        let null = Value::from("null");
        let (nulls, variants): (Vec<_>, Vec<_>) = listed.partition(|variant| variant.get("type") == Some(&null));
        let listed_type = schema.get("type").and_then(Value::as_array).is_some_and(|types| types.contains(&null));
        let variants = variants.into_iter().map(|variant| (tag(resolve(schemas, variant)), variant)).collect();
        Self { nullable: !nulls.is_empty() || listed_type, variants }
    }
}

/// The tag of a variant: its constants.
fn tag(variant: &Value) -> String {
    if let Some(constant) = variant.get("const") {
        return constant.to_string();
    }
    let constants = fields(variant).into_iter().filter_map(|(name, (schema, _))| {
        let constant = schema.get("const")?;
        Some(format!("{name}: {constant}"))
    });
    constants.collect::<Vec<_>>().join(", ")
}

/// The properties of an object, and true for required ones.
fn fields(schema: &Value) -> BTreeMap<&str, (&Value, bool)> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), (schema, is_required(name)))).collect()
}

/// A keyword's value, sorted; a `null` among types is compared elsewhere.
fn simple(schema: &Value, keyword: &str) -> Vec<String> {
    let listed = match schema.get(keyword) {
        None => vec![],
        Some(Value::Array(items)) => items.iter().map(Value::to_string).collect(),
        Some(other) => vec![other.to_string()],
    };
    let mut kept: Vec<String> = listed.into_iter().filter(|item| keyword != "type" || item != "\"null\"").collect();
    kept.sort();
    kept
}

fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()
}

fn resolve<'a>(schemas: &'a Schemas, schema: &'a Value) -> &'a Value {
    match reference(schema).and_then(|reference| schemas.get(reference.strip_prefix("#/$defs/")?)) {
        Some(named) => resolve(schemas, named),
        None => schema,
    }
}

/// The current types still serve every peer with the released ones.
///
/// An intended change is written into the file by running this test with `UPDATE_FROZEN=1`. Only the newest version's
/// file may be changed so: an older version stays unchanged as long as it is supported.
#[test]
fn the_living_shapes_of_version_1_are_compatible_with_the_released_ones() {
    let living = living();
    if std::env::var_os("UPDATE_FROZEN").is_some_and(|value| value == "1") {
        // With sorted keys, whichever map serde_json was built with.
        let mut sorted = Value::Object(living.clone());
        sorted.sort_all_objects();
        let mut text = serde_json::to_string_pretty(&sorted).unwrap();
        text.push('\n');
        std::fs::write(FROZEN, text).unwrap();
    }
    let frozen: Schemas = serde_json::from_str(&std::fs::read_to_string(FROZEN).unwrap()).unwrap();
    assert_eq!(breaks(&frozen, &living), Vec::<String>::new());
}

#[test]
fn the_released_shapes_name_every_action_and_notification() {
    let frozen: Schemas = serde_json::from_str(&std::fs::read_to_string(FROZEN).unwrap()).unwrap();
    let tags = |name: &str| -> Vec<String> {
        let listed = frozen[name]["oneOf"].as_array().unwrap();
        listed.iter().map(|variant| variant["properties"]["type"]["const"].as_str().unwrap().to_owned()).collect()
    };
    let mut actions = tags("RootAction");
    actions.extend(tags("SessionAction"));
    assert_eq!(actions, ActionType::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>());
    let notifications: Vec<_> = NotificationType::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(tags("Notification"), notifications);
}

#[test]
fn no_field_of_the_released_shapes_can_go_unnoticed() {
    let living = living();
    let mut tried = 0;
    for (name, schema) in &living {
        let variants = schema.get("oneOf").and_then(Value::as_array).map_or(0, Vec::len);
        let pointers = (0..variants).map(|number| format!("/oneOf/{number}/properties"));
        for pointer in pointers.chain(["/properties".to_owned()]) {
            let Some(properties) = schema.pointer(&pointer).and_then(Value::as_object) else { continue };
            for field in properties.keys() {
                let mut without = living.clone();
                without[name].pointer_mut(&pointer).unwrap().as_object_mut().unwrap().remove(field);
                assert_ne!(breaks(&living, &without), Vec::<String>::new(), "{name}{pointer}/{field}");
                tried += 1;
            }
        }
    }
    assert!(tried > 150, "{tried}");
}

mod rules {
    use serde_json::json;

    use super::*;

    fn object(fields: Value, required: Value) -> Value {
        json!({"type": "object", "properties": fields, "required": required})
    }

    fn variant(tag: &str, fields: &[&str]) -> Value {
        let mut properties = json!({"type": {"type": "string", "const": tag}});
        for field in fields {
            properties[field] = json!({"type": "string"});
        }
        let required: Vec<&str> = ["type"].iter().chain(fields).copied().collect();
        object(properties, json!(required))
    }

    /// The problems if a type `T` changes from one schema to the other.
    fn from_to(was: Value, now: Value) -> Vec<String> {
        breaks(&Map::from_iter([("T".to_owned(), was)]), &Map::from_iter([("T".to_owned(), now)]))
    }

    fn two_fields() -> Value {
        object(json!({"a": {"type": "string"}, "b": {"type": ["integer", "null"], "format": "uint64"}}), json!(["a"]))
    }

    #[test]
    fn the_same_passes_whatever_is_said_about_it() {
        assert_eq!(from_to(two_fields(), two_fields()), [""; 0]);
        let mut described = two_fields();
        described["description"] = json!("Words");
        described["title"] = json!("T");
        described["properties"]["a"]["description"] = json!("More words");
        assert_eq!(without_words(described), two_fields());
    }

    #[test]
    fn a_property_may_be_called_title_or_description() {
        let named = object(json!({"title": {"type": "string"}, "description": {"type": "string"}}), json!([]));
        assert_eq!(without_words(named.clone()), named);
    }

    #[test]
    fn a_removed_field_fails() {
        let mut now = two_fields();
        now["properties"].as_object_mut().unwrap().remove("b");
        assert_eq!(from_to(two_fields(), now), ["T.b was removed or renamed"]);
    }

    #[test]
    fn a_renamed_field_fails() {
        let now = object(json!({"c": {"type": "string"}, "b": two_fields()["properties"]["b"]}), json!(["c"]));
        assert_eq!(from_to(two_fields(), now), ["T.a was removed or renamed", "T.c is new and required"]);
    }

    #[test]
    fn a_retyped_field_fails_in_both_directions() {
        let other_types = [
            json!({"type": "boolean"}),
            json!({"type": "integer", "format": "uint64"}),
            json!({"type": ["string", "null"]}),
            json!({"type": "string", "enum": ["x"]}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"oneOf": [{"type": "string"}, {"type": "boolean"}]}),
            json!(true),
        ];
        for other in other_types {
            let mut now = two_fields();
            now["properties"]["a"] = other.clone();
            assert_ne!(from_to(two_fields(), now.clone()), [""; 0], "to {other}");
            assert_ne!(from_to(now, two_fields()), [""; 0], "from {other}");
        }
        let mut now = two_fields();
        now["properties"]["b"]["format"] = json!("int64");
        assert_eq!(from_to(two_fields(), now), ["T.b is of another type (`format`)"]);
    }

    #[test]
    fn a_field_retyped_further_inside_fails() {
        let list = |item: &str| {
            let entries = object(json!({"entry": {"type": item}}), json!(["entry"]));
            object(json!({"list": {"type": "array", "items": entries}}), json!(["list"]))
        };
        assert_eq!(from_to(list("string"), list("integer")), ["T.list[].entry is of another type (`type`)"]);
        let map = |item: &str| json!({"type": "object", "additionalProperties": {"type": item}});
        assert_eq!(from_to(map("string"), map("integer")), ["T[] is of another type (`type`)"]);
    }

    #[test]
    fn a_newly_required_field_fails() {
        let mut added = two_fields();
        added["properties"]["c"] = json!({"type": "string"});
        added["required"] = json!(["a", "c"]);
        assert_eq!(from_to(two_fields(), added), ["T.c is new and required"]);
        let mut tightened = two_fields();
        tightened["required"] = json!(["a", "b"]);
        assert_eq!(from_to(two_fields(), tightened), ["T.b was optional and is required"]);
    }

    #[test]
    fn a_required_field_that_becomes_optional_fails() {
        let mut loosened = two_fields();
        loosened["required"] = json!([]);
        assert_eq!(from_to(two_fields(), loosened), ["T.a was required and is optional"]);
    }

    #[test]
    fn an_added_optional_field_passes() {
        let mut now = two_fields();
        now["properties"]["c"] = json!({"type": "string"});
        assert_eq!(from_to(two_fields(), now), [""; 0]);
    }

    #[test]
    fn a_removed_enum_value_fails_and_so_does_an_added_one() {
        let words = |words: &[&str]| json!({"type": "string", "enum": words});
        assert_eq!(from_to(words(&["x", "y"]), words(&["x"])), ["T is of another type (`enum`)"]);
        assert_eq!(from_to(words(&["x"]), words(&["x", "y"])), ["T is of another type (`enum`)"]);
        assert_eq!(from_to(words(&["x", "y"]), words(&["y", "x"])), [""; 0]);
    }

    #[test]
    fn a_description_of_a_single_enum_value_changes_nothing() {
        let plain = json!({"type": "string", "enum": ["x", "y", "z"]});
        let described = json!({"oneOf": [
            {"type": "string", "enum": ["x", "z"]},
            {"type": "string", "const": "y", "description": "Words"},
        ]});
        assert_eq!(from_to(plain, without_words(described)), [""; 0]);
    }

    #[test]
    fn a_removed_or_renamed_variant_fails_and_an_added_one_passes() {
        let union = |variants: &[&str]| {
            let variants: Vec<Value> = variants.iter().map(|tag| variant(tag, &["a"])).collect();
            json!({"oneOf": variants})
        };
        assert_eq!(from_to(union(&["x", "y"]), union(&["x"])), [r#"T(type: "y") is gone"#]);
        assert_eq!(from_to(union(&["x", "y"]), union(&["x", "z"])), [r#"T(type: "y") is gone"#]);
        assert_eq!(from_to(union(&["x"]), union(&["x", "y"])), [""; 0]);
        assert_eq!(from_to(union(&["x", "y"]), union(&["y", "x"])), [""; 0]);
    }

    #[test]
    fn a_field_changed_inside_a_variant_fails() {
        let was = json!({"oneOf": [variant("x", &["a"]), variant("y", &["a"])]});
        let now = json!({"oneOf": [variant("x", &["a"]), variant("y", &["a", "b"])]});
        assert_eq!(from_to(was.clone(), now.clone()), [r#"T(type: "y").b is new and required"#]);
        assert_eq!(from_to(now, was), [r#"T(type: "y").b was removed or renamed"#]);
    }

    #[test]
    fn fields_beside_a_union_are_compared_too() {
        let with = |fields: Value| json!({"type": "object", "properties": fields, "oneOf": [variant("x", &[])]});
        let was = with(json!({"session": {"type": "string"}}));
        assert_eq!(from_to(was, with(json!({}))), ["T.session was removed or renamed"]);
    }

    #[test]
    fn a_removed_type_fails_and_an_added_one_passes() {
        let one = Map::from_iter([("T".to_owned(), two_fields())]);
        let two = Map::from_iter([("T".to_owned(), two_fields()), ("U".to_owned(), two_fields())]);
        assert_eq!(breaks(&one, &two), [""; 0]);
        assert_eq!(breaks(&two, &one), ["U is gone"]);
    }

    #[test]
    fn references_are_followed_and_a_type_inside_itself_ends() {
        let tree = |leaf: &str| {
            let children = json!({"type": "array", "items": {"$ref": "#/$defs/Tree"}});
            let fields = json!({"leaf": {"type": leaf}, "children": children});
            Map::from_iter([
                ("Tree".to_owned(), object(fields, json!(["leaf", "children"]))),
                ("Wood".to_owned(), object(json!({"tree": {"$ref": "#/$defs/Tree"}}), json!(["tree"]))),
            ])
        };
        assert_eq!(breaks(&tree("string"), &tree("string")), [""; 0]);
        let problems = breaks(&tree("string"), &tree("integer"));
        assert!(problems.contains(&"Tree.leaf is of another type (`type`)".to_owned()), "{problems:?}");
        assert!(problems.contains(&"Wood.tree.leaf is of another type (`type`)".to_owned()), "{problems:?}");
    }

    #[test]
    fn a_type_may_be_named_or_written_out() {
        let inline = object(json!({"inner": two_fields()}), json!([]));
        let named = object(json!({"inner": {"$ref": "#/$defs/Inner"}}), json!([]));
        let was = Map::from_iter([("T".to_owned(), inline)]);
        let now = Map::from_iter([("T".to_owned(), named), ("Inner".to_owned(), two_fields())]);
        assert_eq!(breaks(&was, &now), [""; 0]);
    }

    #[test]
    fn a_field_that_may_be_absent_is_compared_by_what_it_holds() {
        let holding = |inner: &str| {
            let inner = json!({"anyOf": [{"$ref": format!("#/$defs/{inner}")}, {"type": "null"}]});
            object(json!({"inner": inner}), json!([]))
        };
        let schemas = |inner: &str| {
            let mut changed = two_fields();
            changed["properties"]["a"] = json!({"type": "boolean"});
            Map::from_iter([
                ("T".to_owned(), holding(inner)),
                ("One".to_owned(), two_fields()),
                ("Other".to_owned(), changed),
            ])
        };
        assert_eq!(breaks(&schemas("One"), &schemas("One")), [""; 0]);
        assert_eq!(breaks(&schemas("One"), &schemas("Other")), ["T.inner().a is of another type (`type`)"]);
    }
}
