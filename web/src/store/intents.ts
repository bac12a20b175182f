/** The user's operations on a chat or its session, as actions. */

import { randomId } from '../protocol/random';
import type {
  ActiveTurn,
  ChatInputAnswer,
  ChatInputResponseKind,
  ChatState,
  ConfirmationOption,
  Message,
  Action,
} from '../wire/types';

function message(text: string): Message {
  return { text, origin: { kind: 'user' } };
}

/** A prompt starts a turn, or is queued while one runs. */
export function prompt(chat: Pick<ChatState, 'activeTurn'>, text: string): Action {
  return chat.activeTurn
    ? { type: 'chat/pendingMessageSet', kind: 'queued', id: randomId(), message: message(text) }
    : {
        type: 'chat/turnStarted',
        turnId: randomId(),
        startedAt: new Date().toISOString(),
        message: message(text),
      };
}

export function unqueue(id: string): Action {
  return { type: 'chat/pendingMessageRemoved', kind: 'queued', id };
}

export function stop(turn: ActiveTurn): Action {
  const duration = Math.max(0, Date.now() - Date.parse(turn.startedAt));
  return { type: 'chat/turnCancelled', turnId: turn.id, duration: Number.isFinite(duration) ? duration : 0 };
}

export function configure(name: string, value: unknown): Action {
  return { type: 'session/configChanged', config: { [name]: value } };
}

export type Decision = { approved: boolean; option?: ConfirmationOption };

export function decide(turnId: string, toolCallId: string, { approved, option }: Decision): Action {
  return {
    type: 'chat/toolCallConfirmed',
    turnId,
    toolCallId,
    approved,
    ...(approved ? { confirmed: 'user-action' } : { reason: 'denied' }),
    ...(option ? { selectedOptionId: option.id } : {}),
  };
}

export function decideResult(turnId: string, toolCallId: string, approved: boolean): Action {
  return { type: 'chat/toolCallResultConfirmed', turnId, toolCallId, approved };
}

export function answer(
  requestId: string,
  response: ChatInputResponseKind,
  answers?: Record<string, ChatInputAnswer>,
): Action {
  return { type: 'chat/inputCompleted', requestId, response, ...(answers ? { answers } : {}) };
}
