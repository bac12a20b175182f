/** The user's operations on a chat or its session, as actions. */

import { randomId } from '../protocol/random';
import type {
  ActiveTurn,
  ChatInputAnswer,
  ChatInputResponseKind,
  ChatState,
  ConfirmationOption,
  Message,
  MessageAttachment,
  PendingMessageKind,
  Action,
} from '../wire/types';

export function message(text: string, attachments: readonly MessageAttachment[] = []): Message {
  return { text, origin: { kind: 'user' }, ...(attachments.length > 0 ? { attachments: [...attachments] } : {}) };
}

/** A prompt starts a turn, or is queued while one runs. */
export function prompt(chat: Pick<ChatState, 'activeTurn'>, given: Message): Action {
  return chat.activeTurn ? queue(given) : start(given);
}

export function start(given: Message): Action {
  return { type: 'chat/turnStarted', turnId: randomId(), startedAt: new Date().toISOString(), message: given };
}

/** A queued message; with the id of one that waits, it replaces that one. */
export function queue(given: Message, id: string = randomId()): Action {
  return { type: 'chat/pendingMessageSet', kind: 'queued', id, message: given };
}

/** A message for the running turn. A chat has one of them at a time: one that still waits is extended. */
export function steer(chat: ChatState | undefined, given: Message): Action {
  const waiting = chat?.steeringMessage;
  const joined = waiting
    ? message(`${waiting.message.text}\n\n${given.text}`, [
        ...(waiting.message.attachments ?? []),
        ...(given.attachments ?? []),
      ])
    : given;
  return { type: 'chat/pendingMessageSet', kind: 'steering', id: waiting?.id ?? randomId(), message: joined };
}

export function unqueue(id: string, kind: PendingMessageKind = 'queued'): Action {
  return { type: 'chat/pendingMessageRemoved', kind, id };
}

export function reorder(order: string[]): Action {
  return { type: 'chat/queuedMessagesReordered', order };
}

export function draft(given: Message | undefined): Action {
  return { type: 'chat/draftChanged', ...(given ? { draft: given } : {}) };
}

export function stop(turn: ActiveTurn): Action {
  const duration = Math.max(0, Date.now() - Date.parse(turn.startedAt));
  return { type: 'chat/turnCancelled', turnId: turn.id, duration: Number.isFinite(duration) ? duration : 0 };
}

export function configure(name: string, value: unknown): Action {
  return { type: 'session/configChanged', config: { [name]: value } };
}

export type Decision = { approved: boolean; option?: ConfirmationOption; reason?: string };

export function decide(turnId: string, toolCallId: string, { approved, option, reason }: Decision): Action {
  return {
    type: 'chat/toolCallConfirmed',
    turnId,
    toolCallId,
    approved,
    ...(approved ? { confirmed: 'user-action' } : { reason: 'denied' }),
    ...(option ? { selectedOptionId: option.id } : {}),
    ...(!approved && reason ? { reasonMessage: reason } : {}),
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
