/** Comments on lines of changed files, and the prompt that tells them to an agent. */

import { changes } from './messages/changes';
import { fileName, pathOf, visible } from './format';
import type { Uri } from '../wire/protocol';
import type { MessageAttachment } from '../wire/types';

/** The text that a comment is about: before the change or after it. */
export type DiffSide = 'before' | 'after';

export interface LineComment {
  id: string;
  uri: Uri;
  side: DiffSide;
  /** Line numbers from 1; both are included. */
  first: number;
  last: number;
  /** The lines that it is about. */
  quote: string[];
  text: string;
}

export const MOST_COMMENTS = 200;
export const MOST_COMMENT_CHARACTERS = 10_000;
/** The number of quoted lines in the prompt; more are counted. */
export const MOST_QUOTED_LINES = 40;
/** Longer lines are cut in the prompt. */
const MOST_LINE_CHARACTERS = 400;

/** The prompt with all comments, by file and line. */
export function commentPrompt(comments: readonly LineComment[]): string {
  const sorted = [...comments].sort((a, b) => compareText(a.uri, b.uri) || a.first - b.first || a.last - b.last);
  return [changes.promptIntro(sorted.length), ...sorted.map(section)].join('\n\n');
}

/** The commented lines as selections of their files. Lines that are gone cannot be selected. */
export function placesOfComments(comments: readonly LineComment[]): MessageAttachment[] {
  return comments.flatMap(({ uri, side, first, last, quote }): MessageAttachment[] => {
    if (side !== 'after' || !uri.startsWith('file:')) return [];
    const start = { line: first - 1, character: 0 };
    const end = { line: last - 1, character: quote.at(-1)?.length ?? 0 };
    const label = `${fileName(uri)}:${first}${last === first ? '' : `-${last}`}`;
    return [{ type: 'resource', uri, label, displayKind: 'selection', selection: { range: { start, end } } }];
  });
}

function section(comment: LineComment, at: number): string {
  const place = changes.promptPlace(code(pathOf(comment.uri)), comment.first, comment.last, comment.side);
  const quoted = comment.quote.slice(0, MOST_QUOTED_LINES).map((line) => visible(cut(line)));
  const left = comment.quote.length - quoted.length;
  const fence = fenceFor(quoted);
  const rest = left > 0 ? [changes.promptMoreLines(left)] : [];
  return [`${at + 1}. ${place}`, '', fence, ...quoted, fence, ...rest, '', comment.text.trim()].join('\n');
}

function cut(line: string): string {
  return line.length > MOST_LINE_CHARACTERS ? `${line.slice(0, MOST_LINE_CHARACTERS)}…` : line;
}

/** A fence that no line of the quote can end. */
function fenceFor(lines: readonly string[]): string {
  const longest = Math.max(0, ...lines.flatMap((line) => (line.match(/`+/g) ?? []).map((run) => run.length)));
  return '`'.repeat(Math.max(3, longest + 1));
}

/** A path as code, whatever is in it: names of files may have backticks and line breaks. */
function code(path: string): string {
  const line = visible(path).replace(/[\n\r\t]/g, ' ');
  const runs = (line.match(/`+/g) ?? []).map((run) => run.length);
  const ticks = '`'.repeat(Math.max(0, ...runs) + 1);
  return runs.length > 0 ? `${ticks} ${line} ${ticks}` : `${ticks}${line}${ticks}`;
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
