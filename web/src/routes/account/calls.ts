// API calls for the user's account.
import type { Account } from '../../generated/rest';
import { ApiError, call } from '../../lib/api';
import { forgetSession, loadSession, saveSession, sessionOf } from '../../lib/session';

/** Registers an account; a guest is converted and keeps their content. */
export async function register(username: string, password: string, remember: boolean): Promise<void> {
  const body = { username, password, remember };
  const saved = loadSession();
  if (saved?.kind === 'account') forgetSession();
  try {
    saveSession(sessionOf(await call('POST', '/api/register', { body })));
  } catch (error) {
    // The guest's session has expired, so there is nothing to keep.
    if (!(error instanceof ApiError) || error.status !== 401 || !loadSession()) throw error;
    forgetSession();
    saveSession(sessionOf(await call('POST', '/api/register', { body })));
  }
}

export async function signIn(username: string, password: string, remember: boolean): Promise<void> {
  saveSession(sessionOf(await call('POST', '/api/login', { body: { username, password, remember } })));
}

/** The account of the stored session; updates the stored role and name. */
export async function me(signal?: AbortSignal): Promise<Account> {
  const account = await call('GET', '/api/me', { as: 'me', signal });
  remember(account);
  return account;
}

export async function rename(username: string): Promise<Account> {
  const account = await call('PATCH', '/api/me', { as: 'me', body: { username } });
  remember(account);
  return account;
}

export const changePassword = (current: string | undefined, next: string) =>
  call('PUT', '/api/me/password', { as: 'me', body: { current_password: current, new_password: next } });

export async function deleteAccount(username: string, password: string | undefined): Promise<void> {
  await call('POST', '/api/me/delete', { as: 'me', body: { username, password } });
  forgetSession();
}

export const listSessions = (page: number, signal?: AbortSignal) =>
  call('GET', '/api/me/sessions', { as: 'me', query: { page, per_page: 10 }, signal });

export const endSession = (id: string) =>
  call('DELETE', '/api/me/sessions/{session_id}', { as: 'me', path: { session_id: id } });

export const endOtherSessions = () => call('DELETE', '/api/me/sessions', { as: 'me' });

export const listKeys = (signal?: AbortSignal) => call('GET', '/api/me/keys', { as: 'me', signal });

export const createKey = (name: string) => call('POST', '/api/me/keys', { as: 'me', body: { name } });

export const revokeKey = (id: string) => call('DELETE', '/api/me/keys/{key_id}', { as: 'me', path: { key_id: id } });

function remember(account: Account): void {
  const saved = loadSession();
  if (!saved || saved.clientId !== account.client_id) return;
  const kind = account.kind === 'account' ? 'account' : 'guest';
  if (saved.username !== account.username || saved.kind !== kind || saved.role !== account.role) {
    saveSession({ ...saved, username: account.username, kind, role: account.role });
  }
}
