/** Turns as text: their probable height, and the text in which a person searches. */

import type { ActiveTurn, ResponsePart, Turn } from '../wire/types';
import { plain } from './format';
import { rowText, subjectOf } from './tools';
import { toolKindOf } from '../state/meta';

/** The height of lines and parts in pixels, and the characters in a line, as they are in a window of usual width. */
const LINE = 23;
const PART = 34;
const CHARACTERS = 90;
const FRAME = 120;

const estimates = new WeakMap<object, number>();

/** The probable height of a turn that was not drawn yet. */
export function estimateOf(turn: Turn | ActiveTurn): number {
  const known = estimates.get(turn);
  if (known !== undefined) return known;
  let height = FRAME + linesOf(turn.message.text) * LINE;
  for (const part of turn.responseParts) {
    height += part.kind === 'markdown' ? linesOf(part.content) * LINE + 14 : PART;
  }
  estimates.set(turn, height);
  return height;
}

function linesOf(text: string): number {
  // Counting the lines of a long text costs more than the estimate is worth.
  if (text.length > 20_000) return Math.ceil(text.length / (CHARACTERS / 2));
  let lines = 0;
  for (const line of text.split('\n')) lines += Math.max(1, Math.ceil(line.length / CHARACTERS));
  return lines;
}

/** The text of a turn that is visible without opening anything, in lower case. */
export function searchText(turn: Turn | ActiveTurn): string {
  const known = searchTexts.get(turn);
  if (known !== undefined) return known;
  const text = [turn.message.text, ...turn.responseParts.map(partText)].join('\n').toLowerCase();
  searchTexts.set(turn, text);
  return text;
}

const searchTexts = new WeakMap<object, string>();

function partText(part: ResponsePart): string {
  switch (part.kind) {
    case 'markdown':
      return withoutSyntax(part.content);
    case 'toolCall': {
      const call = part.toolCall;
      const { command } = subjectOf(call, toolKindOf(call._meta));
      return `${call.displayName} ${command?.split('\n', 1)[0] ?? rowText(call)}`;
    }
    case 'error':
      return part.error.message;
    case 'systemNotification':
      return plain(part.content);
    default:
      return '';
  }
}

/** Markdown roughly as it is shown: without emphasis, and links without their addresses. */
function withoutSyntax(markdown: string): string {
  return markdown.replace(/\]\([^)\n]{0,2000}\)/g, '').replace(/[*`[\]]+/g, '');
}

/** The number of occurrences of a text in lower case. */
export function occurrences(text: string, query: string, most: number): number {
  let count = 0;
  for (let at = text.indexOf(query); at >= 0 && count < most; at = text.indexOf(query, at + query.length)) count++;
  return count;
}
