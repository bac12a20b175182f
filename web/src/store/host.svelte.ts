/** One host: its connection, its agents, its sessions, and the user's operations. */

import { getContext, setContext } from 'svelte';
import { SvelteSet } from 'svelte/reactivity';
import { Client, type Rejection } from '../protocol/client';
import type { Access, Status } from '../protocol/connection';
import { RpcError } from '../protocol/jsonrpc';
import { randomId } from '../protocol/random';
import { ownMethodsOf } from '../state/meta';
import { pathOf } from '../text/format';
import { ErrorCodes, ROOT_RESOURCE_URI, type Uri } from '../wire/protocol';
import type { ContentEncoding, Notifications, ResourceReadResult } from '../wire/types';

import { Cards } from './cards.svelte';
import { ChannelStore } from './channel.svelte';
import { Prompts } from './prompt.svelte';
import { Notices } from './notices.svelte';
import { SessionHub } from './session_hub.svelte';
import { SessionList } from './sessions.svelte';

export interface NewSession {
  provider: string | undefined;
  workingDirectory: Uri | undefined;
  /** Settings that were chosen before the session existed, such as the model. */
  config?: Record<string, unknown>;
}

/** The rules that a permission request offers, and where each can be stored. */
export interface RuleOffers {
  rules: { text: string; toml: string }[];
  targets: { target: string; file?: string }[];
}

export class Host {
  status = $state.raw<Status>({ kind: 'connecting', attempt: 0 });
  /** The host was reached since the page was opened. */
  reached = $state(false);
  name = $state('');
  version = $state('');
  defaultDirectory = $state<Uri | undefined>();

  readonly client: Client;
  readonly root: ChannelStore<'root'>;
  readonly sessions: SessionList;
  /** The sessions of all sources. */
  readonly hub: SessionHub;
  readonly notices = new Notices();
  /** Prompts that were typed and not sent. */
  readonly prompts: Prompts;
  /** The cards that wait for an answer. */
  readonly cards = new Cards(this.notices);
  /** The prompt of the next session, typed and not sent. */
  newPrompt = '';
  /** The agent that the next session should have, chosen outside of its form. */
  wantedAgent = $state<string | undefined>();
  /** Dismissed warnings, each with its session. */
  readonly dismissed = new SvelteSet<string>();
  /** Called with own actions that the host rejected. */
  readonly onRejected = new Set<(rejection: Rejection) => void>();
  /** Called after each handshake. */
  readonly onConnected = new Set<() => void>();
  /** Called with the attached clients of a session, when they change. */
  readonly onPresence = new Set<(channel: unknown, list: unknown) => void>();

  constructor(access: Access) {
    this.client = new Client(access, {
      statusChanged: (status) => {
        this.status = status;
        if (status.kind === 'online') this.reached = true;
      },
      introduced: (result) => {
        this.name = result.serverInfo?.title ?? result.serverInfo?.name ?? '';
        this.version = result.serverInfo?.version ?? '';
        this.defaultDirectory = result.defaultDirectory ?? undefined;
        this.hub.introduced(ownMethodsOf(result._meta));
      },
      connected: () => {
        void this.sessions.refresh();
        void this.hub.connected();
        for (const listener of this.onConnected) listener();
      },
      notification: (method, params) => this.#hear(method, params),
      rejected: (rejection) => {
        // The draft stays on this device then.
        if (rejection.action.type !== 'chat/draftChanged')
          this.notices.add(`The host refused ${describe(rejection)}: ${rejection.reason}`);
        for (const listener of this.onRejected) listener(rejection);
      },
    });
    this.root = new ChannelStore(this.client, 'root', ROOT_RESOURCE_URI);
    this.sessions = new SessionList(this.client);
    this.prompts = new Prompts((chat, action) => this.client.dispatch(chat, action));
    this.hub = new SessionHub(this.client, this.sessions);
  }

