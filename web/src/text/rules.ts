/** Rules as `grove.toml` has them, from the fields of a form. */

import type { RuleSubject, Verdict } from '../wire/administration';

export const KINDS = ['shell', 'edit', 'read', 'fetch', 'mcp'] as const;
export type RuleKind = (typeof KINDS)[number];

/** The key of the patterns of each kind. */
const KEYS: Record<RuleKind, string> = { shell: 'command', edit: 'path', read: 'path', fetch: 'host', mcp: 'tool' };

export interface RuleDraft {
  verdict: Verdict;
  kind: RuleKind;
  /** One pattern a line; without any, everything of the kind. */
  patterns: string;
  agent: string;
  reason: string;
}

/** The text of a rule, exactly as it is added. */
export function ruleToml({ verdict, kind, patterns, agent, reason }: RuleDraft): string {
  const wanted = patterns
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const lines = ['[[policy.rules]]', `${verdict} = ${quoted(kind)}`];
  if (wanted.length === 1) lines.push(`${KEYS[kind]} = ${quoted(wanted[0]!)}`);
  else if (wanted.length > 1) lines.push(`${KEYS[kind]} = [${wanted.map(quoted).join(', ')}]`);
  if (agent.trim()) lines.push(`agent = ${quoted(agent.trim())}`);
  if (reason.trim()) lines.push(`reason = ${quoted(reason.trim())}`);
  return `${lines.join('\n')}\n`;
}

/** A basic string of TOML. */
export function quoted(text: string): string {
  const escape = (character: string): string => {
    if (character === '"' || character === '\\') return `\\${character}`;
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  };
  return `"${text.replace(/["\\\u0000-\u001f\u007f]/g, escape)}"`;
}

/** The request of a kind that a person wants judged. */
export function subjectOf(kind: RuleKind, text: string): RuleSubject {
  switch (kind) {
    case 'shell':
      return { kind, command: text };
    case 'read':
    case 'edit':
      return { kind, path: text };
    case 'fetch':
      return { kind, url: text };
    case 'mcp':
      return { kind, tool: text };
  }
}
