import { expect, test } from "vitest";
import { logAxis } from "../../src/dots/logAxis";
import { spread } from "../../src/dots/places";

test("a log axis gives every doubling the same room and has a lane beyond", () => {
  const axis = logAxis(256, 0, 1000, "none");
  expect(axis.at(1)).toBe(0);
  expect(axis.at(4) - axis.at(2)).toBeCloseTo(axis.at(256) - axis.at(128));
  expect(axis.at(256)).toBeCloseTo(900);
  expect(axis.at(null)).toBe(1000);
  expect(axis.ticks.map((tick) => tick.label)).toEqual([
    "1",
    "2",
    "4",
    "8",
    "16",
    "32",
    "64",
    "128",
    "256",
    "none",
  ]);
  expect(logAxis(256, 0, 120, null).ticks.map((tick) => tick.label)).toEqual(["1", "8", "64"]);
  expect(logAxis(256, 300, 0, null).at(256)).toBe(0);
});

test("dots on one spot are spread, all kept, near it", () => {
  const same = Array.from({ length: 150 }, (_, id) => ({ id, x: 10, y: 20 }));
  const moved = spread([...same, { id: 150, x: 200, y: 200 }], 4.5);
  expect(moved.length).toBe(151);
  expect(new Set(moved.map(({ x, y }) => `${x},${y}`)).size).toBe(151);
  for (const { x, y } of moved.slice(0, 150)) expect(Math.hypot(x - 10, y - 20)).toBeLessThan(21);
  expect(moved[150]).toEqual({ id: 150, x: 200, y: 200 });
});
