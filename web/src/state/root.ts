/** The root reducer. An action that changes nothing returns the same object. */

import type { Action, RootAction, RootState } from '../wire/types';

export function reduceRoot(state: RootState, any: Action): RootState {
  const action = any as RootAction;
  switch (action.type) {
    case 'root/agentsChanged':
      return { ...state, agents: action.agents };
    case 'root/activeSessionsChanged':
      return { ...state, activeSessions: action.activeSessions };
    case 'root/terminalsChanged':
      return { ...state, terminals: action.terminals };
    case 'root/configChanged':
      return state.config ? { ...state, config: mergeConfig(state.config, action) } : state;
    default:
      return unknown(action, state);
  }
}

type Values = Record<string, unknown>;

export function mergeConfig<C extends { values: Values }>(config: C, change: { config: Values; replace?: boolean }): C {
  return { ...config, values: change.replace ? change.config : { ...config.values, ...change.config } };
}

/** Ignores unknown actions; the compiler reports known ones that are not handled. */
export function unknown<S>(_action: never, state: S): S {
  return state;
}
