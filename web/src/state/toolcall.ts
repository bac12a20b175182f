/** The state transitions of one tool call. Actions that do not match its status leave it unchanged. */

import type { ActionOf, ToolCallIn } from '../wire/protocol';
import type {
  ChatToolCallComplete,
  ChatToolCallConfirmed,
  ChatToolCallDelta,
  ChatToolCallReady,
  ChatToolCallStart,
  ToolCallContributor,
  ToolCallState,
  ToolInput,
} from '../wire/types';

export function start(action: ChatToolCallStart): ToolCallIn<'streaming'> {
  return {
    status: 'streaming',
    toolCallId: action.toolCallId,
    toolName: action.toolName,
    displayName: action.displayName,
    intention: action.intention,
    contributor: action.contributor,
    _meta: action._meta,
  };
}

export function delta(call: ToolCallState, action: ChatToolCallDelta): ToolCallState {
  if (call.status !== 'streaming') return call;
  return {
    ...call,
    partialInput: action.content == null ? call.partialInput : (call.partialInput ?? '') + action.content,
    invocationMessage: action.invocationMessage ?? call.invocationMessage,
    _meta: action._meta ?? call._meta,
  };
}

export function ready(call: ToolCallState, action: ChatToolCallReady): ToolCallState {
  if (call.status !== 'streaming' && call.status !== 'running' && call.status !== 'pending-confirmation') return call;
  const common = {
    ...identity(call),
    intention: action.intention ?? call.intention,
    contributor: refineContributor(call.contributor, action.contributor),
    _meta: action._meta ?? call._meta,
    invocationMessage: action.invocationMessage,
    toolInput: action.toolInput ?? inputOf(call),
  };
  if (action.confirmed) return { ...common, status: 'running', confirmed: action.confirmed };
  const before: Partial<ToolCallIn<'pending-confirmation'>> = call.status === 'pending-confirmation' ? call : {};
  return {
    ...common,
    status: 'pending-confirmation',
    confirmationTitle: action.confirmationTitle ?? before.confirmationTitle,
    riskAssessment: action.riskAssessment ?? before.riskAssessment,
    edits: action.edits ?? before.edits,
    editable: action.editable ?? before.editable,
    options: action.options ?? before.options,
  };
}

export function confirmed(call: ToolCallState, action: ChatToolCallConfirmed): ToolCallState {
  if (call.status !== 'pending-confirmation') return call;
  const common = {
    ...identity(call),
    _meta: action._meta ?? call._meta,
    invocationMessage: call.invocationMessage,
    selectedOption: call.options?.find((option) => option.id === action.selectedOptionId),
  };
  if (!action.approved) {
    return {
      ...common,
      status: 'cancelled',
      toolInput: call.toolInput,
      reason: action.reason ?? 'denied',
      reasonMessage: action.reasonMessage,
      userSuggestion: action.userSuggestion,
    };
  }
  const edited = action.editedToolInput != null && typeof call.toolInput === 'string';
  return {
    ...common,
    status: 'running',
    toolInput: edited ? action.editedToolInput : call.toolInput,
    confirmed: action.confirmed ?? 'not-needed',
  };
}

export function complete(call: ToolCallState, action: ChatToolCallComplete): ToolCallState {
  const { result } = action;
  switch (call.status) {
    case 'running':
    case 'pending-confirmation':
      break;
    case 'auth-required':
      // It did not continue after the challenge, so it can only be given up.
      if (result.success) return call;
      break;
    default:
      return call;
  }
  const fromAuth = call.status === 'auth-required';
  const common = {
    ...identity(call),
    _meta: action._meta ?? call._meta,
    invocationMessage: call.invocationMessage,
    toolInput: call.toolInput,
    success: result.success,
    pastTenseMessage: result.pastTenseMessage,
    content: result.content ?? (fromAuth ? call.content : undefined),
    structuredContent: result.structuredContent,
    error: result.error,
    confirmed: call.status === 'pending-confirmation' ? ('not-needed' as const) : call.confirmed,
    selectedOption: call.status === 'pending-confirmation' ? undefined : call.selectedOption,
  };
  return action.requiresResultConfirmation && !fromAuth
    ? { ...common, status: 'pending-result-confirmation' }
    : { ...common, status: 'completed' };
}

export function resultConfirmed(call: ToolCallState, action: ActionOf<'chat/toolCallResultConfirmed'>): ToolCallState {
  if (call.status !== 'pending-result-confirmation') return call;
  const _meta = action._meta ?? call._meta;
  if (action.approved) return { ...call, _meta, status: 'completed' };
  return { ...cancel(call, 'result-denied'), _meta, selectedOption: call.selectedOption };
}

export function contentChanged(call: ToolCallState, action: ActionOf<'chat/toolCallContentChanged'>): ToolCallState {
  if (call.status !== 'running') return call;
  return { ...call, _meta: action._meta ?? call._meta, content: action.content };
}

export function authRequired(call: ToolCallState, action: ActionOf<'chat/toolCallAuthRequired'>): ToolCallState {
  if (call.status !== 'running' || call.contributor?.kind !== 'mcp') return call;
  return { ...call, status: 'auth-required', _meta: action._meta ?? call._meta, auth: action.auth };
}

export function authResolved(call: ToolCallState, action: ActionOf<'chat/toolCallAuthResolved'>): ToolCallState {
  if (call.status !== 'auth-required') return call;
  const { auth: _done, ...rest } = call;
  return { ...rest, status: 'running', _meta: action._meta ?? call._meta };
}

/** The state of a call after the end of its turn: unfinished calls are skipped; others stay, including unknown ones. */
export function endWithTurn(call: ToolCallState): ToolCallState {
  switch (call.status) {
    case 'streaming':
    case 'pending-confirmation':
    case 'running':
    case 'auth-required':
    case 'pending-result-confirmation':
      return cancel(call, 'skipped');
    default:
      return call;
  }
}

/** Returns whether the call waits for a person. */
export function isBlocking(call: ToolCallState): boolean {
  return (
    call.status === 'pending-confirmation' ||
    call.status === 'pending-result-confirmation' ||
    call.status === 'auth-required'
  );
}

function cancel(call: ToolCallState, reason: ToolCallIn<'cancelled'>['reason']): ToolCallIn<'cancelled'> {
  return {
    ...identity(call),
    status: 'cancelled',
    invocationMessage: call.invocationMessage ?? '',
    toolInput: inputOf(call),
    reason,
  };
}

/** The members that a call keeps for its whole life. */
function identity(call: ToolCallState) {
  const { toolCallId, toolName, displayName, intention, contributor, _meta } = call;
  return { toolCallId, toolName, displayName, intention, contributor, _meta };
}

function inputOf(call: ToolCallState): ToolInput | undefined {
  return call.status === 'streaming' ? undefined : call.toolInput;
}

/** The contributor of a tool may become more precise, but never changes to or from a client. */
function refineContributor(
  current: ToolCallContributor | undefined,
  next: ToolCallContributor | undefined,
): ToolCallContributor | undefined {
  if (!next) return current;
  if (current?.kind === 'client') return next.kind === 'client' && next.clientId === current.clientId ? next : current;
  return next.kind === 'client' ? current : next;
}
