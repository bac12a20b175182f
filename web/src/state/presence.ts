/** The clients that are attached to a session, as the host lists them. */

import { type Meta, object, objects, text } from './meta';

/** An attached client. */
export interface AttachedClient {
  id: string;
  /** The name of its token, and its own name if it has one. */
  label: string;
  /** One or two letters for a small sign. */
  initials: string;
  isAgent: boolean;
}

export interface Presence {
  clients: AttachedClient[];
  /** The number of further clients that the host does not list. */
  more: number;
}

/** The list in an answer or a notification, without parts of the host itself. A value of another shape is empty. */
export function presenceOf(value: unknown): Presence {
  const list = object(value);
  const clients = objects(list?.['clients']).flatMap(({ clientId, token, name, kind }) => {
    if (typeof clientId !== 'string' || kind === 'hub') return [];
    const label = partyLabel(text(token), text(name));
    return [{ id: clientId, label, initials: initialsOf(text(token)), isAgent: kind === 'agent' }];
  });
  const more = list?.['more'];
  return { clients, more: typeof more === 'number' && more > 0 ? more : 0 };
}

/** The party that answered the newest question about a tool call, in words that follow “by”. */
export function answererOf(meta: Meta): string | undefined {
  const party = object(meta?.['answeredBy']);
  if (!party) return undefined;
  const rule = text(party['rule']);
  if (rule) return `rule ${rule}`;
  const label = partyLabel(text(party['token']), text(party['client']));
  const hook = text(party['hook']);
  return (hook ? `hook ${hook} of ${label}` : label) || undefined;
}

function partyLabel(token: string, name: string): string {
  return name && name !== token ? `${token} (${name})` : token;
}

function initialsOf(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
  const letters = words.slice(0, 2).map((word) => [...word][0] ?? '');
  return letters.join('').toUpperCase() || '?';
}
