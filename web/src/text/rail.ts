/** The marks of the rail: the prompts of a person, evenly chosen if there are many. */

import type { ActiveTurn, Turn } from '../wire/types';

export interface PromptMark {
  turn: string;
  index: number;
  text: string;
}

export const MOST_MARKS = 40;
const MOST_CHARACTERS = 80;

export function marksOf(turns: readonly (Turn | ActiveTurn)[]): PromptMark[] {
  const step = Math.max(1, turns.length / MOST_MARKS);
  const marks: PromptMark[] = [];
  for (let place = 0; place < turns.length; place += step) {
    // The last mark is the last prompt.
    const index = place + step >= turns.length ? turns.length - 1 : Math.floor(place);
    const turn = turns[index]!;
    if (turn.message.origin.kind === 'user') marks.push({ turn: turn.id, index, text: gist(turn.message.text) });
  }
  return marks;
}

function gist(text: string): string {
  const line = text
    .slice(0, 4 * MOST_CHARACTERS)
    .trim()
    .replace(/\s+/g, ' ');
  return line.length > MOST_CHARACTERS ? `${line.slice(0, MOST_CHARACTERS - 1)}…` : line;
}
