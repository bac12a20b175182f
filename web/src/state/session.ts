/** The session reducer. An action that changes nothing returns the same object. */

import { type ActionOf, SessionStatus } from '../wire/protocol';
import type {
  Action,
  Customization,
  CustomizationEnablement,
  McpServerState,
  SessionAction,
  SessionInputRequest,
  SessionState,
} from '../wire/types';
import { upsert, without } from './lists';
import { mergeConfig, unknown } from './root';
import { withActivity, withFlag } from './status';

export function reduceSession(state: SessionState, any: Action): SessionState {
  const action = any as SessionAction;
  switch (action.type) {
    case 'session/ready':
      return { ...state, lifecycle: 'ready' };
    case 'session/creationFailed':
      return { ...state, lifecycle: 'failed', creationError: action.error };

    case 'session/chatAdded':
      return { ...state, chats: upsert(state.chats, action.summary, (c) => c.resource === action.summary.resource) };
    case 'session/chatRemoved': {
      const chats = without(state.chats, (c) => c.resource === action.chat);
      if (!chats) return state;
      return state.defaultChat === action.chat ? { ...state, chats, defaultChat: undefined } : { ...state, chats };
    }
    case 'session/chatUpdated': {
      const at = state.chats.findIndex((c) => c.resource === action.chat);
      const chat = state.chats[at];
      if (!chat) return state;
      const { resource: _identity, ...changes } = action.changes;
      return { ...state, chats: state.chats.with(at, { ...chat, ...changes }) };
    }
    case 'session/chatsReordered':
      return reorderChats(state, action);
    case 'session/defaultChatChanged':
      return { ...state, defaultChat: action.defaultChat };

    case 'session/titleChanged':
      return { ...state, title: action.title };
    case 'session/isReadChanged':
      return { ...state, status: withFlag(state.status, SessionStatus.IsRead, action.isRead) };
    case 'session/isArchivedChanged':
      return { ...state, status: withFlag(state.status, SessionStatus.IsArchived, action.isArchived) };
    case 'session/activityChanged':
      return { ...state, activity: action.activity };
    case 'session/changesetsChanged':
      return { ...state, changesets: action.changesets };
    case 'session/configChanged':
      return state.config ? { ...state, config: mergeConfig(state.config, action) } : state;
    case 'session/metaChanged':
      return { ...state, _meta: action._meta };
    case 'session/serverToolsChanged':
      return { ...state, serverTools: action.tools };

    case 'session/activeClientSet': {
      const client = action.activeClient;
      return { ...state, activeClients: upsert(state.activeClients, client, (c) => c.clientId === client.clientId) };
    }
    case 'session/activeClientRemoved': {
      const activeClients = without(state.activeClients, (c) => c.clientId === action.clientId);
      return activeClients ? { ...state, activeClients } : state;
    }

    case 'session/workingDirectorySet': {
      const directories = state.workingDirectories ?? [];
      if (directories.includes(action.directory)) return state;
      return { ...state, workingDirectories: [...directories, action.directory] };
    }
    case 'session/workingDirectoryRemoved': {
      const workingDirectories = without(state.workingDirectories, (d) => d === action.directory);
      return workingDirectories ? { ...state, workingDirectories } : state;
    }
    case 'session/workingDirectoryReplaced':
      return replaceDirectory(state, action);

    case 'session/inputNeededSet': {
      const inputNeeded = upsert(state.inputNeeded, action.request, (r) => r.id === action.request.id);
      return { ...state, inputNeeded, status: inputStatus(state.status, inputNeeded) };
    }
    case 'session/inputNeededRemoved': {
      const rest = without(state.inputNeeded, (r) => r.id === action.id);
      if (!rest) return state;
      return { ...state, inputNeeded: rest.length > 0 ? rest : undefined, status: inputStatus(state.status, rest) };
    }

    case 'session/customizationsChanged':
      return { ...state, customizations: action.customizations };
    case 'session/customizationUpdated': {
      const { customization } = action;
      if (!isContainer(customization)) return state;
      return {
        ...state,
        customizations: upsert(state.customizations, customization, (c) => c.id === customization.id),
      };
    }
    case 'session/customizationToggled':
      return changeCustomization(state, action.id, (c, level) => enable(c, level, action.enablement));
    case 'session/customizationRemoved':
      return removeCustomization(state, action.id);

    case 'session/mcpServerStateChanged':
      return changeServer(state, action.id, (c) => ({ ...c, state: action.state, channel: action.channel }));
    case 'session/mcpServerStartRequested':
      return changeServer(state, action.id, (c) => ({ ...c, state: { kind: 'starting' }, channel: undefined }));
    case 'session/mcpServerStopRequested':
      return changeServer(state, action.id, (c) => ({ ...c, state: { kind: 'stopped' }, channel: undefined }));
    case 'session/mcpServerBackgroundRequested':
      return changeServer(state, action.id, (c) =>
        c.state?.kind === 'starting' && c.state.blocking ? { ...c, state: { ...c.state, blocking: false } } : c,
      );

    default:
      return unknown(action, state);
  }
}

