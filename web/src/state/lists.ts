/** Changes of lists that return the old list if nothing changes. */

export function upsert<T>(list: readonly T[] | undefined, item: T, same: (other: T) => boolean): T[] {
  const at = list?.findIndex(same) ?? -1;
  if (!list || at < 0) return [...(list ?? []), item];
  return list.with(at, item);
}

/** The list without the first match, or undefined if there is none. */
export function without<T>(list: readonly T[] | undefined, match: (item: T) => boolean): T[] | undefined {
  const at = list?.findIndex(match) ?? -1;
  return list && at >= 0 ? list.toSpliced(at, 1) : undefined;
}
