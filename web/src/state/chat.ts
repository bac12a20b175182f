/** The chat reducer. An action that changes nothing returns the same object. */

import { type ActionOf, SessionStatus } from '../wire/protocol';
import type {
  Action,
  ActiveTurn,
  ChatAction,
  ChatInputRequest,
  ChatState,
  ErrorResponsePart,
  PendingMessage,
  ResponsePart,
  ToolCallState,
  Turn,
  TurnState,
} from '../wire/types';
import { upsert, without } from './lists';
import { unknown } from './root';
import { withActivity, withFlag } from './status';
import * as toolcall from './toolcall';

type InputRequestPart = Extract<ResponsePart, { kind: 'inputRequest' }>;

export function reduceChat(state: ChatState, any: Action): ChatState {
  const action = any as ChatAction;
  switch (action.type) {
    // Turns
    case 'chat/turnStarted':
      return turnStarted(state, action);
    case 'chat/responsePart':
      // An error part ends a turn, and only comes with `chat/error`.
      if (action.part.kind === 'error') return state;
      return inTurn(state, action.turnId, (turn) => ({ ...turn, responseParts: [...turn.responseParts, action.part] }));
    case 'chat/delta':
      return appendTo(state, action.turnId, action.partId, 'markdown', action.content);
    case 'chat/reasoning':
      return appendTo(state, action.turnId, action.partId, 'reasoning', action.content);
    case 'chat/usage':
      return inTurn(state, action.turnId, (turn) => ({ ...turn, usage: action.usage }));
    case 'chat/turnComplete':
      return endTurn(state, action.turnId, action.duration, 'complete');
    case 'chat/turnCancelled':
      return endTurn(state, action.turnId, action.duration, 'cancelled');
    case 'chat/error':
      return endTurn(state, action.turnId, action.duration, 'error', action.part);
    case 'chat/turnResume':
      return turnResume(state, action);
    case 'chat/truncated':
      return truncated(state, action);
    case 'chat/turnsLoaded': {
      const known = new Set(state.turns.map((turn) => turn.id));
      const older = action.turns.filter((turn) => !known.has(turn.id));
      return { ...state, turns: [...older, ...state.turns], turnsNextCursor: action.turnsNextCursor };
    }

    // Tool calls
    case 'chat/toolCallStart':
      return inTurn(state, action.turnId, (turn) => ({
        ...turn,
        responseParts: [...turn.responseParts, { kind: 'toolCall', toolCall: toolcall.start(action) }],
      }));
    case 'chat/toolCallDelta':
      return inToolCall(state, action, (call) => toolcall.delta(call, action));
    case 'chat/toolCallReady':
      return refreshed(
        inToolCall(state, action, (call) => toolcall.ready(call, action)),
        state,
      );
    case 'chat/toolCallConfirmed':
      return refreshed(
        inToolCall(state, action, (call) => toolcall.confirmed(call, action)),
        state,
      );
    case 'chat/toolCallComplete':
      return refreshed(
        inToolCall(state, action, (call) => toolcall.complete(call, action)),
        state,
      );
    case 'chat/toolCallResultConfirmed':
      return refreshed(
        inToolCall(state, action, (call) => toolcall.resultConfirmed(call, action)),
        state,
      );
    case 'chat/toolCallContentChanged':
      return inToolCall(state, action, (call) => toolcall.contentChanged(call, action));
    case 'chat/toolCallAuthRequired':
      return refreshed(
        inToolCall(state, action, (call) => toolcall.authRequired(call, action)),
        state,
      );
    case 'chat/toolCallAuthResolved':
      return refreshed(
        inToolCall(state, action, (call) => toolcall.authResolved(call, action)),
        state,
      );

    // Questions
    case 'chat/inputRequested':
      return inputRequested(state, action.request);
    case 'chat/inputAnswerChanged':
      return inOpenRequest(state, action.requestId, (part) => {
        const { [action.questionId]: _before, ...others } = part.request.answers ?? {};
        const answers = action.answer ? { ...others, [action.questionId]: action.answer } : others;
        return { ...part, request: { ...part.request, answers: nonEmpty(answers) } };
      });
    case 'chat/inputCompleted':
      return refreshed(
        inOpenRequest(state, action.requestId, (part) => ({
          ...part,
          request: { ...part.request, answers: nonEmpty({ ...part.request.answers, ...action.answers }) },
          response: action.response,
        })),
        state,
      );

    // Queued messages
    case 'chat/pendingMessageSet': {
      const message: PendingMessage = { id: action.id, message: action.message };
      return action.kind === 'steering'
        ? { ...state, steeringMessage: message }
        : { ...state, queuedMessages: upsert(state.queuedMessages, message, (m) => m.id === action.id) };
    }
    case 'chat/pendingMessageRemoved':
      return pendingRemoved(state, action);
    case 'chat/queuedMessagesReordered':
      return queueReordered(state, action);
    case 'chat/draftChanged':
      return { ...state, draft: action.draft };

    // The chat itself
    case 'chat/isReadChanged':
      return { ...state, status: withFlag(state.status, SessionStatus.IsRead, action.isRead) };
    case 'chat/isArchivedChanged':
      return { ...state, status: withFlag(state.status, SessionStatus.IsArchived, action.isArchived) };
    case 'chat/activityChanged':
      return { ...state, activity: action.activity };
    case 'chat/backgroundWorkSet':
      return { ...state, backgroundWork: upsert(state.backgroundWork, action.work, (w) => w.id === action.work.id) };
    case 'chat/backgroundWorkRemoved': {
      const backgroundWork = without(state.backgroundWork, (w) => w.id === action.id);
      return backgroundWork ? { ...state, backgroundWork } : state;
    }
    case 'chat/movableChanged':
      return { ...state, movable: action.movable };
    case 'chat/changesetsChanged':
      return { ...state, changesets: action.changesets };
    case 'chat/canvasesChanged':
      return { ...state, canvases: action.canvases };
    case 'chat/workingDirectorySet': {
      const directories = state.workingDirectories ?? [];
      if (directories.includes(action.directory)) return state;
      return { ...state, workingDirectories: [...directories, action.directory] };
    }
    case 'chat/workingDirectoryRemoved': {
      const workingDirectories = without(state.workingDirectories, (d) => d === action.directory);
      return workingDirectories ? { ...state, workingDirectories } : state;
    }

    default:
      return unknown(action, state);
  }
}

