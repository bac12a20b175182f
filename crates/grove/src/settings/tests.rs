//! The layers of settings, and the file.

use super::*;

fn layers(toml: &str, environment: &[(&str, &str)]) -> Layers {
    Layers {
        file: "grove.toml".into(),
        values: toml.parse().unwrap(),
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

#[test]
fn flags_come_before_environment_before_file_before_default() {
    let file = "replay-actions = 3";
    let environment = [("GROVE_REPLAY_ACTIONS", "2")];
    let get = |layers: Layers, flag| {
        let setting = layers.one("replay-actions", flag, || 4usize).unwrap();
        (setting.value, setting.source.to_string())
    };
    assert_eq!(get(layers(file, &environment), Some(1)), (1, "flag (--replay-actions)".into()));
    assert_eq!(get(layers(file, &environment), None), (2, "environment (GROVE_REPLAY_ACTIONS)".into()));
    assert_eq!(get(layers(file, &[]), None), (3, "grove.toml".into()));
    assert_eq!(get(layers("", &[]), None), (4, "default".into()));
}

#[test]
fn a_bad_value_is_named_with_its_source() {
    let bad = layers("listen = 'nowhere'", &[]);
    let error = bad.one::<SocketAddr>("listen", None, || unreachable!()).unwrap_err().to_string();
    assert!(error.starts_with("`nowhere` is not a valid value of listen (from grove.toml)"), "{error}");
    let bad = layers("browse-roots = 'x'", &[]);
    assert!(bad.paths("browse-roots", "", &[], Vec::new).is_err());
}

#[test]
fn agents_stand_in_the_file_and_their_secrets_are_not_shown() {
    let file = "max-agents = 2\n[agents.claude]\nenv = { ANTHROPIC_API_KEY = 'hunter2' }";
    let agents = layers(file, &[("GROVE_AGENTS", "ignored")]).agents(&AgentCatalog::built_in()).unwrap();
    assert_eq!(agents.value["claude"].env["ANTHROPIC_API_KEY"], "hunter2");
    let shown = names(&agents, serde_json::value::Serializer).unwrap();
    assert_eq!(shown["value"], serde_json::json!(["claude"]));
    assert!(!shown.to_string().contains("hunter2"));
    assert_eq!(layers("", &[]).agents(&AgentCatalog::built_in()).unwrap().source, SettingSource::Default);
    let none = layers("max-agents = 0", &[]).one("max-agents", None, || MAX_AGENTS).unwrap_err().to_string();
    assert!(none.contains("`0` is not a valid value of max-agents"), "{none}");
}

/// Random changes of a file with every setting: each is read, or refused with the file's name.
#[test]
fn no_text_of_the_file_makes_the_settings_panic() {
    const PIECES: &[&str] = &[
        "=",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "'",
        "\n",
        "#",
        ".",
        ",",
        "-1",
        "1e9",
        "nan",
        "''",
        "true",
        "9999999999999999999",
    ];
    let whole = include_str!("../../tests/it/golden/grove.toml");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grove.toml");
    let (mut state, mut refused, next) = (1_u64, 0, |state: &mut u64, bound: usize| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % bound
    });
    for _ in 0..300 {
        let mut text: Vec<char> = whole.chars().collect();
        for _ in 0..=next(&mut state, 3) {
            let at = next(&mut state, text.len());
            let until = (at + next(&mut state, 6)).min(text.len());
            text.splice(at..until, PIECES[next(&mut state, PIECES.len())].chars());
        }
        crate::data_folder::write_private(&file, &text.iter().collect::<String>()).unwrap();
        let common = Common { data_dir: None, config: Some(file.clone()) };
        if let Err(error) = Settings::load(&common, &ServeArgs::default()) {
            refused += 1;
            assert!(format!("{error:#}").contains("grove.toml"), "{error:#}");
        }
    }
    assert!((150..300).contains(&refused), "{refused}");
}

#[test]
fn lists_of_folders_come_from_every_layer() {
    let list = layers("read-roots = ['/a', '/b']", &[]).paths("read-roots", "", &[], Vec::new).unwrap();
    assert_eq!(list.value, [PathBuf::from("/a"), PathBuf::from("/b")]);
    let env = layers("", &[("GROVE_READ_ROOTS", "/c:/d")]).paths("read-roots", "", &[], Vec::new).unwrap();
    assert_eq!(env.value, [PathBuf::from("/c"), PathBuf::from("/d")]);
}
