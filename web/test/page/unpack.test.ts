import { expect, test } from "vitest";
import type { Packed } from "../../src/page/payload";
import { unpack, unpackProbabilities } from "../../src/page/unpack";

// Written by foci.reports.data.packing, so that both sides agree on the format.
const FROM_PYTHON: [Packed, number[]][] = [
  [
    [2, 3, "OQ=="],
    [1, 2, 3],
  ],
  [
    [10, 5, "AQgAwP8BAQ=="],
    [1, 2, 0, 1023, 257],
  ],
  [
    [12, 4, "AAD/AQj/"],
    [0, 4080, 2049, 4080],
  ],
  [
    [17, 2, "//8DAAA="],
    [131071, 1],
  ],
  [
    [1, 9, "VQE="],
    [1, 0, 1, 0, 1, 0, 1, 0, 1],
  ],
];

test.each(FROM_PYTHON)("unpacks %j", (packed, numbers) => {
  expect([...unpack(packed)]).toEqual(numbers);
});

test("every width from 1 to 24 bits comes back", () => {
  for (let bits = 1; bits <= 24; bits++) {
    const numbers = Array.from({ length: 13 }, (_, i) => (i * 2654435761) % 2 ** bits);
    const reversed = (text: string) => [...text].reverse().join("");
    const stream = numbers.map((n) => reversed(n.toString(2).padStart(bits, "0"))).join("");
    const bytes = stream.match(/.{1,8}/g)!.map((part) => parseInt(reversed(part), 2));
    const text = btoa(String.fromCharCode(...bytes));
    expect([...unpack([bits, 13, text])]).toEqual(numbers);
  }
});

test("probabilities run from 0 to 1", () => {
  expect(unpackProbabilities([8, 3, "AIH/"])).toEqual([0, 129 / 255, 1]);
});