// ---- Turns --------------------------------------------------------------------------------------------------------

function turnStarted(state: ChatState, action: ActionOf<'chat/turnStarted'>): ChatState {
  const { queuedMessageId } = action;
  // A repeated start, as after a reconnect, does not start the turn again.
  if (state.activeTurn?.id === action.turnId || state.turns.some((turn) => turn.id === action.turnId)) return state;
  const started: ChatState = {
    ...state,
    activeTurn: { id: action.turnId, startedAt: action.startedAt, message: action.message, responseParts: [] },
    modifiedAt: action.startedAt,
  };
  if (queuedMessageId != null) {
    if (state.steeringMessage?.id === queuedMessageId) started.steeringMessage = undefined;
    started.queuedMessages = nonEmptyList(state.queuedMessages?.filter((m) => m.id !== queuedMessageId));
  }
  started.status = withFlag(statusOf(started), SessionStatus.IsRead, false);
  return started;
}

function endTurn(
  state: ChatState,
  turnId: string,
  asked: number,
  outcome: TurnState,
  error?: ErrorResponsePart,
): ChatState {
  const { activeTurn, ...rest } = state;
  if (!activeTurn || activeTurn.id !== turnId) return state;
  const duration = Math.max(0, asked || 0);
  // An invalid start time must not keep the turn from ending.
  const modifiedAt = addMilliseconds(activeTurn.startedAt, duration) ?? activeTurn.startedAt;

  const parts = activeTurn.responseParts.map((part): ResponsePart => {
    if (part.kind !== 'toolCall') return part;
    const toolCall = toolcall.endWithTurn(part.toolCall);
    return toolCall === part.toolCall ? part : { ...part, toolCall };
  });
  const turn: Turn = {
    id: activeTurn.id,
    startedAt: activeTurn.startedAt,
    duration,
    message: activeTurn.message,
    responseParts: error ? [...parts, { ...error, kind: 'error' }] : parts,
    usage: activeTurn.usage,
    state: outcome,
  };
  const ended: ChatState = { ...rest, turns: [...state.turns, turn], modifiedAt };
  ended.status = outcome === 'error' ? withActivity(state.status, SessionStatus.Error) : statusOf(ended);
  return ended;
}

