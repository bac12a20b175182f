//! `x-grove/hosts/…`: the list of other hosts.

use super::*;

#[tokio::test]
async fn a_host_is_added_once_it_answers_and_no_answer_has_its_token() {
    let (host, other) = (Host::start(), Host::start());
    other.client_with_session("maker").await;
    let mut page = page(&host).await;
    let list = "x-grove/hosts/list";
    assert_eq!(answer(&mut page, list, json!({})).await["hosts"], json!([]));
    let address = format!("ws://{}/", other.address);

    let add = "x-grove/hosts/add";
    for (params, words) in [
        (json!({"name": "Lab", "address": address, "token": other.token}), "is no name for a host"),
        (json!({"name": "lab", "address": "ftp://x", "token": "t"}), "address is invalid"),
        (json!({"name": "lab", "address": address}), "needs a token"),
        (json!({"name": "lab", "address": "ssh://x", "token": "t"}), "needs no token"),
        (json!({"name": "lab", "address": address, "token": "t", "pin": "sha256:00"}), "behind TLS"),
        (json!({"name": "lab", "address": address, "token": "x".repeat(5000)}), "too long"),
    ] {
        let refused = page.ask(add, params).await.unwrap_err();
        assert!(refused.message.contains(words), "no {words} in {}", refused.message);
        assert_eq!(refused.code, INVALID_PARAMS, "{}", refused.message);
    }
    for wrong in [json!({"address": "ws://127.0.0.1:1/", "token": "t"}), json!({"address": address, "token": "wrong"})]
    {
        let mut params = wrong;
        params["name"] = json!("lab");
        let refused = page.ask(add, params).await.unwrap_err();
        assert!(refused.message.starts_with("lab was not added: "), "{}", refused.message);
    }
    assert_eq!(answer(&mut page, list, json!({})).await["hosts"], json!([]), "nothing was added");

    let added = answer(&mut page, add, json!({"name": "lab", "address": address, "token": other.token})).await;
    assert_eq!((&added["added"], &added["host"]["state"]), (&json!(true), &json!("ready")), "{added}");
    let again = page.ask(add, json!({"name": "lab", "address": address, "token": "t"})).await.unwrap_err();
    assert!(again.message.contains("exists already"), "{}", again.message);

    let is_listed = |listed: &Value| listed["hosts"][0]["seenAt"].is_u64() && listed["hosts"][0]["state"] == "ready";
    let listed = until(&mut page, list, json!({}), is_listed).await;
    let row = &listed["hosts"][0];
    assert_eq!((&row["name"], &row["sessions"], &row["hasToken"]), (&json!("lab"), &json!(1), &json!(true)));
    assert_eq!(row["version"], env!("CARGO_PKG_VERSION"));
    for said in [&added, &listed] {
        assert!(!said.to_string().contains(&other.token), "{said}");
    }

    drop(other);
    let away = |listed: &Value| listed["hosts"][0]["state"] == "away" && listed["hosts"][0]["reason"].is_string();
    until(&mut page, "x-grove/hosts/check", json!({"name": "lab"}), away).await;
    let unknown = page.ask("x-grove/hosts/check", json!({"name": "nobody"})).await.unwrap_err();
    assert_eq!(unknown.code, NOT_FOUND);
    assert_eq!(answer(&mut page, "x-grove/hosts/remove", json!({"name": "lab"})).await, json!({"removed": true}));
    assert_eq!(answer(&mut page, "x-grove/hosts/remove", json!({"name": "lab"})).await, json!({"removed": false}));
    assert_eq!(answer(&mut page, list, json!({})).await["hosts"], json!([]));
}

#[tokio::test]
async fn a_host_that_is_down_is_added_if_that_is_wanted_and_a_broken_entry_says_why() {
    let host = Host::start();
    let mut page = page(&host).await;
    let down = json!({"name": "down", "address": "ws://127.0.0.1:1/", "token": "t", "unchecked": true});
    let added = answer(&mut page, "x-grove/hosts/add", down).await;
    assert_eq!((&added["added"], &added["host"]["state"]), (&json!(true), &json!("unknown")), "{added}");
    let file = host.place.data().join("hosts.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n[\"<img src=x>\"]\naddress = 5\n")).unwrap();
    let listed = answer(&mut page, "x-grove/hosts/list", json!({})).await;
    let names: Vec<&str> =
        listed["hosts"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["<img src=x>", "down"]);
    assert_eq!(listed["hosts"][0]["state"], "unusable");
    assert!(listed["hosts"][0]["reason"].as_str().unwrap().contains("is no name"), "{listed}");
}
