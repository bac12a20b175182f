/** Texts for the prompt of a chat that something else than the prompt writes. */

import type { Uri } from '../wire/protocol';
import type { Host } from './host.svelte';

/** Puts a text into the prompt of a chat, at once if it is shown and otherwise when it is opened. */
export function setDraft(host: Host, chat: Uri, text: string): void {
  host.drafts.set(chat, text);
  for (const listener of host.onDraft) listener(chat, text);
}
