/** Reading and changing the bits of `status`. */

import { SessionStatus, STATUS_ACTIVITY_MASK } from '../wire/protocol';
import type { SessionState } from '../wire/types';

export function hasStatus(status: number, bits: number): boolean {
  return (status & bits) === bits;
}

/** Bits are unsigned, so that an unknown one is kept, even the highest. */
const unsigned = (bits: number): number => bits >>> 0;

export function withFlag(status: number, flag: number, set: boolean): number {
  return unsigned(set ? status | flag : status & ~flag);
}

export function withActivity(status: number, activity: number): number {
  return unsigned((status & ~STATUS_ACTIVITY_MASK) | activity);
}

/**
 * A session's status with the activity that follows from its chats and open requests. No action of the protocol carries
 * that activity, so its bits in a state are as old as the snapshot.
 */
export function sessionStatus(session: Pick<SessionState, 'status' | 'chats' | 'inputNeeded'>): number {
  // A host without a list of chats determines the activity itself.
  if (session.chats.length === 0) return session.status;
  const any = (activity: number): boolean =>
    session.chats.some((chat) => (chat.status & STATUS_ACTIVITY_MASK) === activity);
  const waits = (session.inputNeeded ?? []).some((request) => request.kind !== 'toolClientExecution');
  if (waits) return withActivity(session.status, SessionStatus.InputNeeded);
  if (any(SessionStatus.InProgress) || any(SessionStatus.InputNeeded))
    return withActivity(session.status, SessionStatus.InProgress);
  return withActivity(session.status, any(SessionStatus.Error) ? SessionStatus.Error : SessionStatus.Idle);
}

export type Activity = 'idle' | 'error' | 'running' | 'input';

export function activityOf(status: number): Activity {
  if (hasStatus(status, SessionStatus.InputNeeded)) return 'input';
  if (hasStatus(status, SessionStatus.InProgress)) return 'running';
  if (hasStatus(status, SessionStatus.Error)) return 'error';
  return 'idle';
}

export const isRead = (status: number): boolean => hasStatus(status, SessionStatus.IsRead);
export const isArchived = (status: number): boolean => hasStatus(status, SessionStatus.IsArchived);