/** Resumes the latest turn, if its failure allows it. */
function turnResume(state: ChatState, action: ActionOf<'chat/turnResume'>): ChatState {
  const turn = state.turns.at(-1);
  const last = turn?.responseParts.at(-1);
  if (state.activeTurn || !turn || turn.id !== action.turnId || turn.state !== 'error') return state;
  if (last?.kind !== 'error' || !last.resumable) return state;
  const resumed: ChatState = {
    ...state,
    turns: state.turns.slice(0, -1),
    activeTurn: {
      id: turn.id,
      startedAt: turn.startedAt ?? state.modifiedAt,
      message: turn.message,
      responseParts: turn.responseParts,
      usage: turn.usage,
    },
  };
  resumed.status = withFlag(statusOf(resumed), SessionStatus.IsRead, false);
  return resumed;
}

function truncated(state: ChatState, action: ActionOf<'chat/truncated'>): ChatState {
  const cut: ChatState = { ...state, activeTurn: undefined };
  if (action.turnId == null) {
    cut.turns = [];
    cut.turnsNextCursor = undefined;
  } else {
    const last = state.turns.findIndex((turn) => turn.id === action.turnId);
    if (last < 0) return state;
    cut.turns = state.turns.slice(0, last + 1);
  }
  cut.status = statusOf(cut);
  return cut;
}

// ---- Inside the running turn --------------------------------------------------------------------------------------

function inTurn(state: ChatState, turnId: string, change: (turn: ActiveTurn) => ActiveTurn): ChatState {
  const turn = state.activeTurn;
  if (!turn || turn.id !== turnId) return state;
  const changed = change(turn);
  return changed === turn ? state : { ...state, activeTurn: changed };
}

function inPart(turn: ActiveTurn, at: number, part: ResponsePart): ActiveTurn {
  return turn.responseParts[at] === part ? turn : { ...turn, responseParts: turn.responseParts.with(at, part) };
}

function appendTo(
  state: ChatState,
  turnId: string,
  partId: string,
  kind: 'markdown' | 'reasoning',
  content: string,
): ChatState {
  return inTurn(state, turnId, (turn) => {
    const at = turn.responseParts.findIndex((part) => partIdOf(part) === partId);
    const part = turn.responseParts[at];
    return part?.kind === kind ? inPart(turn, at, { ...part, content: part.content + content }) : turn;
  });
}

function partIdOf(part: ResponsePart): string | undefined {
  switch (part.kind) {
    case 'markdown':
    case 'reasoning':
      return part.id;
    case 'toolCall':
      return part.toolCall.toolCallId;
    default:
      return undefined;
  }
}

function inToolCall(
  state: ChatState,
  target: { turnId: string; toolCallId: string },
  change: (call: ToolCallState) => ToolCallState,
): ChatState {
  return inTurn(state, target.turnId, (turn) => {
    const at = turn.responseParts.findIndex(
      (part) => part.kind === 'toolCall' && part.toolCall.toolCallId === target.toolCallId,
    );
    const part = turn.responseParts[at];
    if (part?.kind !== 'toolCall') return turn;
    const toolCall = change(part.toolCall);
    return toolCall === part.toolCall ? turn : inPart(turn, at, { ...part, toolCall });
  });
}

