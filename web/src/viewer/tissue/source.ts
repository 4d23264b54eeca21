/** Where OpenSeadragon gets the pictures of a slide. */

import type { OpenSlide } from "../openSlide";
import { partUrl } from "../server";

const BLANK = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
const WIDTH = 4096;

/** The server, or one blank picture of the right shape for a slide without an image. */
export function tileSource({ number, pyramid, height }: OpenSlide): object {
  if (pyramid)
    return {
      width: pyramid.width,
      height: pyramid.height,
      tileSize: pyramid.side,
      tileOverlap: 0,
      minLevel: pyramid.coarsest,
      maxLevel: pyramid.finest,
      getTileUrl: (level: number, x: number, y: number) => partUrl(number, pyramid, level, x, y),
    };
  const tall = Math.max(1, Math.round(WIDTH * height));
  const level = Math.ceil(Math.log2(Math.max(WIDTH, tall)));
  return {
    width: WIDTH,
    height: tall,
    tileSize: Math.max(WIDTH, tall),
    tileOverlap: 0,
    minLevel: level,
    maxLevel: level,
    getTileUrl: () => BLANK,
  };
}
