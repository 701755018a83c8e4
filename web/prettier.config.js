// How the site's files are formatted: `npm run format`.
export default {
  plugins: ['prettier-plugin-svelte'],
  printWidth: 120,
  singleQuote: true,
  // Keeps the header comment of a component above its script.
  svelteSortOrder: 'none',
  overrides: [{ files: '*.svelte', options: { parser: 'svelte' } }],
};
