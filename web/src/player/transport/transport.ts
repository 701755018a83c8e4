// The transport interface: sends reliable and unreliable messages, and delivers received bytes.

export type TransportKind = 'webtransport' | 'websocket';

export interface TransportHandlers {
  /** A whole message: one datagram, or one WebSocket message. */
  packet(bytes: Uint8Array): void;
  /** The next bytes of the reliable stream. */
  stream(bytes: Uint8Array): void;
  /** The connection ended and was not closed by us. Called at most once. */
  closed(reason: string): void;
}

export interface Transport {
  readonly kind: TransportKind;
  sendReliable(bytes: Uint8Array): void;
  sendDatagram(bytes: Uint8Array): void;
  close(): void;
}

/** Thrown when no transport could be opened; the message can be shown. */
export class ConnectError extends Error {
  override name = 'ConnectError';
}
