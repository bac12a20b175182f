import type { Router } from '../../store/route.svelte';
import type { Uri } from '../../wire/protocol';

/** What every panel beside a conversation is given. */
export interface PanelProps {
  chat: Uri;
  router: Router;
  close: () => void;
  /** The turn that the panel is about, if it is about one. */
  turn: string | undefined;
  select: (turn?: string) => void;
}
