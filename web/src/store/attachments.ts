/** Attachments of a prompt: files, pictures and long texts that a person adds. */

import { bytes } from '../text/format';
import { prompt as words } from '../text/messages/prompt';
import type { MessageAttachment } from '../wire/types';

/** The most characters of embedded data in one message: the host takes messages of up to 4 MiB. */
export const MOST_EMBEDDED = 3.5 * 1024 * 1024;
export const MOST_ATTACHMENTS = 50;
/** Pictures above this size are made smaller. */
const LARGE_PICTURE = 1024 * 1024;
/** The longest side of a picture that was made smaller, in pixels; models see no more. */
const LONGEST_SIDE = 2_000;
/** Pasted texts from this size on become attachments. */
const LONG_PASTE = { characters: 8_000, lines: 100 };

/** The reason why a file was not attached. */
export class NotAttached extends Error {}

/** The attachment for a file. */
export async function attachmentOf(file: File, label = file.name): Promise<MessageAttachment> {
  const small = await smaller(file);
  if (small.size > MOST_EMBEDDED) throw new NotAttached(words.tooLarge(label, bytes(MOST_EMBEDDED * 0.75)));
  return embedded(label, contentTypeOf(small, label), await base64(small));
}

export async function textAttachment(text: string): Promise<MessageAttachment> {
  const data = await base64(new Blob([text]));
  return embedded(words.pastedText(text.split('\n').length), 'text/plain', data);
}

export function isLongPaste(text: string): boolean {
  return text.length > LONG_PASTE.characters || text.split('\n', LONG_PASTE.lines + 1).length > LONG_PASTE.lines;
}

/** The reason why attachments do not fit into a message; empty if they do. */
export function problemOf(attachments: readonly MessageAttachment[]): string {
  if (attachments.length > MOST_ATTACHMENTS) return words.tooMany(MOST_ATTACHMENTS);
  const size = attachments.reduce((sum, one) => sum + (one.type === 'embeddedResource' ? one.data.length : 0), 0);
  const newest = attachments.at(-1)?.label ?? '';
  return size > MOST_EMBEDDED ? words.tooLarge(newest, bytes(MOST_EMBEDDED * 0.75)) : '';
}

/** The address of an attached picture's preview, if the attachment has the picture. */
export function previewOf(attachment: MessageAttachment): string | undefined {
  if (attachment.type !== 'embeddedResource' || !/^image\/(png|jpeg|gif|webp)$/.test(attachment.contentType)) return;
  return `data:${attachment.contentType};base64,${attachment.data}`;
}

function embedded(label: string, contentType: string, data: string): MessageAttachment {
  const displayKind = contentType.startsWith('image/') ? 'image' : 'document';
  return { type: 'embeddedResource', label, contentType, data, displayKind };
}

const TEXT_NAMES =
  /\.(txt|md|log|csv|tsv|json|ya?ml|toml|xml|html?|css|[cm]?[jt]sx?|svelte|vue|py|rs|go|java|kt|c|h|cc|cpp|hpp|cs|rb|php|sh|sql|diff|patch)$/i;

function contentTypeOf(file: Blob, name: string): string {
  if (file.type && !/^video\/mp2t$/.test(file.type)) return file.type;
  return TEXT_NAMES.test(name) ? 'text/plain' : 'application/octet-stream';
}

async function smaller(file: File): Promise<Blob> {
  if (file.size <= LARGE_PICTURE || !/^image\/(png|jpeg|webp|bmp)$/.test(file.type)) return file;
  try {
    const picture = await createImageBitmap(file);
    const factor = Math.min(1, LONGEST_SIDE / Math.max(picture.width, picture.height));
    const canvas = new OffscreenCanvas(Math.ceil(picture.width * factor), Math.ceil(picture.height * factor));
    canvas.getContext('2d')?.drawImage(picture, 0, 0, canvas.width, canvas.height);
    picture.close();
    const drawn = await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.85 });
    return drawn.size < file.size ? drawn : file;
  } catch {
    // A picture that the browser cannot draw is attached as it is.
    return file;
  }
}

function base64(data: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''));
    reader.onerror = () => reject(reader.error ?? new Error('unreadable'));
    reader.readAsDataURL(data);
  });
}
