// Frame records round-trip unchanged.
import { expect, test } from 'vitest';
import { FRAME_STRIDE } from '../../generated/layout';
import { records, setId } from './frame';

test('ids are exact, however many entities a world has had', () => {
  const ids = [1, 1_000_001, 20_000_000, 20_000_001, 0xffff_fffe]; // the last is a NaN as a float
  const frame = new Float32Array(FRAME_STRIDE * ids.length);
  ids.forEach((id, i) => setId(frame, i * FRAME_STRIDE, id));
  // A part of a larger buffer, as a view over the core's memory would be.
  const shifted = new Float32Array(frame.length + 3).subarray(3);
  new Uint8Array(shifted.buffer, shifted.byteOffset).set(new Uint8Array(frame.buffer));
  expect(Array.from(records(frame), (record) => record.id)).toEqual(ids);
  expect(Array.from(records(shifted), (record) => record.id)).toEqual(ids);
});

test('flags, kind and place', () => {
  const frame = Float32Array.from([0, 1, 7, 1 | 2 | (5 << 3), 1, 2, 3, 0, 0, 0, 1, 4, 5, 6, 0.5, -0.25]);
  setId(frame, 0, 42);
  const [record] = [...records(frame)];
  expect(record).toMatchObject({
    id: 42,
    isPlayer: true,
    definition: 7,
    grounded: true,
    own: true,
    dead: false,
    mood: 5,
    yaw: 0.5,
    pitch: -0.25,
  });
  expect([record?.position, record?.velocity]).toEqual([
    { x: 1, y: 2, z: 3 },
    { x: 4, y: 5, z: 6 },
  ]);
});
