/** The answer of a turn as text. */

import type { Turn } from '../wire/types';

/** The Markdown of an answer, without thoughts and tool calls. */
export function answerOf({ responseParts }: Turn): string {
  const texts = responseParts.flatMap((part) => (part.kind === 'markdown' ? [part.content.trim()] : []));
  return texts.filter(Boolean).join('\n\n');
}