/** The status shows the queue of questions: a pending one sets `InputNeeded`. */
function inputStatus(status: number, queue: SessionInputRequest[]): number {
  if (queue.some((request) => request.kind !== 'toolClientExecution')) {
    return withActivity(status, SessionStatus.InputNeeded);
  }
  return status & ~(SessionStatus.InputNeeded & ~SessionStatus.InProgress);
}

/** Only a complete new order is applied. */
function reorderChats(state: SessionState, action: ActionOf<'session/chatsReordered'>): SessionState {
  const order = new Set(action.chats);
  if (order.size !== state.chats.length || action.chats.length !== state.chats.length) return state;
  if (action.chats.every((chat, at) => state.chats[at]?.resource === chat)) return state;
  const chats = action.chats.flatMap((chat) => state.chats.find((c) => c.resource === chat) ?? []);
  return chats.length === state.chats.length ? { ...state, chats } : state;
}

function replaceDirectory(state: SessionState, action: ActionOf<'session/workingDirectoryReplaced'>): SessionState {
  const directories = state.workingDirectories ?? [];
  const at = directories.indexOf(action.directory);
  if (at < 0) return state;
  const earlier = directories.slice(0, at).includes(action.replacement);
  const workingDirectories = earlier
    ? directories.toSpliced(at, 1)
    : directories.flatMap((d, n) => (n === at ? [action.replacement] : d === action.replacement ? [] : [d]));
  return { ...state, workingDirectories };
}

// ---- Customizations -----------------------------------------------------------------------------------------------

type Level = 'top' | 'child';

/** The members that several kinds share, at the top or below. */
interface AnyCustomization {
  type: string;
  id: string;
  enabled?: boolean;
  enablement?: CustomizationEnablement[];
  children?: AnyCustomization[];
  state?: McpServerState;
  channel?: string;
}

function listOf(state: SessionState): AnyCustomization[] | undefined {
  return state.customizations;
}

function withList(state: SessionState, list: AnyCustomization[]): SessionState {
  return { ...state, customizations: list as Customization[] };
}

const CONTAINERS = new Set(['plugin', 'directory', 'mcpServer']);

function isContainer(customization: AnyCustomization): boolean {
  return CONTAINERS.has(customization.type);
}

/** Changes the customization with this id: at the top first, then among the children. */
function changeCustomization(
  state: SessionState,
  id: string,
  change: (customization: AnyCustomization, level: Level) => AnyCustomization,
): SessionState {
  const list = listOf(state);
  if (!list) return state;
  const replace = (at: number, changed: AnyCustomization): SessionState =>
    changed === list[at] ? state : withList(state, list.with(at, changed));

  const top = list.findIndex((c) => c.id === id);
  if (list[top]) return replace(top, change(list[top], 'top'));

  for (const [at, container] of list.entries()) {
    const child = container.children?.findIndex((c) => c.id === id) ?? -1;
    const found = container.children?.[child];
    if (!container.children || !found) continue;
    const changed = change(found, 'child');
    return changed === found ? state : replace(at, { ...container, children: container.children.with(child, changed) });
  }
  return state;
}

function changeServer(
  state: SessionState,
  id: string,
  change: (server: AnyCustomization) => AnyCustomization,
): SessionState {
  return changeCustomization(state, id, (c) => (c.type === 'mcpServer' ? change(c) : c));
}

/** Plugins and servers keep the origin of the decision; others only whether they are on. */
function enable(
  customization: AnyCustomization,
  level: Level,
  enablement: CustomizationEnablement[],
): AnyCustomization {
  const keepsReasons = customization.type === 'mcpServer' || (level === 'top' && customization.type === 'plugin');
  if (keepsReasons) return { ...customization, enablement: enablement.length > 0 ? enablement : undefined };
  return { ...customization, enabled: enablement[0]?.enabled ?? true };
}

function removeCustomization(state: SessionState, id: string): SessionState {
  const list = listOf(state);
  if (!list) return state;
  const rest = without(list, (c) => c.id === id);
  if (rest) return withList(state, rest);
  for (const [at, container] of list.entries()) {
    const children = without(container.children, (c) => c.id === id);
    if (children) return withList(state, list.with(at, { ...container, children }));
  }
  return state;
}
