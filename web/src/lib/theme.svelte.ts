// Light or dark theme: follows the system until the visitor chooses one; the choice is stored.

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

  /** The effective theme, including the system preference. */
  get isDark(): boolean {
    if (this.choice !== 'system') return this.choice === 'dark';
    return matchMedia('(prefers-color-scheme: dark)').matches;
  }

  /** Switches to the other theme. */
  toggle(): void {
    this.choice = this.isDark ? 'light' : 'dark';
    try {
      localStorage.setItem(KEY, this.choice);
    } catch {
      // The choice lasts for this visit only.
    }
    this.apply();
  }

  apply(): void {
    if (this.choice === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.choice;
  }
}

export const theme = new Theme();
