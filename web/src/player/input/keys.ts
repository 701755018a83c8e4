// Which keys do what, and the names that scripts use for keys.

export type Action =
  | 'forward'
  | 'back'
  | 'left'
  | 'right'
  | 'jump'
  | 'run'
  | 'interact'
  | 'turnLeft'
  | 'turnRight'
  | 'lookUp'
  | 'lookDown';

const ACTIONS: Record<string, Action> = {
  KeyW: 'forward',
  ArrowUp: 'forward',
  KeyS: 'back',
  ArrowDown: 'back',
  KeyA: 'left',
  KeyD: 'right',
  Space: 'jump',
  ShiftLeft: 'run',
  ShiftRight: 'run',
  KeyE: 'interact',
  // For players without a mouse.
  ArrowLeft: 'turnLeft',
  ArrowRight: 'turnRight',
  PageUp: 'lookUp',
  PageDown: 'lookDown',
};

export function actionOf(code: string): Action | undefined {
  return ACTIONS[code];
}

const DIGITS = ['Zero', 'One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine'];

/** Named keys; letters and digits are computed. As in crates/script/builtin/client/input.luau. */
const NAMES: Record<string, string> = {
  Space: 'Space',
  Enter: 'Enter',
  NumpadEnter: 'Enter',
  Tab: 'Tab',
  Backspace: 'Backspace',
  ArrowUp: 'Up',
  ArrowDown: 'Down',
  ArrowLeft: 'Left',
  ArrowRight: 'Right',
  ShiftLeft: 'LeftShift',
  ShiftRight: 'RightShift',
  ControlLeft: 'LeftControl',
  ControlRight: 'RightControl',
  AltLeft: 'LeftAlt',
  AltRight: 'RightAlt',
  Comma: 'Comma',
  Period: 'Period',
  Minus: 'Minus',
  Equal: 'Equals',
  Slash: 'Slash',
  Semicolon: 'Semicolon',
  Quote: 'Quote',
  BracketLeft: 'LeftBracket',
  BracketRight: 'RightBracket',
};

/** The script name of a physical key; undefined for keys that scripts cannot use. */
export function nameOf(code: string): string | undefined {
  const [, letter] = /^Key([A-Z])$/.exec(code) ?? [];
  const [, digit] = /^(?:Digit|Numpad)([0-9])$/.exec(code) ?? [];
  return letter ?? (digit ? DIGITS[Number(digit)] : NAMES[code]);
}

/** Buttons of a gamepad in the order of the browser's standard mapping. */
export const PAD_BUTTONS = [
  'ButtonA',
  'ButtonB',
  'ButtonX',
  'ButtonY',
  'ButtonL1',
  'ButtonR1',
  'ButtonL2',
  'ButtonR2',
  'ButtonSelect',
  'ButtonStart',
  'ButtonL3',
  'ButtonR3',
  'DPadUp',
  'DPadDown',
  'DPadLeft',
  'DPadRight',
] as const;

export const MOUSE_BUTTONS = ['MouseLeft', 'MouseMiddle', 'MouseRight'] as const;

/** The physical keys for a script's key name: "W", "Space", "Shift", "One" and so on. */
export function codesOf(name: string): string[] {
  const upper = name.trim().toUpperCase();
  if (/^[A-Z]$/.test(upper)) return [`Key${upper}`];
  if (/^[0-9]$/.test(upper)) return [`Digit${upper}`, `Numpad${upper}`];
  const digit = DIGITS.findIndex((word) => word.toUpperCase() === upper);
  if (digit >= 0) return [`Digit${digit}`, `Numpad${digit}`];
  if (upper === 'SHIFT') return ['ShiftLeft', 'ShiftRight'];
  if (upper === 'CONTROL' || upper === 'CTRL') return ['ControlLeft', 'ControlRight'];
  if (upper === 'ALT') return ['AltLeft', 'AltRight'];
  const wanted = upper === 'RETURN' ? 'ENTER' : upper;
  return Object.keys(NAMES).filter((code) => NAMES[code]?.toUpperCase() === wanted);
}
