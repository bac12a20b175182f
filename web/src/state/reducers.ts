/** The reducer for each kind of state. */

import type { ChatState, RootState, SessionState, Action } from '../wire/types';
import { reduceChat } from './chat';
import { reduceRoot } from './root';
import { reduceSession } from './session';

export type Reducer<S> = (state: S, action: Action) => S;

export interface States {
  root: RootState;
  session: SessionState;
  chat: ChatState;
}

export const reducers: { [K in keyof States]: Reducer<States[K]> } = {
  root: reduceRoot,
  session: reduceSession,
  chat: reduceChat,
};
