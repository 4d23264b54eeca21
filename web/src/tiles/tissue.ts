/** Picture of the slide behind its tiles. */

import type { SlideMap, TilePlacement } from "../page/payload";
import type { TileLayout } from "./tileLayout";

export interface Tissue {
  /** What the picture covers. */
  x: number;
  y: number;
  width: number;
  height: number;
  /** Decoded in the background; null until then. */
  image: ImageBitmap | null;
  ready: Promise<void>;
}

/** The picture of a slide, in the unit of its corners, or in steps of its placement. */
export function tissueOf(
  map: Pick<SlideMap, "tissue"> | null | undefined,
  placement?: TilePlacement | null,
): Tissue | null {
  if (!map?.tissue || placement === null) return null;
  const [x, y, width, height] = map.tissue.box;
  const { origin, step } = placement ?? { origin: [0, 0], step: 1 };
  const shown: Tissue = {
    x: (x - origin[0]) / step,
    y: (y - origin[1]) / step,
    width: width / step,
    height: height / step,
    image: null,
    ready: Promise.resolve(),
  };
  const bytes = Uint8Array.from(atob(map.tissue.jpeg), (sign) => sign.charCodeAt(0));
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
