/** The changes of the list of sessions that a person may want to hear of. */

import type { Kind } from '../sw/message';
import type { Uri } from '../wire/protocol';
import type { SessionSummary } from '../wire/types';
import { type Activity, activityOf, isArchived } from './status';

export interface Happening {
  session: Uri;
  kind: Kind;
  title: string;
}

interface Seen {
  activity: Activity;
  title: string;
  /** The time of its last progress. */
  modifiedAt: string;
}

/** The sessions that were seen. */
export type Activities = ReadonlyMap<Uri, Seen>;

type Row = Pick<SessionSummary, 'resource' | 'status' | 'title' | 'modifiedAt'>;

export function activities(list: readonly Row[]): Activities {
  return new Map(
    list.map(({ resource, status, title, modifiedAt }) => [
      resource,
      { activity: activityOf(status), title, modifiedAt },
    ]),
  );
}

/** What happened between two states of the list. A session that was not there before is no news. */
export function happenings(before: Activities, list: readonly Row[]): Happening[] {
  return list.flatMap((session) => {
    const was = before.get(session.resource);
    const kind = was === undefined || isArchived(session.status) ? undefined : change(was, session);
    return kind ? [{ session: session.resource, kind, title: session.title }] : [];
  });
}

/** The sessions that no longer are in the state of which a notification tells. */
export function settled(before: Activities, list: readonly Row[]): { session: Uri; kind: Kind }[] {
  return list.flatMap((session): { session: Uri; kind: Kind }[] => {
    const [was, is] = [before.get(session.resource)?.activity, activityOf(session.status)];
    if (was === 'input' && is !== 'input') return [{ session: session.resource, kind: 'waiting' }];
    if (was !== 'running' && is === 'running')
      return (['finished', 'failed'] satisfies Kind[]).map((kind) => ({ session: session.resource, kind }));
    return [];
  });
}

function change(was: Seen, session: Row): Kind | undefined {
  const is = activityOf(session.status);
  if (is === 'input') return was.activity === 'input' ? undefined : 'waiting';
  const wasBusy = was.activity === 'running' || was.activity === 'input';
  // A short turn begins and ends between two states of the list. A new title counts as progress too.
  if (!wasBusy && (was.modifiedAt === session.modifiedAt || was.title !== session.title)) return undefined;
  return is === 'idle' ? 'finished' : is === 'error' ? 'failed' : undefined;
}

/** The number of sessions that wait for a person. */
export function waitingCount(list: readonly Row[]): number {
  return list.filter((session) => !isArchived(session.status) && activityOf(session.status) === 'input').length;
}

/** The beginning of the window's title. */
export function titlePrefix(count: number): string {
  return count > 0 ? `(${count > 99 ? '99+' : count}) ` : '';
}