function inOpenRequest(
  state: ChatState,
  requestId: string,
  change: (part: InputRequestPart) => InputRequestPart,
): ChatState {
  const turn = state.activeTurn;
  if (!turn) return state;
  return inTurn(state, turn.id, () => {
    const at = turn.responseParts.findIndex((part) => isOpenRequest(part) && part.request.id === requestId);
    const part = turn.responseParts[at];
    return part?.kind === 'inputRequest' ? inPart(turn, at, change(part)) : turn;
  });
}

/** A repeated question replaces itself, and keeps the answers typed so far. */
function inputRequested(state: ChatState, request: ChatInputRequest): ChatState {
  if (!state.activeTurn) return state;
  let asked = inOpenRequest(state, request.id, (part) => ({
    ...part,
    request: { ...request, answers: request.answers ?? part.request.answers },
  }));
  if (asked === state) {
    asked = inTurn(state, state.activeTurn.id, (turn) => ({
      ...turn,
      responseParts: [...turn.responseParts, { kind: 'inputRequest', request }],
    }));
  }
  return { ...asked, status: withFlag(statusOf(asked), SessionStatus.IsRead, false) };
}

// ---- Queued messages ----------------------------------------------------------------------------------------------

function pendingRemoved(state: ChatState, action: ActionOf<'chat/pendingMessageRemoved'>): ChatState {
  if (action.kind === 'steering') {
    return state.steeringMessage?.id === action.id ? { ...state, steeringMessage: undefined } : state;
  }
  const rest = state.queuedMessages?.filter((message) => message.id !== action.id);
  return rest && rest.length < (state.queuedMessages?.length ?? 0)
    ? { ...state, queuedMessages: nonEmptyList(rest) }
    : state;
}

/** Messages that the new order does not name stay after it in their order. */
function queueReordered(state: ChatState, action: ActionOf<'chat/queuedMessagesReordered'>): ChatState {
  if (!state.queuedMessages) return state;
  const waiting = new Map(state.queuedMessages.map((message) => [message.id, message]));
  const named: PendingMessage[] = [];
  for (const id of action.order) {
    const message = waiting.get(id);
    if (message) named.push(message);
    waiting.delete(id);
  }
  return { ...state, queuedMessages: [...named, ...waiting.values()] };
}

// ---- Status -------------------------------------------------------------------------------------------------------

function isOpenRequest(part: ResponsePart): part is InputRequestPart {
  return part.kind === 'inputRequest' && part.response == null;
}

function statusOf(state: ChatState): number {
  const parts = state.activeTurn?.responseParts ?? [];
  const waits = parts.some((p) => isOpenRequest(p) || (p.kind === 'toolCall' && toolcall.isBlocking(p.toolCall)));
  if (waits) return withActivity(state.status, SessionStatus.InputNeeded);
  return withActivity(state.status, state.activeTurn ? SessionStatus.InProgress : SessionStatus.Idle);
}

/** The state with an updated status, if anything changed at all. */
function refreshed(state: ChatState, before: ChatState): ChatState {
  return state === before ? state : { ...state, status: statusOf(state) };
}

// ---- Helpers ------------------------------------------------------------------------------------------------------

const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

function addMilliseconds(timestamp: string, duration: number): string | undefined {
  if (!RFC_3339.test(timestamp)) return undefined;
  const end = new Date(Date.parse(timestamp) + duration);
  return Number.isNaN(end.getTime()) ? undefined : end.toISOString();
}

function nonEmpty<T>(record: Record<string, T>): Record<string, T> | undefined {
  return Object.keys(record).length > 0 ? record : undefined;
}

function nonEmptyList<T>(list: T[] | undefined): T[] | undefined {
  return list && list.length > 0 ? list : undefined;
}
