/** The clipboard, which browsers offer to pages on HTTPS or on this machine. */

import { session as words } from '../text/messages/session';
import type { Notices } from './notices.svelte';

export async function copy(text: string, notices: Notices): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notices.say(words.copied);
  } catch {
    notices.add(words.notCopied);
  }
}
