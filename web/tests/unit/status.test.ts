import { expect, test } from 'vitest';
import { activityOf, sessionStatus } from '../../src/state/status';
import { SessionStatus } from '../../src/wire/protocol';
import type { SessionState } from '../../src/wire/types';

type Part = Pick<SessionState, 'status' | 'chats' | 'inputNeeded'>;

const chat = (status: number): SessionState['chats'][number] => ({
  resource: 'ahp-chat:/c',
  title: '',
  status,
  modifiedAt: '2026-01-01T00:00:00.000Z',
});

test("a session's activity follows from its chats, whatever its snapshot said", () => {
  const session = (status: number): Part => ({
    status: SessionStatus.InProgress | SessionStatus.IsRead,
    chats: [chat(status)],
  });
  expect(sessionStatus(session(SessionStatus.Idle))).toBe(SessionStatus.Idle | SessionStatus.IsRead);
  expect(activityOf(sessionStatus(session(SessionStatus.InProgress)))).toBe('running');
  expect(activityOf(sessionStatus(session(SessionStatus.Error)))).toBe('error');
  expect(sessionStatus({ status: SessionStatus.Idle, chats: [] })).toBe(SessionStatus.Idle);
});
