// User-facing reasons for the end of a session: what happened and what to do next.
import { ApiError } from '../../lib/api';
import { ConnectError } from '../transport/transport';

export interface Ending {
  title: string;
  message: string;
  /** Whether a retry may help. */
  retry: boolean;
  /** Label of the retry button, if not "Try again". */
  retryLabel?: string;
  /** Whether only a reload can help. */
  reload?: boolean;
}

export function endingOf(error: unknown): Ending {
  if (error instanceof ApiError) {
    if (error.status === 0) return { title: 'We couldn’t reach Frolic', message: error.message, retry: true };
    if (error.status === 404)
      return {
        title: 'This world no longer exists',
        message: `${error.message} Pick another one from the store.`,
        retry: false,
      };
    return { title: 'We couldn’t join the world', message: error.message, retry: true };
  }
  if (error instanceof ConnectError) {
    return {
      title: 'We couldn’t connect to the world',
      message: `${error.message} A firewall may block it; try again or try another network.`,
      retry: true,
    };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { title: 'Something went wrong while loading', message, retry: true };
}

export function kicked(reason: string): Ending {
  return { title: 'You were removed from the world', message: reason || 'The server gave no reason.', retry: true };
}

export function refused(message: string): Ending {
  return { title: 'The world refused your connection', message, retry: true };
}

export const replaced: Ending = {
  title: 'You opened this game in another tab',
  message: 'You can play it in one place at a time, and it continues there.',
  retry: true,
  retryLabel: 'Play here instead',
};

export const lost: Ending = {
  title: 'The connection was lost',
  message: 'We tried to reconnect for a minute without success. The world may have closed, or your network is down.',
  retry: true,
};

export const outdated: Ending = {
  title: 'This page is out of date',
  message: 'Frolic was updated while this page was open. Reload the page to continue where you left off.',
  retry: false,
  reload: true,
};
