/** The announcements of a chat for screen readers. */

import { activityOf } from '../state/status';
import type { ChatState } from '../wire/types';
import { plain } from './format';
import { conversation as words } from './messages/conversation';

export function spoken(chat: ChatState): string {
  switch (activityOf(chat.status)) {
    case 'input': {
      const parts = chat.activeTurn?.responseParts ?? [];
      const call = parts.findLast((p) => p.kind === 'toolCall' && p.toolCall.status === 'pending-confirmation');
      return call?.kind === 'toolCall'
        ? words.asksPermission(plain(call.toolCall.invocationMessage))
        : words.hasQuestion;
    }
    case 'running':
      return chat.activity || words.agentWorks;
    case 'error':
      return words.turnFailed;
    case 'idle':
      return chat.turns.at(-1)?.state === 'cancelled' ? words.turnStopped : words.answerComplete;
  }
}
