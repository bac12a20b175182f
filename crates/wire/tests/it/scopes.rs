//! The table of scopes names every method and action of the registries.

use grove_core::{Scope, ScopeSet};
use grove_wire::ahp::{Action, Dispatcher};
use grove_wire::scopes::{ahp_action, ahp_method, copilot_method, v1_action, v1_method, x_grove_method};
use grove_wire::{ahp, copilot, v1, x_grove};

use crate::ahp_samples;

#[test]
fn every_method_has_a_scope_except_those_that_open_a_connection() {
    let without = |names: Vec<(&'static str, Option<Scope>)>| -> Vec<&'static str> {
        names.into_iter().filter(|(_, scope)| scope.is_none()).map(|(name, _)| name).collect()
    };
    let of_v1 = v1::Method::ALL.iter().map(|method| (method.as_str(), v1_method(*method))).collect();
    assert_eq!(without(of_v1), ["ping"]);
    let of_ahp = ahp::Method::ALL.iter().map(|method| (method.as_str(), ahp_method(*method))).collect();
    assert_eq!(without(of_ahp), ["initialize", "ping", "reconnect"]);
    let own = x_grove::Method::ALL.iter().map(|method| (method.as_str(), x_grove_method(*method))).collect();
    assert_eq!(without(own), [""; 0]);
    let sdk = copilot::methods::Method::ALL.iter();
    let sdk = sdk.map(|method| (method.as_str(), copilot_method(*method))).collect();
    assert_eq!(without(sdk), ["connect", "ping", "status.get", "auth.getStatus"]);
}

#[test]
fn every_action_that_a_client_may_dispatch_has_a_scope_and_no_other_has() {
    for action in v1::ActionType::ALL {
        assert_eq!(v1_action(*action).is_some(), action.client_may_dispatch(), "{action:?}");
    }
    let samples = ahp_samples::actions().into_iter().map(|sample| Action::parse(&sample.to_string()).unwrap());
    let samples: Vec<_> = samples.collect();
    for (kind, dispatcher) in Action::kinds() {
        let sample = samples.iter().find(|sample| sample.kind() == kind).unwrap_or_else(|| panic!("{kind}"));
        assert_eq!(ahp_action(sample).is_some(), dispatcher == Dispatcher::Client, "{kind}");
    }
}

#[test]
fn a_read_only_token_changes_nothing_and_answers_nothing() {
    let reads = ScopeSet::NONE.with(Scope::Read);
    let words = ["create", "dispose", "delete", "remove", "send", "fork", "compact", "erase", "rename", "confirm"];
    let methods = x_grove::Method::ALL.iter().map(|method| (method.as_str(), x_grove_method(*method)));
    let methods = methods.chain(ahp::Method::ALL.iter().map(|method| (method.as_str(), ahp_method(*method))));
    let sdk = copilot::methods::Method::ALL.iter();
    let methods = methods.chain(sdk.map(|method| (method.as_str(), copilot_method(*method))));
    // A watch belongs to its connection, and the list of disposed sessions disposes of none.
    let exceptions = ["createResourceWatch", "x-grove/disposed"];
    for (name, scope) in methods.filter(|(name, _)| !exceptions.contains(name)) {
        let changes = words.iter().any(|word| name.to_ascii_lowercase().contains(word));
        let is_read = scope.is_some_and(|scope| reads.contains(scope));
        assert!(!(changes && is_read), "{name}");
    }
}
