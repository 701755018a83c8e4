// Completions after `ctx.`: everything a spell may use (docs/create/spells.md).
import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';

const CTX: Completion[] = [
  { label: 'caster', type: 'property', detail: "the caster's character, or nil" },
  { label: 'target', type: 'property', detail: 'Vector3: the target position' },
  { label: 'params', type: 'property', detail: 'parameters from the caster' },
  { label: 'random', type: 'property', detail: 'deterministic random numbers' },
  { label: 'world', type: 'property', detail: 'queries and changes the world' },
];
const WORLD: Completion[] = [
  { label: 'in_radius', apply: 'in_radius(ctx.target, 4)', type: 'function', detail: '(center, radius) -> entities' },
  { label: 'raycast', type: 'function', detail: '(origin, direction)' },
  { label: 'damage', type: 'function', detail: '(entity, amount)' },
  { label: 'heal', type: 'function', detail: '(entity, amount)' },
  { label: 'push', type: 'function', detail: '(entity, impulse)' },
  { label: 'teleport', type: 'function', detail: '(character, place)' },
  { label: 'spawn', type: 'function', detail: '(prefab, place, seconds?)' },
  { label: 'terraform', type: 'function', detail: '({ op, center, radius, material })' },
  { label: 'particles', type: 'function', detail: '(place, { Color, Count })' },
  { label: 'beam', type: 'function', detail: '(from, to)' },
  { label: 'sound', type: 'function', detail: '(name)' },
  { label: 'shake', type: 'function', detail: '(strength, seconds)' },
];
const RANDOM: Completion[] = [
  { label: 'NextInteger', type: 'function', detail: '(low, high)' },
  { label: 'NextNumber', type: 'function', detail: '(low?, high?)' },
];
const PLAIN: Completion[] = [
  'function',
  'local',
  'for',
  'in',
  'do',
  'if',
  'then',
  'else',
  'end',
  'while',
  'return',
  'nil',
  'true',
  'false',
].map((label) => ({ label, type: 'keyword' }));
const GLOBALS: Completion[] = ['ctx', 'math', 'string', 'table', 'Vector3', 'Color', 'task', 'print'].map((label) => ({
  label,
  type: 'variable',
}));

export function completeSpell(context: CompletionContext): CompletionResult | null {
  const word = context.matchBefore(/[\w.]+/);
  if (!word || (word.from === word.to && !context.explicit)) return null;
  const from = word.from + word.text.lastIndexOf('.') + 1;
  if (word.text.startsWith('ctx.world.')) return { from, options: WORLD };
  if (word.text.startsWith('ctx.random.')) return { from, options: RANDOM };
  if (word.text.startsWith('ctx.')) return { from, options: CTX };
  return word.text.includes('.') ? null : { from: word.from, options: [...GLOBALS, ...PLAIN] };
}
