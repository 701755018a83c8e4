// Signs in with the secret that a link carries behind its #, as `frolic dev` prints one for its creator.
import type { LoginResponse } from '../generated/rest';
import { call } from './api';
import { saveSession, sessionOf } from './session';

const KEY = /^#key=([\w-]+)$/;

/** Does nothing, at once, for an address without a secret. */
export async function signInFromAddress(): Promise<void> {
  const key = KEY.exec(location.hash)?.[1];
  if (key === undefined) return;
  // It works once: out of the address before it is copied, shared or reloaded.
  history.replaceState(history.state, '', location.pathname + location.search);
  try {
    saveSession(sessionOf(await call<LoginResponse>('POST', '/api/login/link', { as: 'nobody', body: { key } })));
  } catch (error) {
    // The page works without: for a guest, or with the session of an earlier visit.
    console.warn(error instanceof Error ? error.message : error);
  }
}
