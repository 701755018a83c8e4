// Describes a game's capabilities (game.toml, [capabilities]) to players. Chat is part of every game.

const WORDS: Record<string, string> = {
  store: 'saves your progress',
  chat: '',
  teleport: 'can send you to other games',
  http: 'talks to other websites',
};

/** "Saves your progress and talks to other websites."; empty when there is nothing to say. Unknown names are shown as they are. */
export function sentence(capabilities: readonly string[]): string {
  const words = capabilities.map((name) => WORDS[name] ?? `uses ${name}`).filter(Boolean);
  const text = new Intl.ListFormat('en').format(words);
  return text && `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
