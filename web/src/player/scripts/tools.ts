// The parts of the script host that need three.js: loaded together with the VM, not with the page.
import type { CameraSource } from './camera';
import { ScriptCamera } from './camera';
import { KnownWorld, type KnownSource } from '../replica/known-world';
import type { CameraHost, WorldHost } from '../luau/host';

export interface Tools {
  camera: CameraHost;
  world: WorldHost;
}

export const makeTools = (source: CameraSource & KnownSource): Tools => ({
  camera: new ScriptCamera(source),
  world: new KnownWorld(source),
});
