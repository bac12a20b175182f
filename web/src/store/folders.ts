/** Folders of the host's machine for a new session. */

import { pathOf } from '../text/format';
import type { Uri } from '../wire/protocol';
import type { SessionRow } from '../state/rows';
import type { Host } from './host.svelte';

export interface Folder {
  uri: Uri;
  label: string;
  path: string;
}

/** The most folders that are offered as recent. */
const RECENT = 6;

/** The folders of the newest sessions of this host, each once. */
export function recentFolders(rows: readonly SessionRow[], thisHost: string): Folder[] {
  const found = new Map<Uri, Folder>();
  for (const { providerId, workspace } of rows) {
    if (providerId !== thisHost || !workspace?.uri.startsWith('file://') || found.has(workspace.uri)) continue;
    found.set(workspace.uri, { uri: workspace.uri, label: workspace.label, path: pathOf(workspace.uri) });
    if (found.size === RECENT) break;
  }
  return [...found.values()];
}

/** The folders that begin with the typed path, or the repositories that contain the text. */
export async function offers(host: Host, kind: 'folders' | 'repositories', typed: string): Promise<Folder[]> {
  if (!host.hub.available) return [];
  const found = await host.hub.browse(kind, typed);
  return found.map(({ uri, label }) => ({ uri, label, path: pathOf(uri) }));
}
