import { expect, test } from "vitest";
import { rankChannels, rankColour } from "../../src/tiles/rankColours";

const RANKS = Array.from({ length: 65 }, (_, i) => 256 ** (i / 64));

function luminance(channels: number[]): number {
  const linear = channels.map((v) =>
    v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}
function contrast(a: number, b: number): number {
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

test("the first tile stands out most, and every later one less, in light and dark", () => {
  for (const [dark, page] of [
    [false, [246, 247, 249]],
    [true, [28, 33, 40]],
  ] as const) {
    const against = RANKS.map((rank) =>
      contrast(luminance(rankChannels(rank, 256, dark)), luminance([...page])),
    );
    expect(against[0]).toBeGreaterThan(7);
    for (let i = 1; i < against.length; i++) expect(against[i]).toBeLessThan(against[i - 1]);
  }
});

test("the hue runs from blue to green in both themes", () => {
  for (const dark of [false, true]) {
    const [r, g, b] = rankChannels(1, 256, dark);
    expect(b).toBeGreaterThan(Math.max(r, g));
    const late = rankChannels(256, 256, dark);
    expect(late[1]).toBeGreaterThan(late[2] + 30);
  }
});

test("ranks beyond the budget and a budget of one tile are defined", () => {
  expect(rankColour(300, 256, false)).toBe(rankColour(256, 256, false));
  expect(rankColour(1, 1, true)).toBe("rgb(162,207,255)");
});
