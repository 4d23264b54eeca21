/** Viridis colours by rank: lightness rises evenly, so that they can be told apart in grey. */

// Eleven stops of viridis (0, 0.1, ..., 1), with linear interpolation between them.
const STOPS = [
  [68, 1, 84],
  [72, 36, 117],
  [65, 68, 135],
  [53, 95, 141],
  [42, 120, 142],
  [33, 145, 140],
  [34, 168, 132],
  [68, 191, 112],
  [122, 209, 81],
  [189, 223, 38],
  [253, 231, 37],
];

export function viridis(share: number): [number, number, number] {
  const place = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
  const low = Math.min(Math.floor(place), STOPS.length - 2);
  const part = place - low;
  return STOPS[low].map((from, i) => Math.round(from + part * (STOPS[low + 1][i] - from))) as [
    number,
    number,
    number,
  ];
}

/**
 * Colour of a tile by its rank (1 is first), on a log scale. The first tiles stand out from the
 * page: darkest on a light page, brightest on a dark one.
 */
export function rankColour(rank: number, kMax: number, dark: boolean): string {
  const share = Math.log(rank) / Math.log(Math.max(kMax, 2));
  return `rgb(${viridis(dark ? 1 - 0.85 * share : 0.93 * share).join(",")})`;
}
