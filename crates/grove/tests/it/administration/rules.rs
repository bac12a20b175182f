//! `x-grove/policy/…`: reading, trying and changing stored rules.

use std::fs;

use super::*;
use crate::run::script;

const FILE: &str = "# Mine.\n[[policy.rules]]\nallow = \"shell\"\ncommand = \"ls *\"\n";

#[tokio::test]
async fn rules_are_listed_with_their_places_and_judge_a_request_as_the_command_does() {
    let place = TestHome::new();
    place.write("home/.config/grove/grove.toml", FILE);
    let repository =
        "[[rules]]\nallow = \"edit\"\npath = \"src/**\"\n[[rules]]\ndeny = \"shell\"\ncommand = \"rm *\"\n";
    place.write("home/work/.grove/policy.toml", repository);
    let host = place.serve(&[]);
    let work = place.path("home/work").display().to_string();
    let mut page = page(&host).await;
    let listed = answer(&mut page, "x-grove/policy/rules", json!({"cwd": work})).await;
    let rules = listed["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 2, "an untrusted repository only tightens: {listed}");
    assert_eq!((&rules[0]["text"], &rules[0]["source"]), (&json!("allow shell \"ls *\""), &json!("settings")));
    assert_eq!((&rules[0]["line"], &rules[0]["file"]), (&json!(2), &listed["file"]));
    assert_eq!(rules[0]["toml"], "[[policy.rules]]\nallow = \"shell\"\ncommand = \"ls *\"\n");
    assert_eq!((&rules[1]["verdict"], &rules[1]["source"]), (&json!("deny"), &json!("repository")));
    assert_eq!((&listed["files"][1]["trusted"], &listed["files"][1]["rules"]), (&json!(false), &json!(2)));
    let without = answer(&mut page, "x-grove/policy/rules", json!({})).await;
    assert_eq!(without["rules"].as_array().unwrap().len(), 1);

    let mut check = async |subject: Value| {
        let mut params = subject;
        params["cwd"] = json!(work);
        answer(&mut page, "x-grove/policy/check", params).await
    };
    let allowed = check(json!({"kind": "shell", "command": "ls -l && ls"})).await;
    assert_eq!((&allowed["verdict"], &allowed["rule"]["line"]), (&json!("allow"), &json!(2)));
    let denied = check(json!({"kind": "shell", "command": "sh -c 'rm x'"})).await;
    assert_eq!((&denied["verdict"], &denied["rule"]["text"]), (&json!("deny"), &json!("deny shell \"rm *\"")));
    let asked = check(json!({"kind": "edit", "path": "src/a.rs"})).await;
    assert_eq!(asked["verdict"], "ask");
    assert!(asked["why"].as_str().unwrap().contains("no rule"), "{asked}");
    assert_eq!(check(json!({"kind": "fetch", "url": "https://docs.rs"})).await["verdict"], "ask");
    assert_eq!(check(json!({"kind": "mcp", "tool": "web/get"})).await["verdict"], "ask");

    let long = "x".repeat(70 << 10);
    for params in [json!({"kind": "other"}), json!({}), json!({"kind": "shell", "command": long})] {
        let refused = page.ask("x-grove/policy/check", params).await.unwrap_err();
        assert_eq!(refused.code, INVALID_PARAMS, "{}", refused.message);
    }
    let relative = page.ask("x-grove/policy/rules", json!({"cwd": "work"})).await.unwrap_err();
    assert_eq!(relative.code, INVALID_PARAMS, "{}", relative.message);

    // A folder outside of the roots needs a scope of its own.
    let mut reader = with_scopes(&host, "reader", "read").await;
    answer(&mut reader, "x-grove/policy/rules", json!({"cwd": work})).await;
    let refused = reader.ask("x-grove/policy/rules", json!({"cwd": "/"})).await.unwrap_err();
    assert!(refused.message.contains("needs the scope `folders`"), "{}", refused.message);
}

#[tokio::test]
async fn rules_are_added_and_removed_and_comments_stay() {
    let place = TestHome::new();
    let file = place.write("home/.config/grove/grove.toml", FILE);
    let host = place.serve(&[]);
    let mut page = page(&host).await;
    let added = "[[policy.rules]]\ndeny = \"shell\"\ncommand = \"git push *\"\nreason = \"people push\"\n";
    let changed = answer(&mut page, "x-grove/policy/add", json!({"toml": added})).await;
    assert_eq!(changed["rules"], json!(["deny shell \"git push *\""]));
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{FILE}\n{added}"));
    let push = json!({"kind": "shell", "command": "git push origin"});
    let verdict = answer(&mut page, "x-grove/policy/check", push.clone()).await;
    assert_eq!((&verdict["verdict"], &verdict["rule"]["reason"]), (&json!("deny"), &json!("people push")));

    for wrong in ["", "policy.rules = [{ allow = \"nothing\" }]", "not toml", &"#".repeat(70 << 10)] {
        let refused = page.ask("x-grove/policy/add", json!({"toml": wrong})).await.unwrap_err();
        assert_eq!(refused.code, INVALID_PARAMS, "{}", refused.message);
    }
    // Other tables of the text are not taken over.
    let more = "[agents.evil]\ncommand = [\"sh\"]\n[[policy.rules]]\nallow = \"fetch\"\nhost = \"docs.rs\"\n";
    answer(&mut page, "x-grove/policy/add", json!({"toml": more})).await;
    assert!(!fs::read_to_string(&file).unwrap().contains("evil"));

    let rules = answer(&mut page, "x-grove/policy/rules", json!({})).await["rules"].clone();
    let rule = &rules[1];
    let elsewhere = json!({"line": 1, "toml": rule["toml"]});
    let refused = page.ask("x-grove/policy/remove", elsewhere).await.unwrap_err();
    assert_eq!(refused.code, INVALID_REQUEST, "{}", refused.message);
    answer(&mut page, "x-grove/policy/remove", json!({"line": rule["line"], "toml": rule["toml"]})).await;
    assert_eq!(answer(&mut page, "x-grove/policy/check", push).await["verdict"], "ask");
    let left = fs::read_to_string(&file).unwrap();
    assert!(left.starts_with(FILE) && !left.contains("git push") && left.contains("docs.rs"), "{left}");
}

#[tokio::test]
async fn past_requests_are_judged_again_page_by_page_and_lead_to_suggestions() {
    let place = TestHome::new();
    place.write("home/.config/grove/grove.toml", FILE);
    let host = place.serve(&[]);
    let run = |args: &[&str], code: i32| {
        let ran = host.place.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
    };
    run(&["run", "--no-start", &script(&json!([{"say": "hello"}]))], 0);
    for command in ["cargo test one", "cargo test two", "cargo test three"] {
        let steps = json!([{"tool": {"name": "sh", "input": command, "output": "ran", "permission": "shell"}}]);
        run(&["send", "@last", &script(&steps)], 0);
        run(&["wait", "@last"], 9);
        run(&["approve"], 0);
        run(&["wait", "@last"], 0);
    }
    let mut page = page(&host).await;
    let test = "x-grove/policy/test";
    let report = until(&mut page, test, json!({}), |report| report["requests"] == 3).await;
    assert_eq!((&report["asked"], &report["differed"]), (&json!(3), &json!(0)), "{report}");

    // Rules are tried before they are stored.
    let tried = json!({"rules": "[[policy.rules]]\ndeny = \"shell\"\ncommand = \"cargo test *\"\n", "limit": 2});
    let first = answer(&mut page, test, tried.clone()).await;
    assert_eq!((&first["denied"], &first["differed"], &first["agreed"]), (&json!(3), &json!(3), &json!(0)));
    let subjects = |page: &Value| -> Vec<String> {
        let rows = page["differences"].as_array().unwrap();
        rows.iter().map(|row| row["subject"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(subjects(&first), ["cargo test three", "cargo test two"], "the newest first");
    let difference = &first["differences"][0];
    assert_eq!((&difference["answer"], &difference["verdict"]), (&json!("approved"), &json!("deny")));
    assert_eq!(difference["rule"]["text"], "deny shell \"cargo test *\"");
    assert!(difference["rule"]["source"].is_null(), "it stands in no file");
    let mut next = tried;
    next["cursor"] = first["nextCursor"].clone();
    let second = answer(&mut page, test, next).await;
    assert_eq!((subjects(&second), &second["nextCursor"]), (vec!["cargo test one".to_owned()], &Value::Null));

    let suggested = answer(&mut page, "x-grove/policy/suggest", json!({})).await;
    assert_eq!(suggested["suggestions"][0]["rule"]["text"], "allow shell \"cargo test *\"", "{suggested}");
    assert_eq!(suggested["suggestions"][0]["answers"], 3);
    let later = answer(&mut page, test, json!({"sinceMs": u64::from(u32::MAX) * 1000})).await;
    assert_eq!(later["requests"], 0);
    for params in [json!({"cursor": "x"}), json!({"rules": "nonsense"}), json!({"sinceMs": "now"})] {
        assert_eq!(page.ask(test, params).await.unwrap_err().code, INVALID_PARAMS);
    }
}