  start(): void {
    this.client.start();
    addEventListener('online', () => this.client.retryNow());
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.client.retryNow();
    });
  }

  /** The reason why a session cannot work in a folder; undefined if there is none. */
  async problemOf(folder: Uri): Promise<string | undefined> {
    try {
      const { type } = await this.client.request('resourceResolve', { channel: ROOT_RESOURCE_URI, uri: folder });
      return type === 'directory' ? undefined : `${pathOf(folder)} is a file, not a folder.`;
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      // A folder outside of the browsable ones may still be used: whether it exists is not revealed here.
      if (error.code === ErrorCodes.PermissionDenied) return undefined;
      if (error.code === ErrorCodes.NotFound) return `There is no folder ${pathOf(folder)} on the host’s machine.`;
      return error.message;
    }
  }

  /** Creates a session, and returns its URI. */
  async createSession({ provider, workingDirectory, config }: NewSession): Promise<Uri> {
    const uri = `ahp-session:/${randomId()}`;
    await this.client.request('createSession', {
      channel: uri,
      provider,
      workingDirectories: workingDirectory ? [workingDirectory] : undefined,
      ...(config ? { config } : {}),
    });
    return uri;
  }

  /** Revokes all remembered permissions of a session, so that people are asked again. */
  async revokePermissions(session: Uri): Promise<void> {
    await this.client.requestOwn('x-grove/permissions', { channel: session, revoke: true });
  }

  /** The rules that would answer a pending permission request, the narrowest first. */
  async offerRules(chat: Uri, request: string): Promise<RuleOffers> {
    return (await this.client.requestOwn('x-grove/policy/offers', { channel: chat, request })) as RuleOffers;
  }

  /** Stores an offered rule, which then answers the request. */
  async allowAlways(chat: Uri, request: string, target: string, rule: string): Promise<void> {
    await this.client.requestOwn('x-grove/policy/allow', { channel: chat, request, target, rule });
  }

  async disposeSession(uri: Uri): Promise<void> {
    await this.client.request('disposeSession', { channel: uri });
  }

  async loadEarlierTurns(chat: Uri, cursor: string): Promise<void> {
    await this.client.request('fetchTurns', { channel: chat, cursor });
  }

  /** The contents of a URI, if the host shows them. */
  async read(uri: Uri, encoding?: ContentEncoding): Promise<ResourceReadResult> {
    return this.client.request('resourceRead', { channel: ROOT_RESOURCE_URI, uri, encoding });
  }

  agentName(provider: string): string {
    return this.root.state?.agents.find((agent) => agent.provider === provider)?.displayName ?? provider;
  }

  #hear<M extends keyof Notifications>(method: M, params: Notifications[M]): void {
    // A notification of Grove's own, whose type is not generated.
    if ((method as string) === 'x-grove/presenceChanged') {
      const { channel } = (params ?? {}) as { channel?: unknown };
      for (const listener of this.onPresence) listener(channel, params);
      return;
    }
    if ((method as string) === 'x-grove/sessions/changed') return this.hub.hear(params);
    switch (method) {
      case 'root/sessionAdded':
        return this.sessions.added(params as Notifications['root/sessionAdded']);
      case 'root/sessionRemoved':
        return this.sessions.removed(params as Notifications['root/sessionRemoved']);
      case 'root/sessionSummaryChanged':
        return this.sessions.changed(params as Notifications['root/sessionSummaryChanged']);
    }
  }
}

function describe({ action }: Rejection): string {
  switch (action.type) {
    case 'chat/turnStarted':
      return 'the prompt';
    case 'chat/pendingMessageSet':
      return 'the queued prompt';
    case 'chat/turnCancelled':
      return 'to stop';
    case 'chat/toolCallConfirmed':
    case 'chat/toolCallResultConfirmed':
      return 'the decision';
    case 'chat/inputCompleted':
      return 'the answer';
    case 'session/titleChanged':
      return 'the title';
    case 'session/configChanged':
      return 'the setting';
    default:
      return action.type;
  }
}

const HOST = Symbol('host');

export function provideHost(host: Host): void {
  setContext(HOST, host);
}

export function useHost(): Host {
  return getContext<Host>(HOST);
}
