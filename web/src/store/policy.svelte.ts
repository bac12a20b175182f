/** The permission rules of the host: reading, trying and changing them. */

import type { Backtest, RuleList, RuleSubject, RuleSuggestion, RuleVerdict } from '../wire/administration';
import { Loaded, messageOf, type OwnRequests } from './loaded.svelte';

/** Reading all logs of a year may take minutes. */
const REPLAY_MS = 10 * 60_000;
const DAY_MS = 86_400_000;

export class Policy {
  readonly list: Loaded<RuleList>;
  /** The newest backtest, with the differences that were fetched so far. */
  report = $state.raw<Backtest | undefined>();
  suggestions = $state.raw<RuleSuggestion[] | undefined>();
  problem = $state<string | undefined>();
  /** The work that runs. */
  busy = $state<'test' | 'suggest' | undefined>();
  #client: OwnRequests;
  /** The params of the newest backtest, for its next pages. */
  #tested: Record<string, unknown> = {};

  constructor(client: OwnRequests) {
    this.#client = client;
    this.list = new Loaded(() => client.requestOwn('x-grove/policy/rules', {}) as Promise<RuleList>);
  }

  async check(subject: RuleSubject, cwd: string | undefined): Promise<RuleVerdict> {
    const params = { ...subject, ...(cwd === undefined ? {} : { cwd }) };
    return (await this.#client.requestOwn('x-grove/policy/check', params)) as RuleVerdict;
  }

  /** Judges the answered requests of so many days, with further rules if there are any. */
  async test(days: number, rules: string | undefined): Promise<void> {
    this.#tested = { sinceMs: Date.now() - days * DAY_MS, ...(rules === undefined ? {} : { rules }) };
    await this.#work('test', async () => {
      this.report = await this.#replay(this.#tested);
    });
  }

  /** Fetches the next differences. */
  async more(): Promise<void> {
    const known = this.report;
    if (known?.nextCursor === undefined) return;
    await this.#work('test', async () => {
      const next = await this.#replay({ ...this.#tested, cursor: known.nextCursor });
      this.report = { ...next, differences: [...known.differences, ...next.differences] };
    });
  }

  async suggest(days: number): Promise<void> {
    await this.#work('suggest', async () => {
      const params = { sinceMs: Date.now() - days * DAY_MS };
      const found = (await this.#client.requestOwn('x-grove/policy/suggest', params, REPLAY_MS)) as {
        suggestions: RuleSuggestion[];
      };
      this.suggestions = found.suggestions;
    });
  }

  async add(toml: string): Promise<void> {
    await this.#client.requestOwn('x-grove/policy/add', { toml });
    await this.list.load();
  }

  async remove(line: number, toml: string): Promise<void> {
    await this.#client.requestOwn('x-grove/policy/remove', { line, toml });
    await this.list.load();
  }

  async #replay(params: Record<string, unknown>): Promise<Backtest> {
    return (await this.#client.requestOwn('x-grove/policy/test', params, REPLAY_MS)) as Backtest;
  }

  async #work(kind: 'test' | 'suggest', work: () => Promise<void>): Promise<void> {
    this.busy = kind;
    this.problem = undefined;
    try {
      await work();
    } catch (error) {
      this.problem = messageOf(error);
    } finally {
      this.busy = undefined;
    }
  }
}
