import { describe, expect, it } from 'vitest';
import { settingsOf } from '../../src/text/settings';
import type { SessionConfigPropertySchema, SessionState } from '../../src/wire/types';

const schema = (properties: Record<string, SessionConfigPropertySchema>) => ({ type: 'object', properties });
const mode = (more = {}): SessionConfigPropertySchema => ({
  title: 'Mode',
  type: 'string',
  enum: ['ask', 'edit'],
  enumLabels: ['Ask first', 'Edit'],
  ...more,
});
const session = (
  properties: Record<string, SessionConfigPropertySchema>,
  values: Record<string, unknown> | undefined,
  meta?: Record<string, unknown>,
): SessionState =>
  ({ config: values && { schema: schema(properties), values }, _meta: meta }) as unknown as SessionState;

describe('settings', () => {
  it('are pickers for what can be chosen and switches for what is on or off', () => {
    const on: SessionConfigPropertySchema = { title: 'Think', type: 'boolean', description: 'Longer' };
    expect(settingsOf(session({ mode: mode(), on }, { mode: 'edit', on: true }))).toEqual([
      {
        kind: 'choice',
        name: 'mode',
        title: 'Mode',
        fixed: false,
        choices: [
          { value: 'ask', label: 'Ask first' },
          { value: 'edit', label: 'Edit' },
        ],
        chosen: 1,
      },
      { kind: 'switch', name: 'on', title: 'Think', description: 'Longer', fixed: false, on: true },
    ]);
  });

  it('follow the newest schema, which no action carries', () => {
    const newest = schema({ model: mode({ title: 'Model' }) });
    const settings = settingsOf(session({ mode: mode() }, { model: 'ask' }, { settings: newest }));
    expect(settings.map((setting) => setting.title)).toEqual(['Model']);
  });

  it('show what is chosen even where it is not offered', () => {
    const [setting] = settingsOf(session({ mode: mode() }, { mode: 'gone' }));
    expect(setting).toMatchObject({ chosen: 2, choices: [{}, {}, { value: 'gone', label: 'gone' }] });
  });

  it('that nobody chose are as the schema says, or not chosen', () => {
    expect(settingsOf(session({ mode: mode({ default: 'edit' }) }, {}))[0]).toMatchObject({ chosen: 1 });
    expect(settingsOf(session({ mode: mode() }, {}))[0]).toMatchObject({ chosen: -1 });
  });

  it('that may not be changed are fixed', () => {
    const fixed = (more: object): boolean | undefined => settingsOf(session({ mode: mode(more) }, {}))[0]?.fixed;
    expect(fixed({ readOnly: true })).toBe(true);
    expect(fixed({ sessionMutable: false })).toBe(true);
    expect(fixed({ sessionMutable: true })).toBe(false);
  });

  it('of other kinds, and of a session that has none, are not shown', () => {
    expect(settingsOf(session({ count: { title: 'Count', type: 'number' } }, { count: 3 }))).toEqual([]);
    expect(settingsOf(session({ mode: mode() }, undefined, { settings: schema({ mode: mode() }) }))).toEqual([]);
  });
});
