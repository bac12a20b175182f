import { describe, expect, it } from 'vitest';
import { write } from '../../src/store/route.svelte';
import { addressOf, notificationOf, readMessage, tagOf } from '../../src/sw/message';
import { type Answer, answerTo } from '../../src/sw/shell';

const show = (more: object = {}): string =>
  JSON.stringify({ type: 'show', tag: 's/waiting', kind: 'waiting', session: 'scripted:/s', at: 1, ...more });

describe('a push message', () => {
  it('is shown in the language of the device, with what the host has sent', () => {
    const read = (json: string) => {
      const message = readMessage(json, ['fr', 'de-AT']);
      if (!message || message.type === 'close') throw new Error('it is shown');
      return notificationOf(message);
    };
    expect(read(show({ title: 'Fix it', text: 'bash', language: 'en' }))).toMatchObject({
      title: 'Fix it',
      options: { body: 'Waiting for you: bash', tag: 's/waiting', data: { session: 'scripted:/s' } },
    });
    expect(read(show())).toMatchObject({ title: 'Eine Sitzung', options: { body: 'Wartet auf dich', lang: 'de' } });
    expect(read('{"type":"test","tag":"test"}').title).toBe('Grove');
  });

  it('of another shape is ignored, and a long text is shortened', () => {
    for (const json of [
      '',
      'null',
      '[]',
      '{}',
      '{"type":"show"}',
      show({ kind: 'x' }),
      show({ session: 1 }),
      show({ tag: '' }),
    ])
      expect(readMessage(json, [])).toBeUndefined();
    expect(readMessage(show({ title: 'x'.repeat(5_000) }), [])).toMatchObject({ title: 'x'.repeat(200) });
    expect(readMessage(show({ title: 5, at: 'x', language: '__proto__' }), [])).toMatchObject({ title: '', at: 0 });
  });

  it('offers nothing but to open the session', () => {
    const message = readMessage(show(), ['en']);
    if (message?.type !== 'show') throw new Error('it is shown');
    expect(notificationOf(message).options.actions).toEqual([{ action: 'open', title: 'Open' }]);
  });

  it('names a session as the router and the host do', () => {
    for (const uri of ['scripted:/a b', 'ahp-session:/ü%?#'])
      expect(addressOf(uri)).toBe(write({ kind: 'session', uri }));
    expect(tagOf('ahp-session:/x', 'failed')).toBe('x/failed');
  });
});

describe('the service worker', () => {
  const scope = 'https://host.example/grove/';
  const shell = { version: '1', start: ['assets/index-1.js', 'favicon.svg'], later: ['assets/more-2.js'] };
  const answer = (path: string, request: { method?: string; mode?: string } = {}): Answer =>
    answerTo({ method: 'GET', mode: 'cors', url: new URL(path, scope).href, ...request }, scope, shell);

  it('answers for the page and its files', () => {
    const mode = 'navigate';
    expect([answer('./', { mode }), answer('./#/session/x', { mode }), answer('index.html', { mode })]).toEqual([
      'page',
      'page',
      'page',
    ]);
    expect([answer('assets/index-1.js'), answer('assets/more-2.js'), answer('favicon.svg')]).toEqual([
      'file',
      'file',
      'file',
    ]);
  });

  it('never touches what has data or proves who somebody is', () => {
    for (const path of [
      'ws',
      'proof?nonce=1',
      'pair',
      'ticket',
      'metrics',
      'healthz',
      'sw.js',
      'assets/index-0.js',
      '../x',
    ])
      for (const mode of ['cors', 'navigate', 'same-origin']) expect(answer(path, { mode })).toBe('network');
    expect(answer('./', { method: 'POST', mode: 'navigate' })).toBe('network');
    expect(answer('assets/index-1.js?tkn=secret')).toBe('network');
    expect(answer('https://other.example/assets/index-1.js')).toBe('network');
  });
});
