/** Runs of reads and searches in a turn, which are shown as one line. */

import type { ResponsePart, ToolCallState } from '../wire/types';
import { toolKindOf } from './meta';

/** A part, or several calls in a row. `at` is the index of the (first) part. */
export type Item =
  { kind: 'part'; at: number; part: ResponsePart } | { kind: 'run'; at: number; calls: ToolCallState[] };

/** Fewer calls are as easy to read as the line that would replace them. */
export const SHORTEST_RUN = 3;

/** The parts in their order, with runs in place of their calls. */
export function foldRuns(parts: readonly ResponsePart[]): Item[] {
  const items: Item[] = [];
  for (let at = 0; at < parts.length;) {
    const calls = runFrom(parts, at);
    if (calls.length >= SHORTEST_RUN) items.push({ kind: 'run', at, calls });
    else
      for (let n = 0; n < Math.max(1, calls.length); n++)
        items.push({ kind: 'part', at: at + n, part: parts[at + n]! });
    at += Math.max(1, calls.length);
  }
  return items;
}

function runFrom(parts: readonly ResponsePart[], from: number): ToolCallState[] {
  const calls: ToolCallState[] = [];
  for (let at = from; at < parts.length; at++) {
    const part = parts[at]!;
    if (part.kind !== 'toolCall' || !isFoldable(part.toolCall)) break;
    calls.push(part.toolCall);
  }
  return calls;
}

/** A call that a person has to see by itself is not folded: one that asks, failed or was denied. */
function isFoldable(call: ToolCallState): boolean {
  const kind = toolKindOf(call._meta);
  if (kind !== 'read' && kind !== 'search') return false;
  return call.status === 'streaming' || call.status === 'running' || (call.status === 'completed' && call.success);
}
