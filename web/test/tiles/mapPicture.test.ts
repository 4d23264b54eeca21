import { describe, expect, it } from "vitest";
import { borders } from "../../src/tiles/mapPicture";

const around = (width: number, deciding: number[]) =>
  borders({ width, height: 3, levels: [], deciding });

describe("the outline of the deciding tiles", () => {
  it("has four sides around one tile", () => {
    expect(around(3, [4])).toEqual([
      [1, 1, 2, 1],
      [1, 2, 2, 2],
      [1, 1, 1, 2],
      [2, 1, 2, 2],
    ]);
  });

  it("has no line between two tiles, and none to the tile on the other end of the row above", () => {
    expect(around(3, [3, 4])).toHaveLength(6);
    expect(around(3, [2, 3])).toHaveLength(8);
  });
});
