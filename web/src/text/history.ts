/** The earlier prompts of a chat, for ArrowUp in an empty prompt. */

import type { ActiveTurn, Turn } from '../wire/types';

/** The prompts of a person, newest first, without repetitions. */
export function sentTexts(turns: readonly (Turn | ActiveTurn)[]): string[] {
  const texts = turns.flatMap(({ message }) => (message.origin.kind === 'user' && message.text ? [message.text] : []));
  return [...new Set(texts.reverse())];
}

/** The position after a step in the history; -1 is the prompt that is being written. */
export function step(at: number, by: 1 | -1, count: number): number {
  return Math.min(Math.max(at + by, -1), count - 1);
}
