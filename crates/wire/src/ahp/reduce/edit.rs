//! Small edits that every reducer is made of, each with an exact outcome.

use std::collections::HashMap;

use super::ReduceOutcome;
use crate::ahp::Object;

/// Assigns a copy of `value`, unless it is equal.
pub(super) fn assign<T: Clone + PartialEq>(place: &mut T, value: &T) -> ReduceOutcome {
    let changed = place != value;
    if changed {
        place.clone_from(value);
    }
    ReduceOutcome::of(changed)
}

/// [`assign`] for an optional field of an action.
pub(super) fn assign_if_some<T: Clone + PartialEq>(place: &mut T, value: &Option<T>) -> ReduceOutcome {
    value.as_ref().map_or(ReduceOutcome::Unchanged, |value| assign(place, value))
}

/// [`assign_if_some`] for an optional place.
pub(super) fn set_if_some<T: Clone + PartialEq>(place: &mut Option<T>, value: &Option<T>) -> ReduceOutcome {
    value.as_ref().map_or(ReduceOutcome::Unchanged, |value| set(place, value))
}

/// [`assign`] for an optional place.
pub(super) fn set<T: Clone + PartialEq>(place: &mut Option<T>, value: &T) -> ReduceOutcome {
    match place {
        Some(place) => assign(place, value),
        None => {
            *place = Some(value.clone());
            ReduceOutcome::Changed
        }
    }
}

/// Clears an optional place.
pub(super) fn clear<T>(place: &mut Option<T>) -> ReduceOutcome {
    ReduceOutcome::of(place.take().is_some())
}

/// Appends to a text.
pub(super) fn append(text: &mut String, more: &str) -> ReduceOutcome {
    text.push_str(more);
    ReduceOutcome::of(!more.is_empty())
}

/// Replaces the item for which `is_it` holds, or appends one.
pub(super) fn upsert<T: Clone + PartialEq>(list: &mut Vec<T>, item: &T, is_it: impl Fn(&T) -> bool) -> ReduceOutcome {
    match list.iter_mut().find(|item| is_it(item)) {
        Some(place) => assign(place, item),
        None => {
            list.push(item.clone());
            ReduceOutcome::Changed
        }
    }
}

/// [`upsert`] into an optional list.
pub(super) fn upsert_some<T: Clone + PartialEq>(
    list: &mut Option<Vec<T>>,
    item: &T,
    is_it: impl Fn(&T) -> bool,
) -> ReduceOutcome {
    upsert(list.get_or_insert_default(), item, is_it)
}

/// Removes the item for which `is_it` holds.
pub(super) fn remove<T>(list: &mut Vec<T>, is_it: impl Fn(&T) -> bool) -> ReduceOutcome {
    let at = list.iter().position(is_it);
    if let Some(at) = at {
        list.remove(at);
    }
    ReduceOutcome::of(at.is_some())
}

/// [`remove`] from an optional list. It stays, even if it becomes empty.
pub(super) fn remove_some<T>(list: &mut Option<Vec<T>>, is_it: impl Fn(&T) -> bool) -> ReduceOutcome {
    list.as_mut().map_or(ReduceOutcome::Unchanged, |list| remove(list, is_it))
}

/// Sorts the items that `order` names. The others follow in their present order.
pub(super) fn reorder<T>(list: &mut [T], order: &[String], id: impl Fn(&T) -> &str) -> ReduceOutcome {
    let ranks = ranks(order);
    let rank = |item: &T| ranks.get(id(item)).copied().unwrap_or(usize::MAX);
    if list.is_sorted_by_key(rank) {
        return ReduceOutcome::Unchanged;
    }
    list.sort_by_key(rank);
    ReduceOutcome::Changed
}

/// The first position of each name.
pub(super) fn ranks(order: &[String]) -> HashMap<&str, usize> {
    // Reversed, so that the first position of a repeated name wins.
    order.iter().enumerate().rev().map(|(rank, name)| (name.as_str(), rank)).collect()
}

/// Merges or replaces settings.
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
