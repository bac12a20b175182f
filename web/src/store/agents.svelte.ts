/** The agents of the host: which are installed, installing them, and logging in. */

import type { AgentList, AgentRow, Installation, InstallPlan, LoginMethod } from '../wire/administration';
import { Loaded, messageOf, type OwnRequests } from './loaded.svelte';

/** The pause between two questions about a running installation. */
const POLL_MS = 500;
/** The lines of an installer’s output that the page keeps. */
const MAX_LINES = 500;
/** Starting an agent may take a minute, a login ten. */
const CHECK_MS = 120_000;
const LOGIN_MS = 11 * 60_000;

export class Agents {
  readonly list: Loaded<AgentList>;
  /** The installation that runs or ran last, with all known lines. */
  installation = $state.raw<Installation | undefined>();
  #client: OwnRequests;
  #polling = false;

  constructor(client: OwnRequests) {
    this.#client = client;
    this.list = new Loaded(() => client.requestOwn('x-grove/agents/list', {}) as Promise<AgentList>);
  }

  /** Has the host look for programs again. */
  check(): Promise<void> {
    return this.list.take(this.#client.requestOwn('x-grove/agents/check', {}, CHECK_MS) as Promise<AgentList>);
  }

  /** Starts an agent, and returns its ways to log in. */
  async loginMethods(id: string): Promise<LoginMethod[]> {
    const list = (await this.#client.requestOwn('x-grove/agents/check', { id }, CHECK_MS)) as AgentList;
    await this.list.take(Promise.resolve(list));
    return list.agents.find((agent) => agent.id === id)?.login?.methods ?? [];
  }

  async logIn(id: string, method: string): Promise<void> {
    await this.#client.requestOwn('x-grove/agents/login', { id, method }, LOGIN_MS);
  }

  async plan(id: string): Promise<InstallPlan> {
    return (await this.#client.requestOwn('x-grove/agents/planInstall', { id })) as InstallPlan;
  }

  /** Begins an installation, and follows it. */
  async install({ id, version }: { id: string; version: string }): Promise<void> {
    const begun = (await this.#client.requestOwn('x-grove/agents/install', { id, version })) as {
      installation?: Installation;
    };
    this.installation = begun.installation;
    void this.follow();
  }

  async cancel(): Promise<void> {
    await this.#client.requestOwn('x-grove/agents/cancelInstall', {});
    await this.#poll();
  }

  /** Finds a running installation, also one that another page has begun, and follows it to its end. */
  async follow(): Promise<void> {
    if (this.#polling) return;
    this.#polling = true;
    try {
      while ((await this.#poll()) === 'running') await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    } catch (error) {
      // The next visit of the page asks again.
      if (this.installation?.state === 'running') this.installation = { ...this.installation, error: messageOf(error) };
    } finally {
      this.#polling = false;
    }
    if (this.installation?.state === 'done') await this.list.load();
  }

  async #poll(): Promise<Installation['state'] | undefined> {
    const known = this.installation;
    const { installation: next } = (await this.#client.requestOwn('x-grove/agents/installStatus', {
      after: known?.lineCount ?? 0,
    })) as { installation?: Installation };
    if (next) {
      const continues = known && known.id === next.id && known.version === next.version;
      const lines = continues ? [...known.lines, ...next.lines] : next.lines;
      this.installation = { ...next, lines: lines.slice(-MAX_LINES) };
    } else this.installation = undefined;
    return next?.state;
  }
}

/** Usable agents first, then those that can be installed, each in the host’s order. */
export function grouped(agents: readonly AgentRow[]): { usable: AgentRow[]; others: AgentRow[] } {
  return { usable: agents.filter((agent) => agent.installed), others: agents.filter((agent) => !agent.installed) };
}
