// API calls of the admin page: with an admin's session, or with the admin token of this tab.
import type {
  CleanupReport,
  Health,
  NewPassword,
  RoleName,
  ServerList,
  SessionList,
  UserInfo,
  UserList,
} from '../../generated/rest';
import { ApiError, call, type CallOptions, forgetOperatorToken, operatorToken } from '../../lib/api';

const PER_PAGE = 25;

async function admin<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const token = operatorToken();
  if (!token) return call<T>(method, path, { ...options, as: 'me' });
  try {
    return await call<T>(method, path, { ...options, headers: { Authorization: `Bearer ${token}` } });
  } catch (error) {
    // A wrong token must not stand before the reader's own session.
    if (error instanceof ApiError && error.status === 401) forgetOperatorToken();
    throw error;
  }
}

export const listServers = (page: number, signal?: AbortSignal): Promise<ServerList> =>
  admin('GET', '/admin/servers', { query: { page, per_page: PER_PAGE }, signal });

export const stopServer = (id: string, drain: boolean): Promise<void> =>
  admin('DELETE', `/admin/servers/${encodeURIComponent(id)}`, { query: { drain: String(drain) } });

export const listAllSessions = (page: number, signal?: AbortSignal): Promise<SessionList> =>
  admin('GET', '/admin/sessions', { query: { page, per_page: PER_PAGE }, signal });

export const endAnySession = (id: string): Promise<void> =>
  admin('DELETE', `/admin/sessions/${encodeURIComponent(id)}`);

export interface UserWish {
  q: string;
  role: RoleName | '';
  guests: boolean;
  page: number;
}

export const listUsers = ({ q, role, guests, page }: UserWish, signal?: AbortSignal): Promise<UserList> =>
  admin('GET', '/admin/users', {
    query: { q, role, guests: guests ? 'true' : undefined, page, per_page: PER_PAGE },
    signal,
  });

/** Applies only if the role is still the displayed one. */
export const giveRole = (user: UserInfo, role: RoleName): Promise<UserInfo> =>
  admin('POST', `/admin/users/${encodeURIComponent(user.client_id)}/role`, { body: { role, was: user.role } });

export const resetPassword = (user: UserInfo): Promise<NewPassword> =>
  admin('POST', `/admin/users/${encodeURIComponent(user.client_id)}/password`);

export const cleanUp = (): Promise<CleanupReport> => admin('POST', '/admin/cleanup');

export const health = (signal?: AbortSignal): Promise<Health> => call('GET', '/api/health', { signal });
