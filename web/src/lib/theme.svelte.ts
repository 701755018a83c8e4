// Light or dark: follows the system until the visitor picks one, and remembers the pick.

export type ThemeChoice = 'system' | 'light' | 'dark';
const KEY = 'frolic.theme';

function stored(): ThemeChoice {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    return 'system'; // storage is blocked: follow the system
  }
}

class Theme {
  choice = $state<ThemeChoice>(stored());

  /** What is shown right now, the system's wish included. */
  get isDark(): boolean {
    if (this.choice !== 'system') return this.choice === 'dark';
    return matchMedia('(prefers-color-scheme: dark)').matches;
  }

  /** Switches to the other theme than the one shown. */
  toggle(): void {
    this.choice = this.isDark ? 'light' : 'dark';
    try {
      localStorage.setItem(KEY, this.choice);
    } catch {
      // The pick lasts for this visit only.
    }
    this.apply();
  }

  apply(): void {
    if (this.choice === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.choice;
  }
}

export const theme = new Theme();
