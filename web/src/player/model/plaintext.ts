// Names and chat for display: user-generated text must not reorder the text around it.

/** Embeddings, overrides and isolates of Unicode's bidirectional algorithm. Right-to-left scripts need none of them. */
const BIDI_CONTROLS = /[\u202a-\u202e\u2066-\u2069]/g;

/** The text without characters that change the text direction. */
export const plainText = (text: string): string => text.replace(BIDI_CONTROLS, '');
