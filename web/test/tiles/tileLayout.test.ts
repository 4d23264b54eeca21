import { expect, test } from "vitest";
import { fit, gridCorners, jaccard, neighbour, tileAt } from "../../src/tiles/tileLayout";

const corners = { x: [0, 1, 5], y: [0, 2, 1], side: 1 };

test("tiles fill the width, all with one scale", () => {
  const layout = fit(corners, 120, 400);
  expect(layout.side).toBe(20);
  expect([...layout.left]).toEqual([0, 20, 100]);
  expect([...layout.top]).toEqual([0, 40, 20]);
  expect(layout.height).toBe(60);
});

test("a tall slide is bounded by the height and stands in the middle", () => {
  const layout = fit({ x: [0, 0], y: [0, 9], side: 1 }, 300, 100);
  expect(layout.side).toBe(10);
  expect(layout.left[0]).toBe(145);
  expect(layout.height).toBe(100);
});

test("a single tile does not fill the page", () => {
  expect(fit({ x: [0], y: [0], side: 1 }, 500, 500).side).toBe(40);
});

test("tiles that overlap keep their size", () => {
  const layout = fit({ x: [0, 1, 2], y: [0, 0, 0], side: 2 }, 80, 400);
  expect(layout.side).toBe(40);
  expect([...layout.left]).toEqual([0, 20, 40]);
});

test("points find their tile, or glass", () => {
  const layout = fit(corners, 120, 400);
  expect(tileAt(layout, 5, 5)).toBe(0);
  expect(tileAt(layout, 39.9, 59.9)).toBe(1);
  expect(tileAt(layout, 119, 21)).toBe(2);
  expect(tileAt(layout, 60, 5)).toBeNull();
});

test("without coordinates tiles stand in rows, in bag order", () => {
  const { x, y } = gridCorners(10);
  expect([...(x as number[])]).toEqual([0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
  expect([...(y as number[])]).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
  expect(gridCorners(1)).toEqual({ x: [0], y: [0], side: 1 });
});

test("overlap of the first k", () => {
  expect(jaccard([1, 2, 3], [3, 2, 1], 1)).toBe(0);
  expect(jaccard([1, 2, 3], [3, 2, 1], 2)).toBeCloseTo(1 / 3);
  expect(jaccard([1, 2, 3], [3, 2, 1], 3)).toBe(1);
});

test("arrow keys go to the nearest tile in their direction, and stop at the edge", () => {
  const layout = fit(gridCorners(10), 200, 400);
  const columns = Math.max(...Array.from(gridCorners(10).x)) + 1;
  expect(neighbour(layout, 0, "ArrowRight")).toBe(1);
  expect(neighbour(layout, 1, "ArrowLeft")).toBe(0);
  expect(neighbour(layout, 0, "ArrowDown")).toBe(columns);
  expect(neighbour(layout, columns, "ArrowUp")).toBe(0);
  expect(neighbour(layout, 0, "ArrowUp")).toBe(0);
  const sparse = fit(corners, 120, 400);
  expect(neighbour(sparse, 0, "ArrowRight")).toBe(1);
  expect(neighbour(sparse, 1, "ArrowRight")).toBe(2);
});
