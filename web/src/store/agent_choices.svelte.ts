/** The agents that a person may choose: those of the host, and those that it could have. */

import { objects, text } from '../state/meta';
import type { Host } from './host.svelte';

export interface AgentChoice {
  id: string;
  name: string;
  isInstalled: boolean;
  /** The command that installs it on the host's machine. */
  install: string | undefined;
}

/** The agents of the host, and below them the known ones that are not installed. */
export class AgentChoices {
  #host: Host;
  #listed = $state.raw<readonly AgentChoice[]>([]);
  checking = $state(false);

  readonly all: readonly AgentChoice[] = $derived.by(() => {
    const listed = this.#listed;
    const own = (this.#host.root.state?.agents ?? []).map(({ provider, displayName }): AgentChoice => ({
      id: provider,
      name: displayName,
      isInstalled: true,
      install: undefined,
    }));
    const missing = listed.filter(({ id, isInstalled }) => !isInstalled && !own.some((agent) => agent.id === id));
    return [...own, ...missing];
  });

  constructor(host: Host) {
    this.#host = host;
  }

  /** The host can look again for agents that it does not have. */
  get canCheck(): boolean {
    return this.#host.hub.offers('x-grove/agents/check');
  }

  async load(): Promise<void> {
    if (this.#host.hub.offers('x-grove/agents/list')) await this.#ask('list');
  }

  /** Looks for the programs again, after one was installed. */
  async check(): Promise<void> {
    this.checking = true;
    try {
      await this.#ask('check');
    } finally {
      this.checking = false;
    }
  }

  async #ask(what: 'list' | 'check'): Promise<void> {
    const result = (await this.#host.client.requestOwn(`x-grove/agents/${what}`, {})) as { agents?: unknown };
    if (result.agents === undefined && what === 'check') return this.#ask('list');
    this.#listed = objects(result.agents).flatMap((agent) => {
      const id = text(agent['id']);
      const command = objects([agent['install']])[0]?.['command'];
      return id
        ? [
            {
              id,
              name: text(agent['name']) || id,
              isInstalled: agent['installed'] === true,
              install: typeof command === 'string' && command ? command : undefined,
            },
          ]
        : [];
    });
  }
}
