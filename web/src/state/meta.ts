/**
 * Grove's extensions of the protocol's shapes: members of `_meta`.
 *
 * They are not validated, and another host may use the same name for something else. A value of an unexpected shape
 * counts as missing.
 */

import type { SessionConfigSchema, SessionState } from '../wire/types';

export type Meta = Record<string, unknown> | undefined;

export type PlanStatus = 'pending' | 'inProgress' | 'completed';
export type PlanPriority = 'high' | 'medium' | 'low';

export interface PlanEntry {
  content: string;
  priority: PlanPriority;
  status: PlanStatus;
}

const TOOL_KINDS = [
  'terminal',
  'read',
  'edit',
  'delete',
  'move',
  'search',
  'think',
  'fetch',
  'switchMode',
] as const satisfies string[];
export type ToolKind = (typeof TOOL_KINDS)[number];

/** A position in a file that a call is about. */
export interface Place {
  path: string;
  line?: number;
}

/** A command that an agent understands at the beginning of a prompt. */
export interface Command {
  /** Without the slash. */
  name: string;
  description: string;
  /** The arguments of the command. */
  hint?: string;
}

/** A permission answer that applies to all later requests of the same kind. */
export interface Remembered {
  kind: string;
  about: string;
  label: string;
  allows: boolean;
}

export interface ContextUse {
  used: number;
  size: number;
}

export interface Cost {
  amount: number;
  currency: string;
}

/** The plan of a part; undefined if it has none. */
export function planOf(meta: Meta): PlanEntry[] | undefined {
  if (!Array.isArray(meta?.['plan'])) return undefined;
  return objects(meta['plan']).flatMap(({ content, priority, status }) =>
    typeof content === 'string'
      ? [{ content, priority: oneOf(priority, PRIORITIES, 'medium'), status: oneOf(status, STATUSES, 'pending') }]
      : [],
  );
}

export function toolKindOf(meta: Meta): ToolKind | undefined {
  return TOOL_KINDS.find((kind) => kind === meta?.['toolKind']);
}

/** For how long a tool call ran, where the host saw that. */
export function ranMsOf(meta: Meta): number | undefined {
  const ranMs = meta?.['ranMs'];
  return typeof ranMs === 'number' && Number.isFinite(ranMs) && ranMs >= 0 ? ranMs : undefined;
}

export function placesOf(meta: Meta): Place[] {
  return objects(object(meta?.['acp'])?.['locations']).flatMap(({ path, line }) =>
    typeof path === 'string' ? [{ path, ...(typeof line === 'number' ? { line } : {}) }] : [],
  );
}

export function commandsOf(meta: Meta): Command[] {
  return objects(meta?.['commands']).flatMap(({ name, description, hint }) =>
    typeof name === 'string' && name
      ? [{ name, description: text(description), ...(typeof hint === 'string' && hint ? { hint } : {}) }]
      : [],
  );
}

/** The warnings, without duplicates. */
export function warningsOf(meta: Meta): string[] {
  const warnings = meta?.['warnings'];
  return Array.isArray(warnings) ? [...new Set(warnings.filter((warning) => typeof warning === 'string'))] : [];
}

export function rememberedOf(meta: Meta): Remembered[] {
  return objects(meta?.['remembered']).flatMap(({ kind, about, option }) => {
    const chosen = object(option);
    return typeof about === 'string' && chosen
      ? [{ kind: text(kind), about, label: text(chosen['label']), allows: chosen['allows'] === true }]
      : [];
  });
}

/** The operations that are allowed without asking, as set by a client. */
export interface Policy {
  allowAll: boolean;
  approved: { kind: string; argument?: string }[];
  denied: { kind: string; argument?: string }[];
  directories: string[];
  /** Rules in the form of `.grove/policy.toml`. */
  policyRules: string[];
}

export function policyOf(meta: Meta): Policy | undefined {
  const policy = object(meta?.['permissions']);
  if (!policy) return undefined;
  const rules = (name: string): Policy['approved'] =>
    objects(policy[name]).map(({ kind, argument }) => ({
      kind: text(kind),
      ...(typeof argument === 'string' ? { argument } : {}),
    }));
  const texts = (name: string): string[] => {
    const list = policy[name];
    return Array.isArray(list) ? list.filter((one) => typeof one === 'string') : [];
  };
  return {
    allowAll: policy['allowAll'] === true,
    approved: rules('approved'),
    denied: rules('denied'),
    directories: texts('directories'),
    policyRules: texts('policyRules'),
  };
}

export function contextOf(meta: Meta): ContextUse | undefined {
  const { used, size } = object(meta?.['context']) ?? {};
  return typeof used === 'number' && typeof size === 'number' ? { used, size } : undefined;
}

export function costOf(meta: Meta): Cost | undefined {
  const { amount, currency } = object(meta?.['cost']) ?? {};
  return typeof amount === 'number' ? { amount, currency: text(currency) } : undefined;
}

/** The requests of Grove's own that a host answers, by its answer to `initialize`. Another host has none. */
export function ownMethodsOf(meta: Meta): ReadonlySet<string> {
  const methods = object(meta?.['x-grove'])?.['methods'];
  return new Set(Array.isArray(methods) ? methods.filter((method) => typeof method === 'string') : []);
}

/** The tool whose history a session is; undefined for a session of a host. */
export function historyOf(meta: Meta): { source: string; id: string } | undefined {
  const history = object(meta?.['history']);
  return history ? { source: text(history['source']), id: text(history['sourceId']) } : undefined;
}

/** The schema of the settings. No action carries a new schema, so the newest is in `_meta`. */
export function settingsSchemaOf(session: SessionState): SessionConfigSchema | undefined {
  const newest = object(session._meta?.['settings']);
  return object(newest?.['properties']) ? (newest as unknown as SessionConfigSchema) : session.config?.schema;
}

const PRIORITIES: PlanPriority[] = ['high', 'medium', 'low'];
const STATUSES: PlanStatus[] = ['pending', 'inProgress', 'completed'];

export function object(value: unknown): Record<string, unknown> | undefined {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}

export function objects(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.map(object).filter((item) => item !== undefined) : [];
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function oneOf<T extends string>(value: unknown, known: T[], otherwise: T): T {
  return known.find((item) => item === value) ?? otherwise;
}
