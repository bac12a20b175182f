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
      const waits = [...(state.queuedMessages ?? []), ...(state.steeringMessage ? [state.steeringMessage] : [])];
      const waiting = waits.find((m) => m.id === action.id);
      // One that waits with another text is yet to be edited.
      if (waiting) return waiting.message.text === action.message.text;
      // It may have become a turn meanwhile, under an id that the host chose.
      const known = new Set([...(before?.turns ?? []), before?.activeTurn].map((turn) => turn?.id));
      return [...state.turns, state.activeTurn].some(
        (turn) => turn && !known.has(turn.id) && turn.message.text === action.message.text,
      );
    }
    case 'chat/pendingMessageRemoved':
      return !state.queuedMessages?.some((m) => m.id === action.id) && state.steeringMessage?.id !== action.id;
    case 'chat/queuedMessagesReordered': {
      const waiting = (state.queuedMessages ?? []).map((m) => m.id);
      // An order of messages that have left the queue is out of date.
      if (action.order.some((id) => !waiting.includes(id))) return true;
      return action.order.every((id, at) => waiting[at] === id);
    }
    case 'chat/draftChanged':
      // The prompt box compares its text with the host's draft itself: another device may have changed that meanwhile.
      return true;
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
