/** Completing `@path` in a prompt. */

import type { CompletionItem, MessageAttachment } from '../wire/types';

/** A file that a prompt refers to by its text. */
export interface Reference {
  text: string;
  attachment: MessageAttachment;
}

/** Returns whether a file reference ends at the caret. */
export function typesReference(text: string, caret: number): boolean {
  return /(^|\s)@\S*$/.test(text.slice(0, caret));
}

/** The prompt with the completed reference, and the position of the caret. A folder is completed further. */
export function completeReference(
  text: string,
  caret: number,
  { insertText, rangeStart, rangeEnd }: CompletionItem,
): { text: string; caret: number; isFolder: boolean } {
  const start = rangeStart ?? caret;
  const isFolder = insertText.endsWith('/');
  const rest = text.slice(Math.max(rangeEnd ?? caret, start));
  const begin = text.slice(0, start) + insertText + (isFolder || /^\s/.test(rest) ? '' : ' ');
  const behind = isFolder || !/^\s/.test(rest) ? begin.length : begin.length + 1;
  return { text: begin + rest, caret: behind, isFolder };
}

/** The attachments of the references that the text still has. */
export function referenced(text: string, references: readonly Reference[]): MessageAttachment[] {
  const words = new Set(text.split(/\s+/));
  const found = references.filter((reference) => words.has(reference.text));
  return found.filter((one, at) => found.findIndex((other) => other.text === one.text) === at).map((r) => r.attachment);
}
