/** Picture of the slide behind its tiles. */

import type { SlideDetail } from "../page/payload";
import type { TileLayout } from "./tileLayout";

export interface Tissue {
  /** What the picture covers, in the unit of the tile corners. */
  x: number;
  y: number;
  width: number;
  height: number;
  /** Decoded in the background; null until then. */
  image: ImageBitmap | null;
  ready: Promise<void>;
}

export function tissueOf({ tissue, placement }: SlideDetail): Tissue | null {
  if (!tissue || !placement) return null;
  const [x, y, width, height] = tissue.box;
  const { origin, step } = placement;
  const shown: Tissue = {
    x: (x - origin[0]) / step,
    y: (y - origin[1]) / step,
    width: width / step,
    height: height / step,
    image: null,
    ready: Promise.resolve(),
  };
  const bytes = Uint8Array.from(atob(tissue.jpeg), (sign) => sign.charCodeAt(0));
  // A bitmap from bytes asks no server, so that the page's policy need not allow images.
  shown.ready = createImageBitmap(new Blob([bytes], { type: "image/jpeg" })).then(
    (image) => void (shown.image = image),
    () => undefined,
  );
  return shown;
}

export function paintTissue(
  context: CanvasRenderingContext2D,
  { scale, shift }: TileLayout,
  { image, x, y, width, height }: Tissue,
): void {
  if (image === null) return;
  context.drawImage(image, shift + x * scale, y * scale, width * scale, height * scale);
}
