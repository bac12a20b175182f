import { describe, expect, it } from 'vitest';
import { activities, happenings, settled, titlePrefix, waitingCount } from '../../src/state/attention';
import { windowTitle } from '../../src/store/attention.svelte';
import { isQuiet, readWishes } from '../../src/store/notifications.svelte';
import { deviceName } from '../../src/text/device';
import { SessionStatus } from '../../src/wire/protocol';

const row = (status: number, modifiedAt = '2026-03-01T12:00:00Z') => ({
  resource: 'scripted:/s',
  status,
  title: 'Title',
  modifiedAt,
});
const { Idle, InProgress, InputNeeded, Error: Failed, IsArchived } = SessionStatus;

describe('what happened in the list', () => {
  const kinds = (before: number, after: number): string[] =>
    happenings(activities([row(before)]), [row(after)]).map(({ kind }) => kind);

  it('is that a session waits, or that its turn has ended', () => {
    expect(kinds(InProgress, InputNeeded)).toEqual(['waiting']);
    expect(kinds(InProgress, Idle)).toEqual(['finished']);
    expect(kinds(InputNeeded, Failed)).toEqual(['failed']);
    const [before, after] = [row(Idle), row(Idle, '2026-03-01T12:00:01Z')];
    expect(happenings(activities([before]), [after])).toMatchObject([{ kind: 'finished' }]);
  });

  it('is nothing else', () => {
    expect(kinds(InputNeeded, InputNeeded)).toEqual([]);
    expect(kinds(Idle, InProgress)).toEqual([]);
    expect(kinds(Idle, Failed)).toEqual([]);
    expect(kinds(InProgress, InputNeeded | IsArchived)).toEqual([]);
    expect(happenings(activities([]), [row(InputNeeded)])).toEqual([]);
  });

  it('is settled by an answer or a new turn', () => {
    const of = (before: number, after: number): string[] =>
      settled(activities([row(before)]), [row(after)]).map(({ kind }) => kind);
    expect(of(InputNeeded, InProgress)).toEqual(['waiting']);
    expect(of(Idle, InProgress)).toEqual(['finished', 'failed']);
    expect(of(InProgress, Idle)).toEqual([]);
  });
});

it('the title of the window begins with the number of waiting sessions', () => {
  expect(waitingCount([row(InputNeeded), row(InputNeeded | IsArchived), row(InProgress)])).toBe(1);
  expect(windowTitle(2, 'Fix it', 'laptop')).toBe('(2) Fix it – laptop');
  expect(windowTitle(0, undefined, '')).toBe('Grove');
  expect(titlePrefix(500)).toBe('(99+) ');
});

describe('the wishes of a device', () => {
  it('are read again, and of another shape are as at first', () => {
    const wishes = { on: true, asked: true, events: ['failed'], quiet: { from: '22:00', to: '07:00' } };
    expect(readWishes(JSON.stringify(wishes))).toEqual(wishes);
    const first = { on: false, asked: false, events: ['waiting', 'failed'], quiet: undefined };
    for (const json of ['', 'null', '1', '{', '{"on":1,"events":"x","quiet":{"from":"25:00","to":"07:00"}}'])
      expect(readWishes(json)).toEqual(first);
  });

  it('have quiet hours that go over midnight', () => {
    const at = (time: string): Date => new Date(`2026-03-01T${time}:00`);
    const night = { from: '22:00', to: '07:00' };
    expect(['21:59', '22:00', '00:00', '06:59', '07:00'].map((time) => isQuiet(night, at(time)))).toEqual([
      false,
      true,
      true,
      true,
      false,
    ]);
    expect(isQuiet({ from: '12:00', to: '13:00' }, at('12:30'))).toBe(true);
    expect(isQuiet(undefined, at('12:30'))).toBe(false);
  });
});

it('a device is named after its browser and its system', () => {
  const agent =
    'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0 Mobile Safari/537.36';
  expect(deviceName(agent)).toBe('Chrome on Android');
  expect(deviceName(agent.replace('Chrome', 'SamsungBrowser/27.0 Chrome'))).toBe('Samsung Internet on Android');
  expect(deviceName('')).toBe('Browser');
});
