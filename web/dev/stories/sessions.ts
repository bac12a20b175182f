import StatusBadge from '../../src/ui/sessions/StatusBadge.svelte';
import { SessionStatus } from '../../src/wire/protocol';
import { type Stories, story } from '../story';

export const stories: Stories = {
  StatusBadge: {
    'needs a person': story(StatusBadge, { status: SessionStatus.InputNeeded, withText: true }),
    running: story(StatusBadge, { status: SessionStatus.InProgress, withText: true }),
    failed: story(StatusBadge, { status: SessionStatus.Error, withText: true }),
    idle: story(StatusBadge, { status: SessionStatus.Idle, withText: true }),
  },
};
