// The signed-in user as reactive state; follows sign-ins and sign-outs in other tabs.
import { isSessionKey, loadSession, onSessionChange, type Session } from './session';

class AccountState {
  session = $state.raw<Session | null>(loadSession());

  constructor() {
    onSessionChange((session) => (this.session = session));
    addEventListener('storage', (event) => {
      if (isSessionKey(event.key)) this.session = loadSession();
    });
  }

  /** Signed in with an account, not as a guest. */
  get signedIn(): boolean {
    return this.session?.kind === 'account';
  }

  get isAdmin(): boolean {
    return this.signedIn && this.session?.role === 'admin';
  }

  get isModerator(): boolean {
    return this.isAdmin || (this.signedIn && this.session?.role === 'moderator');
  }
}

export const account = new AccountState();
