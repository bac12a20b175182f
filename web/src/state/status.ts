/** Reading and changing the bits of `status`. */

import { SessionStatus, STATUS_ACTIVITY_MASK } from '../wire/protocol';

export function hasStatus(status: number, bits: number): boolean {
  return (status & bits) === bits;
}

/** Bits are counted without a sign, so that one that is not known yet stays as it came, the highest too. */
const unsigned = (bits: number): number => bits >>> 0;

export function withFlag(status: number, flag: number, set: boolean): number {
  return unsigned(set ? status | flag : status & ~flag);
}

export function withActivity(status: number, activity: number): number {
  return unsigned((status & ~STATUS_ACTIVITY_MASK) | activity);
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
