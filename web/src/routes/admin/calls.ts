// API calls of the admin page: with the admin token of this tab, or with an admin's session.
import type { RoleName, UserInfo } from '../../generated/rest';
import { call } from '../../lib/api';

const PER_PAGE = 25;

export const listServers = (page: number, signal?: AbortSignal) =>
  call('GET', '/admin/servers', { as: 'operator', query: { page, per_page: PER_PAGE }, signal });

export const stopServer = (id: string, drain: boolean) =>
  call('DELETE', '/admin/servers/{id}', { as: 'operator', path: { id }, query: { drain } });

export const listAllSessions = (page: number, signal?: AbortSignal) =>
  call('GET', '/admin/sessions', { as: 'operator', query: { page, per_page: PER_PAGE }, signal });

export const endAnySession = (id: string) =>
  call('DELETE', '/admin/sessions/{session_id}', { as: 'operator', path: { session_id: id } });

export interface UserWish {
  q: string;
  role: RoleName | '';
  guests: boolean;
  page: number;
}

export const listUsers = ({ q, role, guests, page }: UserWish, signal?: AbortSignal) =>
  call('GET', '/admin/users', {
    as: 'operator',
    query: { q, role: role || undefined, guests, page, per_page: PER_PAGE },
    signal,
  });

/** Applies only if the role is still the displayed one. */
export const giveRole = (user: UserInfo, role: RoleName) =>
  call('POST', '/admin/users/{user_id}/role', {
    as: 'operator',
    path: { user_id: user.client_id },
    body: { role, was: user.role },
  });

export const resetPassword = (user: UserInfo) =>
  call('POST', '/admin/users/{user_id}/password', { as: 'operator', path: { user_id: user.client_id } });

export const cleanUp = () => call('POST', '/admin/cleanup', { as: 'operator' });

export const health = (signal?: AbortSignal) => call('GET', '/health', { signal });
