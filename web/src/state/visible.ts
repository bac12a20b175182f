/**
 * Detects whether the host's state already shows the effect of an action.
 *
 * After a reconnect it is unknown which pending actions arrived. Those with a visible effect are done; the others are
 * dispatched again. Ids that the page chose (turns, queued messages) make that safe.
 */

import type { ChatState, SessionState, Action } from '../wire/types';
import { isArchived, isRead } from './status';

export function isVisibleInChat(state: ChatState, before: ChatState | undefined, action: Action): boolean {
  switch (action.type) {
    case 'chat/turnStarted':
      return state.activeTurn?.id === action.turnId || state.turns.some((turn) => turn.id === action.turnId);
    case 'chat/turnCancelled':
      return state.activeTurn?.id !== action.turnId;
    case 'chat/toolCallConfirmed':
    case 'chat/toolCallResultConfirmed': {
      const status = action.type === 'chat/toolCallConfirmed' ? 'pending-confirmation' : 'pending-result-confirmation';
      const waits = state.activeTurn?.responseParts.some(
        (p) => p.kind === 'toolCall' && p.toolCall.toolCallId === action.toolCallId && p.toolCall.status === status,
      );
      return !waits;
    }
    case 'chat/inputCompleted': {
      const waits = state.activeTurn?.responseParts.some(
        (p) => p.kind === 'inputRequest' && p.request.id === action.requestId && p.response == null,
      );
      return !waits;
    }
    case 'chat/pendingMessageSet': {
      if (state.queuedMessages?.some((m) => m.id === action.id) || state.steeringMessage?.id === action.id) return true;
      // It may have become a turn meanwhile, under an id that the host chose.
      const known = new Set([...(before?.turns ?? []), before?.activeTurn].map((turn) => turn?.id));
      return [...state.turns, state.activeTurn].some(
        (turn) => turn && !known.has(turn.id) && turn.message.text === action.message.text,
      );
    }
    case 'chat/pendingMessageRemoved':
      return !state.queuedMessages?.some((m) => m.id === action.id) && state.steeringMessage?.id !== action.id;
    default:
      return false;
  }
}

export function isVisibleInSession(state: SessionState, action: Action): boolean {
  switch (action.type) {
    case 'session/titleChanged':
      return state.title === action.title;
    case 'session/isReadChanged':
      return isRead(state.status) === action.isRead;
    case 'session/isArchivedChanged':
      return isArchived(state.status) === action.isArchived;
    default:
      return false;
  }
}
