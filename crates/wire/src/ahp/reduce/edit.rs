//! The small edits that every reducer is made of, each of which says whether it changed anything.

use std::collections::HashMap;

use super::ReduceOutcome;
use crate::ahp::Object;

/// Puts a copy of `value` in the place, unless an equal one is there.
pub(super) fn assign<T: Clone + PartialEq>(place: &mut T, value: &T) -> ReduceOutcome {
    let changed = place != value;
    if changed {
        place.clone_from(value);
    }
    ReduceOutcome::of(changed)
}

/// [`assign`], for an action that leaves what it does not mention.
pub(super) fn assign_if_some<T: Clone + PartialEq>(place: &mut T, value: &Option<T>) -> ReduceOutcome {
    value.as_ref().map_or(ReduceOutcome::Unchanged, |value| assign(place, value))
}

/// [`assign_if_some`] for what may be absent.
pub(super) fn set_if_some<T: Clone + PartialEq>(place: &mut Option<T>, value: &Option<T>) -> ReduceOutcome {
    value.as_ref().map_or(ReduceOutcome::Unchanged, |value| set(place, value))
}

/// [`assign`] for what may be absent, and is not any more.
pub(super) fn set<T: Clone + PartialEq>(place: &mut Option<T>, value: &T) -> ReduceOutcome {
    match place {
        Some(place) => assign(place, value),
        None => {
            *place = Some(value.clone());
            ReduceOutcome::Changed
        }
    }
}

/// Empties the place.
pub(super) fn clear<T>(place: &mut Option<T>) -> ReduceOutcome {
    ReduceOutcome::of(place.take().is_some())
}

/// Appends to a text.
pub(super) fn append(text: &mut String, more: &str) -> ReduceOutcome {
    text.push_str(more);
    ReduceOutcome::of(!more.is_empty())
}

/// Replaces the item that `is_it`, or appends one.
pub(super) fn upsert<T: Clone + PartialEq>(list: &mut Vec<T>, item: &T, is_it: impl Fn(&T) -> bool) -> ReduceOutcome {
    match list.iter_mut().find(|item| is_it(item)) {
        Some(place) => assign(place, item),
        None => {
            list.push(item.clone());
            ReduceOutcome::Changed
        }
    }
}

/// [`upsert`] into a list that may not be there yet.
pub(super) fn upsert_some<T: Clone + PartialEq>(
    list: &mut Option<Vec<T>>,
    item: &T,
    is_it: impl Fn(&T) -> bool,
) -> ReduceOutcome {
    upsert(list.get_or_insert_default(), item, is_it)
}

/// Takes the item that `is_it` out of the list.
pub(super) fn remove<T>(list: &mut Vec<T>, is_it: impl Fn(&T) -> bool) -> ReduceOutcome {
    let at = list.iter().position(is_it);
    if let Some(at) = at {
        list.remove(at);
    }
    ReduceOutcome::of(at.is_some())
}

/// [`remove`] from a list that may not be there. It stays, even if it is empty then.
pub(super) fn remove_some<T>(list: &mut Option<Vec<T>>, is_it: impl Fn(&T) -> bool) -> ReduceOutcome {
    list.as_mut().map_or(ReduceOutcome::Unchanged, |list| remove(list, is_it))
}

/// Puts those of a list that `order` names into that order. The others come behind them, as they were among
/// themselves.
pub(super) fn reorder<T>(list: &mut [T], order: &[String], id: impl Fn(&T) -> &str) -> ReduceOutcome {
    let ranks = ranks(order);
    let rank = |item: &T| ranks.get(id(item)).copied().unwrap_or(usize::MAX);
    if list.is_sorted_by_key(rank) {
        return ReduceOutcome::Unchanged;
    }
    list.sort_by_key(rank);
    ReduceOutcome::Changed
}

/// The place at which each name comes first.
pub(super) fn ranks(order: &[String]) -> HashMap<&str, usize> {
    // The other way round, so that of a name that comes twice the first place is kept.
    order.iter().enumerate().rev().map(|(rank, name)| (name.as_str(), rank)).collect()
}

/// Adds to settings, or puts others in their place.
pub(super) fn configure(values: &mut Object, config: &Object, replace: Option<bool>) -> ReduceOutcome {
    if replace == Some(true) {
        return assign(values, config);
    }
    let mut outcome = ReduceOutcome::Unchanged;
    for (key, value) in config {
        if values.get(key) != Some(value) {
            values.insert(key.clone(), value.clone());
            outcome = ReduceOutcome::Changed;
        }
    }
    outcome
}
