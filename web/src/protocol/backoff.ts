/** The pause before the next attempt: longer each time, and different for each page of a restarted host. */

const FIRST_MS = 400;
const MOST_MS = 20_000;

export function waitBefore(attempt: number, random: () => number): number {
  const ceiling = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(attempt, 10));
  return Math.round(ceiling * (0.5 + random() / 2));
}
