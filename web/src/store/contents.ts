/** Referenced contents: fetched on demand, and kept by the components that show them. */

import { diff, type Line, MOST_CHARACTERS } from '../text/diff';
import { fileName } from '../text/format';
import { changes } from '../text/messages/changes';
import type { Uri } from '../wire/protocol';
import type { ContentEncoding, ContentRef, FileEdit, ResourceReadResult } from '../wire/types';

export type Read = (uri: Uri, encoding?: ContentEncoding) => Promise<ResourceReadResult>;

/** The maximum size of contents that are shown; larger ones can still be saved. */
export const MOST_SHOWN_BYTES = 8 * 1024 * 1024;

/** The shown form of a file's change. */
export type Comparison =
  | { kind: 'lines'; lines: Line[]; before: string; after: string }
  /** The new text, if the two are too long for a diff. */
  | { kind: 'text'; text: string }
  /** Pictures, as `data:` addresses. */
  | { kind: 'pictures'; before: string | undefined; after: string | undefined }
  /** The reason why nothing is shown. */
  | { kind: 'nothing'; why: string };

export async function compare({ before, after }: FileEdit, read: Read): Promise<Comparison> {
  const size = (content: ContentRef | undefined): number => content?.sizeHint ?? 0;
  const nothing = (why: string): Comparison => ({ kind: 'nothing', why });
  if (size(after?.content) > MOST_SHOWN_BYTES) return nothing(changes.tooLarge);
  const isLong = size(before?.content) > MOST_CHARACTERS || size(after?.content) > MOST_CHARACTERS;
  // Without a diff, only one of them is shown.
  const [old, now] = await Promise.all([
    before && !isLong ? read(before.content.uri) : undefined,
    after && read(after.content.uri),
  ]);
  if (old?.encoding === 'base64' || now?.encoding === 'base64') {
    const pictures = { before: picture(before?.uri, old), after: picture(after?.uri, now) };
    return pictures.before || pictures.after ? { kind: 'pictures', ...pictures } : nothing(changes.notText);
  }
  const texts = { before: old?.data ?? '', after: now?.data ?? '' };
  const lines = isLong ? undefined : diff(texts.before, texts.after);
  if (lines) {
    const isChanged = lines.some((line) => line.kind !== 'same');
    return isChanged ? { kind: 'lines', lines, ...texts } : nothing(changes.noChange);
  }
  return now ? { kind: 'text', text: now.data } : nothing(changes.deletedTooLong);
}

const PICTURES: Record<string, string> = {
  gif: 'image/gif',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
};

function picture(name: Uri | undefined, content: ResourceReadResult | undefined): string | undefined {
  const ending = name?.slice(name.lastIndexOf('.') + 1).toLowerCase() ?? '';
  const type = Object.hasOwn(PICTURES, ending) ? PICTURES[ending] : undefined;
  return type && content?.encoding === 'base64' ? `data:${type};base64,${content.data}` : undefined;
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
