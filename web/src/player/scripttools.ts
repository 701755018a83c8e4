// The parts of the script host that need three.js: loaded together with the VM, not with the page.
import type { CameraSource } from './scriptcamera';
import { ScriptCamera } from './scriptcamera';
import { KnownWorld, type KnownSource } from './replica';
import type { CameraHost, WorldHost } from './luau/host';

export interface Tools {
  camera: CameraHost;
  world: WorldHost;
}

export const makeTools = (source: CameraSource & KnownSource): Tools => ({
  camera: new ScriptCamera(source),
  world: new KnownWorld(source),
});
