/** The parts of AHP 1.0 beside its generated shapes (`types.ts`): versions, bits, codes, names. */

import type { Action, ChatAction, Notifications, RootAction, SessionAction, ToolCallState } from './types';

/** The generated shapes use plain strings. */
export type Uri = string;

export const PROTOCOL_VERSIONS = ['1.0.0'];
export const ROOT_RESOURCE_URI: Uri = 'ahp-root://';

/** Bits of a session's or chat's `status`. Bits 0 to 4 are the activity, the others are flags. */
export const SessionStatus = {
  Idle: 1,
  Error: 2,
  InProgress: 8,
  /** Implies `InProgress`. */
  InputNeeded: 24,
  IsRead: 32,
  IsArchived: 64,
} as const;

export const STATUS_ACTIVITY_MASK = 0b11111;

export const ErrorCodes = {
  MethodNotFound: -32601,
  UnsupportedProtocolVersion: -32005,
  NotFound: -32008,
  PermissionDenied: -32009,
} as const;

/** One action by its name: `ActionOf<'chat/delta'>`. */
export type ActionOf<T extends (RootAction | SessionAction | ChatAction)['type']> = Extract<Action, { type: T }>;

/** A tool call in one of its states: `ToolCallIn<'running'>`. */
export type ToolCallIn<S extends ToolCallState['status']> = Extract<ToolCallState, { status: S }>;

export type NotificationName = keyof Notifications;
