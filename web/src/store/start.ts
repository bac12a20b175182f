/** Starting a session with its first prompt. */

import type { Uri } from '../wire/protocol';
import type { Host, NewSession } from './host.svelte';
import { message, prompt } from './intents';

/** How long an agent may take to start. After that, the prompt is left in the box of the session. */
const START_MS = 120_000;

/**
 * Creates a session, and sends the prompt as soon as its agent is ready. Returns the URI of the session at once: its
 * view shows how the agent starts.
 */
export async function startSession(host: Host, options: NewSession, text: string): Promise<Uri> {
  const uri = await host.createSession(options);
  void sendFirst(host, uri, text).catch((error: unknown) => {
    host.notices.add(error instanceof Error ? error.message : String(error));
  });
  return uri;
}

/** Waits until the agent is ready, and sends the prompt to the main chat. */
async function sendFirst(host: Host, uri: Uri, text: string): Promise<void> {
  let notify: () => void = () => {};
  const session = host.client.open('session', uri, () => notify());
  const isReady = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(false), START_MS);
    notify = () => {
      const lifecycle = session.state?.lifecycle;
      if (lifecycle !== 'ready' && lifecycle !== 'failed' && !session.problem) return;
      clearTimeout(timer);
      resolve(lifecycle === 'ready');
    };
    notify();
  });
  const chat = session.state?.defaultChat ?? session.state?.chats[0]?.resource;
  session.close();
  if (!chat) return;
  if (!isReady) {
    // The view of the chat shows it as a prompt that was typed and not sent.
    host.prompts.of(chat).put(text);
    return;
  }
  host.client.dispatch(chat, prompt({ activeTurn: undefined }, message(text)));
}
