/** Referenced contents: fetched on demand, and kept by the components that show them. */

import { diff, type Hunk, hunks, MOST_CHARACTERS } from '../text/diff';
import { fileName } from '../text/format';
import type { Uri } from '../wire/protocol';
import type { ContentEncoding, ContentRef, FileEdit, ResourceReadResult } from '../wire/types';

export type Read = (uri: Uri, encoding?: ContentEncoding) => Promise<ResourceReadResult>;

/** The maximum size of contents that are shown; larger ones can still be saved. */
export const MOST_SHOWN_BYTES = 8 * 1024 * 1024;

/** The shown form of a file's change. */
export type Comparison =
  | { kind: 'lines'; hunks: Hunk[]; rest: number }
  /** The new text, if the two are too long for a diff. */
  | { kind: 'text'; text: string }
  /** The reason why nothing is shown. */
  | { kind: 'nothing'; why: string };

export async function compare(edit: FileEdit, read: Read): Promise<Comparison> {
  const before = edit.before?.content;
  const after = edit.after?.content;
  const size = (content: ContentRef | undefined): number => content?.sizeHint ?? 0;
  if (size(after) > MOST_SHOWN_BYTES) return { kind: 'nothing', why: 'The file is too large to show.' };
  const isLong = size(before) > MOST_CHARACTERS || size(after) > MOST_CHARACTERS;
  // Without a diff, only one of them is shown.
  const [old, now] = await Promise.all([before && !isLong ? read(before.uri) : undefined, after && read(after.uri)]);
  if (old?.encoding === 'base64' || now?.encoding === 'base64') return { kind: 'nothing', why: 'This is not text.' };
  const lines = isLong ? undefined : diff(old?.data ?? '', now?.data ?? '');
  if (lines) {
    const found = hunks(lines);
    return found.hunks.length > 0 ? { kind: 'lines', ...found } : { kind: 'nothing', why: 'No line has changed.' };
  }
  return now
    ? { kind: 'text', text: now.data }
    : { kind: 'nothing', why: 'The file was deleted. It was too long to show.' };
}

/** Offers contents to the user as a file. */
export function save(name: string, { data, encoding }: ResourceReadResult): void {
  const content = encoding === 'base64' ? Uint8Array.from(atob(data), (byte) => byte.charCodeAt(0)) : data;
  // Without its own type, so that the browser saves it and never shows it as a page of ours.
  const url = URL.createObjectURL(new Blob([content], { type: 'application/octet-stream' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** The file name for contents. Stored bodies are named by their hash, without an extension. */
export function nameOf(content: ContentRef): string {
  const name = fileName(content.uri);
  if (name.includes('.')) return name;
  const kind = /\/([a-z0-9]+)$/.exec(content.contentType ?? '')?.[1];
  if (!kind) return name;
  return `${name.slice(0, 12)}.${{ plain: 'txt', markdown: 'md', jpeg: 'jpg' }[kind] ?? kind}`;
}
