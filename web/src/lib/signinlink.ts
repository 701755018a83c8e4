// Signs in with the secret in a link's fragment, as printed by `frolic dev` for the creator.
import { call } from './api';
import { saveSession, sessionOf } from './session';

const KEY = /^#key=([\w-]+)$/;

/** Returns immediately for a URL without a secret. */
export async function signInFromAddress(): Promise<void> {
  const key = KEY.exec(location.hash)?.[1];
  if (key === undefined) return;
  // Single use: removed from the URL before it is copied, shared or reloaded.
  history.replaceState(history.state, '', location.pathname + location.search);
  try {
    saveSession(sessionOf(await call('POST', '/api/login/link', { as: 'anonymous', body: { key } })));
  } catch (error) {
    // Not fatal: the page works as a guest or with an earlier session.
    console.warn(error instanceof Error ? error.message : error);
  }
}
