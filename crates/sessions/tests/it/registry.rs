//! The registry of providers.

use std::sync::Arc;

use grove_sessions::provider::SessionsProvider;
use grove_sessions::{DuplicateProvider, Registry, SubscriptionItem};

use crate::provider::TestProvider;

fn names(registry: &Registry) -> Vec<String> {
    registry.providers().iter().map(|provider| provider.id().to_string()).collect()
}

fn with_order(id: &str, order: i32) -> Arc<TestProvider> {
    Arc::new(TestProvider { order, ..TestProvider::new(id) })
}

#[test]
fn lower_orders_come_first_and_equal_ones_as_they_were_registered() {
    let registry = Registry::new();
    let _handles: Vec<_> = [("a", 0), ("b", -1), ("c", 0), ("d", -1), ("e", 5)]
        .map(|(id, order)| registry.register(with_order(id, order)).unwrap())
        .into();
    assert_eq!(names(&registry), ["b", "d", "a", "c", "e"]);
}

#[test]
fn an_id_is_registered_once() {
    let registry = Registry::new();
    let first = registry.register(with_order("a", 0)).unwrap();
    let refused = registry.register(with_order("a", 3)).unwrap_err();
    assert!(refused.to_string().contains("provider a is registered already"));
    assert!(matches!(refused, DuplicateProvider(id) if id.as_str() == "a"));
    drop(first);
    let _again = registry.register(with_order("a", 3)).unwrap();
}

#[test]
fn coming_and_going_are_told_once_each() {
    let registry = Registry::new();
    let mut events = registry.subscribe();
    let mut next = || match events.try_next() {
        Some(SubscriptionItem::Event(change)) => {
            let ids = |list: &[Arc<dyn SessionsProvider>]| list.iter().map(|p| p.id().to_string()).collect::<Vec<_>>();
            Some((ids(&change.added), ids(&change.removed)))
        }
        Some(SubscriptionItem::Reset) => panic!("nothing was lost"),
        None => None,
    };
    let handle = registry.register(with_order("a", 0)).unwrap();
    assert_eq!(next(), Some((vec!["a".into()], vec![])));
    handle.unregister();
    handle.unregister();
    drop(handle);
    assert_eq!(next(), Some((vec![], vec!["a".into()])));
    assert_eq!(next(), None);
    assert!(
        registry.register(with_order("a", 0)).is_ok() && names(&registry).is_empty(),
        "a dropped handle takes it out"
    );
}

#[test]
fn an_old_handle_does_not_take_out_a_new_provider_of_the_same_id() {
    let registry = Registry::new();
    let old = registry.register(with_order("a", 0)).unwrap();
    old.unregister();
    let _new = registry.register(with_order("a", 0)).unwrap();
    drop(old);
    assert_eq!(names(&registry), ["a"]);
}

#[test]
fn one_provider_is_found_by_its_id() {
    let registry = Registry::new();
    let _a = registry.register(with_order("a", 0)).unwrap();
    assert_eq!(registry.get("a").unwrap().label().as_ref(), "Provider a");
    assert!(registry.get("b").is_none());
}

#[test]
fn who_listens_too_slowly_is_told_to_look_anew() {
    let registry = Registry::new();
    let mut events = registry.subscribe();
    for _ in 0..200 {
        drop(registry.register(with_order("a", 0)).unwrap());
    }
    assert!(matches!(events.try_next(), Some(SubscriptionItem::Reset)));
    assert!(events.try_next().is_none(), "what was left is older than what is looked at now");
}
