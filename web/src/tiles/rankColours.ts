/**
 * Colour of a tile by its rank. It runs the same way in light and dark: the first tiles are blue
 * and stand out most, later ones turn green and fade towards the page. Lightness changes evenly,
 * so that ranks can be told apart in grey and with any colour vision.
 */

type Colour = [number, number, number];

// Nine stops of even lightness, first to last, with linear interpolation between them.
const ON_LIGHT: Colour[] = [
  [42, 31, 157],
  [2, 77, 153],
  [0, 106, 149],
  [5, 131, 153],
  [11, 157, 157],
  [25, 183, 153],
  [114, 200, 146],
  [171, 215, 148],
  [220, 230, 161],
];
const ON_DARK: Colour[] = [
  [162, 207, 255],
  [82, 197, 253],
  [40, 183, 213],
  [16, 166, 172],
  [31, 147, 133],
  [49, 127, 98],
  [59, 106, 68],
  [63, 85, 43],
  [60, 65, 25],
];

/** Channels of a tile's colour by its rank (1 is first), on a log scale up to `kMax`. */
export function rankChannels(rank: number, kMax: number, dark: boolean): Colour {
  return shareChannels(Math.log(Math.max(rank, 1)) / Math.log(Math.max(kMax, 2)), dark);
}

/** The same by the place on that scale: 0 is the first tile, 1 the last. */
export function shareChannels(share: number, dark: boolean): Colour {
  const stops = dark ? ON_DARK : ON_LIGHT;
  const place = Math.min(share, 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const part = place - low;
  return stops[low].map((from, i) =>
    Math.round(from + part * (stops[low + 1][i] - from)),
  ) as Colour;
}

/** The same as CSS. `dark`: on a dark page; pictures of tissue are light in either theme. */
export function rankColour(rank: number, kMax: number, dark: boolean): string {
  return `rgb(${rankChannels(rank, kMax, dark).join(",")})`;
}
