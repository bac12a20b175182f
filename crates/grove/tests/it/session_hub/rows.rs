//! The list: filters, order and pins.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Page, Protocol, local, row};
use crate::support::Host;

async fn ids(page: &mut Page, params: Value) -> Vec<String> {
    let listed = page.get("list", params).await;
    let rows = listed["sessions"].as_array().unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// Waits until the list has so many rows: its host is read when the first client uses it.
async fn until_listed(page: &mut Page, count: usize) {
    while page.listed().await.len() < count {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_filter_is_applied_before_the_pages() {
    let host = Host::start();
    let mut maker = host.client("maker").await;
    for name in ["apple", "pear", "plum"] {
        let uri = format!("scripted:/{name}");
        maker.ready_session(&uri).await;
        maker.run_script(&uri, "t", json!([{"title": format!("A {name} of the garden")}, {"say": "x"}])).await;
    }
    maker.run_script("scripted:/plum", "u", json!([{"fail": "no"}])).await;
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    page.get("subscribe", json!({})).await;
    until_listed(&mut page, 3).await;
    page.get("archive", json!({"session": local("scripted:/pear")})).await;
    page.told("changed", row(&local("scripted:/pear"), |row| row["isArchived"] == true)).await;
    let [apple, pear, plum] = ["apple", "pear", "plum"].map(|name| local(&format!("scripted:/{name}")));

    let by = |filter: Value| json!({"filter": filter, "sort": "updated"});
    assert_eq!(ids(&mut page, by(json!({"text": "GARDEN  pear"}))).await, std::slice::from_ref(&pear));
    assert_eq!(ids(&mut page, by(json!({"text": "garden", "archived": false}))).await, [plum.clone(), apple.clone()]);
    assert_eq!(ids(&mut page, by(json!({"archived": true}))).await, std::slice::from_ref(&pear));
    assert_eq!(ids(&mut page, by(json!({"states": ["error"]}))).await, std::slice::from_ref(&plum));
    assert_eq!(
        ids(&mut page, by(json!({"states": ["error", "completed"], "text": "apple"}))).await,
        std::slice::from_ref(&apple)
    );
    assert!(ids(&mut page, by(json!({"providers": ["history-claude"]}))).await.is_empty());
    assert!(ids(&mut page, by(json!({"text": "cherry"}))).await.is_empty());
    let first = page.get("list", json!({"filter": {"text": "garden"}, "limit": 2})).await;
    assert_eq!((&first["total"], first["sessions"].as_array().unwrap().len()), (&json!(3), 2));
    let rest = json!({"filter": {"text": "garden"}, "limit": 2, "cursor": first["nextCursor"]});
    assert_eq!(ids(&mut page, rest).await.len(), 1);
    let by_day = page.get("list", json!({"grouping": "day"})).await;
    assert!(by_day.get("groups").is_none());
    let long = page.refused("list", by(json!({"text": "x".repeat(1001)}))).await;
    assert!(long.code == -32602 && long.message.contains("1000 bytes"), "{long:?}");
    assert_eq!(page.refused("list", by(json!({"states": ["asleep"]}))).await.code, -32602);
}

#[tokio::test]
async fn pinned_sessions_come_first_for_everybody_and_stay_so() {
    let host = Host::start();
    let mut maker = host.client("maker").await;
    for number in 0..4 {
        maker.ready_session(&format!("scripted:/{number}")).await;
    }
    let oldest = local("scripted:/0");
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    until_listed(&mut page, 4).await;
    let mut other = Page::open(&host, "other", Protocol::V1).await;
    other.get("subscribe", json!({})).await;
    assert_ne!(page.listed().await[0], oldest);
    page.get("pin", json!({"session": oldest, "pinned": true})).await;
    other.told("changed", row(&oldest, |row| row["isPinned"] == true)).await;
    // The cursor continues after the pinned rows.
    let first = page.get("list", json!({"limit": 1})).await;
    assert_eq!((&first["sessions"][0]["id"], &first["sessions"][0]["isPinned"]), (&json!(oldest), &json!(true)));
    let rest = ids(&mut page, json!({"limit": 9, "cursor": first["nextCursor"]})).await;
    assert!(rest.len() == 3 && !rest.contains(&oldest), "{rest:?}");
    assert_eq!(ids(&mut page, json!({"filter": {"pinned": true}})).await, std::slice::from_ref(&oldest));
    assert_eq!(page.refused("pin", json!({"session": local("scripted:/none"), "pinned": true})).await.code, -32001);

    drop((page, other, maker));
    let host = host.stop().serve(&[]);
    let mut page = Page::open(&host, "page", Protocol::Ahp).await;
    assert_eq!(page.listed().await[0], oldest);
    page.get("pin", json!({"session": oldest, "pinned": false})).await;
    assert_ne!(page.listed().await[0], oldest);
}
