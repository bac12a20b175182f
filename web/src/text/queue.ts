/** The order of queued prompts. */

/** The ids with one of them at another position. */
export function moved(ids: readonly string[], id: string, to: number): string[] {
  const rest = ids.filter((other) => other !== id);
  if (rest.length === ids.length) return [...ids];
  return rest.toSpliced(Math.min(Math.max(to, 0), rest.length), 0, id);
}
