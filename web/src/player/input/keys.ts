// Which keys do what, and the names that scripts use for keys.

export type Action = 'forward' | 'back' | 'left' | 'right' | 'jump' | 'run' | 'interact';

const ACTIONS: Record<string, Action> = {
  KeyW: 'forward', ArrowUp: 'forward',
  KeyS: 'back', ArrowDown: 'back',
  KeyA: 'left', ArrowLeft: 'left',
  KeyD: 'right', ArrowRight: 'right',
  Space: 'jump',
  ShiftLeft: 'run', ShiftRight: 'run',
  KeyE: 'interact',
};

export function actionOf(code: string): Action | undefined {
  return ACTIONS[code];
}

/** The physical keys that a script's key name means: "W", "Space", "Shift", "One" and so on. */
export function codesOf(name: string): string[] {
  const upper = name.trim().toUpperCase();
  if (/^[A-Z]$/.test(upper)) return [`Key${upper}`];
  if (/^[0-9]$/.test(upper)) return [`Digit${upper}`];
  const digit = ['ZERO', 'ONE', 'TWO', 'THREE', 'FOUR', 'FIVE', 'SIX', 'SEVEN', 'EIGHT', 'NINE'].indexOf(upper);
  if (digit >= 0) return [`Digit${digit}`];
  switch (upper) {
    case 'SPACE': return ['Space'];
    case 'SHIFT': return ['ShiftLeft', 'ShiftRight'];
    case 'LEFTSHIFT': return ['ShiftLeft'];
    case 'RIGHTSHIFT': return ['ShiftRight'];
    case 'CONTROL': case 'CTRL': return ['ControlLeft', 'ControlRight'];
    case 'ENTER': case 'RETURN': return ['Enter'];
    case 'UP': case 'DOWN': case 'LEFT': case 'RIGHT':
      return [`Arrow${upper[0]}${upper.slice(1).toLowerCase()}`];
    default: return [];
  }
}
