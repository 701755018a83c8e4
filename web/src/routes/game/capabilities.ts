// What a game's scripts may use (game.toml, [capabilities]), in words for players.

const WORDS: Record<string, string> = {
  store: 'keeps your progress',
  chat: 'writes to the chat',
  teleport: 'can send you to other games',
  http: 'talks to other websites',
};

/** "keeps your progress and writes to the chat"; names nobody knows yet are shown as they are. */
export function sentence(capabilities: readonly string[]): string {
  const words = capabilities.map((name) => WORDS[name] ?? `uses ${name}`);
  return new Intl.ListFormat('en').format(words);
}
