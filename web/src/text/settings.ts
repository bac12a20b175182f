/** A session's settings as pickers, each with its options and its value. */

import { settingsSchemaOf } from '../state/meta';
import type { SessionConfigPropertySchema, SessionState } from '../wire/types';

export interface Choice {
  value: unknown;
  label: string;
  description?: string;
}

interface Common {
  name: string;
  title: string;
  description?: string;
  /** Shown, but not changeable. */
  fixed: boolean;
}

export type Setting = Common &
  ({ kind: 'choice'; choices: Choice[]; chosen: number } | { kind: 'switch'; on: boolean });

/** Settings that a picker can show, in the schema's order. Others (numbers, lists) are left to other clients. */
export function settingsOf(session: SessionState): Setting[] {
  const properties = settingsSchemaOf(session)?.properties ?? {};
  const values = session.config?.values;
  // A session without settings has nothing to change.
  if (!values) return [];
  return Object.entries(properties).flatMap(([name, schema]) => setting(name, schema, values[name]) ?? []);
}

function setting(name: string, schema: SessionConfigPropertySchema, given: unknown): Setting | undefined {
  if (schema === null || typeof schema !== 'object') return undefined;
  const value = given ?? schema.default;
  const common: Common = {
    name,
    title: schema.title || name,
    ...(schema.description ? { description: schema.description } : {}),
    fixed: schema.readOnly === true || schema.sessionMutable === false,
  };
  if (Array.isArray(schema.enum)) {
    const choices = schema.enum.map((choice, at): Choice => {
      const description = schema.enumDescriptions?.[at];
      return {
        value: choice,
        label: schema.enumLabels?.[at] || String(choice),
        ...(description ? { description } : {}),
      };
    });
    const chosen = choices.findIndex((choice) => choice.value === value);
    if (chosen >= 0 || value == null) return { ...common, kind: 'choice', choices, chosen };
    // The current value may not be among the current options.
    return {
      ...common,
      kind: 'choice',
      choices: [...choices, { value, label: String(value) }],
      chosen: choices.length,
    };
  }
  if (schema.type === 'boolean') return { ...common, kind: 'switch', on: value === true };
  return undefined;
}
