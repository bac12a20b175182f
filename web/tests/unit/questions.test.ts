import { describe, expect, it } from 'vitest';
import { collect, describeAnswer, initial } from '../../src/text/questions';
import type { ChatInputQuestion, ChatInputRequest } from '../../src/wire/types';

const options = [
  { id: 'a', label: 'A' },
  { id: 'b', label: 'B', recommended: true },
];
const questions: ChatInputQuestion[] = [
  { kind: 'text', id: 'text', message: 'Text?', defaultValue: 'suggested' },
  { kind: 'integer', id: 'number', message: 'Number?' },
  { kind: 'boolean', id: 'boolean', message: 'Boolean?' },
  { kind: 'single-select', id: 'one', message: 'One?', options, allowFreeformInput: true },
  { kind: 'multi-select', id: 'many', message: 'Many?', options },
];
const request: ChatInputRequest = { id: 'r', questions };

describe('answers', () => {
  it('begin with what the agent suggests', () => {
    const answers = initial(request);
    expect(answers['text']?.text).toBe('suggested');
    expect(answers['one']?.chosen).toEqual(['b']);
    expect(answers['boolean']?.yes).toBeUndefined();
  });

  it('begin with what was answered before', () => {
    const before: ChatInputRequest = {
      ...request,
      answers: { text: { state: 'draft', value: { kind: 'text', value: 'typed' } } },
    };
    expect(initial(before)['text']?.text).toBe('typed');
  });

  it('are sent in the kind of their question, and those that are left out as skipped', () => {
    const answers = initial(request);
    answers['number']!.text = '7';
    answers['boolean']!.yes = false;
    answers['many']!.chosen = [];
    expect(collect(questions, answers)).toEqual({
      text: { state: 'submitted', value: { kind: 'text', value: 'suggested' } },
      number: { state: 'submitted', value: { kind: 'number', value: 7 } },
      boolean: { state: 'submitted', value: { kind: 'boolean', value: false } },
      one: { state: 'submitted', value: { kind: 'selected', value: 'b' } },
      many: { state: 'skipped' },
    });
  });

  it('that fit no option are sent as they were typed', () => {
    const answers = initial(request);
    answers['one'] = { ...answers['one']!, chosen: [], other: ' mine ' };
    expect(collect(questions, answers)['one']).toEqual({
      state: 'submitted',
      value: { kind: 'selected', value: '', freeformValues: ['mine'] },
    });
  });

  it('are shown by the names of their options', () => {
    const answer = { state: 'submitted' as const, value: { kind: 'selected-many' as const, value: ['a', 'b'] } };
    expect(describeAnswer(questions[4]!, answer)).toBe('A, B');
    expect(describeAnswer(questions[0]!, undefined)).toBe('–');
  });
});
