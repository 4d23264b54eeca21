import { expect, test } from "vitest";
import { formatLink, parseLink, startingPair } from "../../src/page/link";

test("links carry any name through and back", () => {
  for (const slide of ["a b", "<script>&k=9</script>", 'x"#%', "ä/ö"]) {
    const link = { slide, k: 12, left: "native", right: "selector-0" };
    expect(parseLink(formatLink(link))).toEqual(link);
  }
  const nothing = { slide: null, k: null, left: null, right: null };
  expect(parseLink("")).toEqual(nothing);
  expect(parseLink("#answers")).toEqual(nothing);
  expect(parseLink("#slide=a&k=-3").k).toBeNull();
  expect(parseLink("#slide=a&k=no").k).toBeNull();
});

test("two rankings stand beside each other, whatever was run", () => {
  const none = { left: null, right: null };
  const columns = ["native", "selector-0", "selector-1"];
  expect(startingPair(columns, "native", "selector-0", none)).toEqual(["native", "selector-0"]);
  expect(startingPair(columns, "native", "native", none)).toEqual(["native", "selector-0"]);
  expect(
    startingPair(columns, "native", "selector-0", { left: "selector-1", right: "gone" }),
  ).toEqual(["selector-1", "selector-0"]);
  expect(startingPair(["native"], "native", "native", none)).toEqual(["native", "native"]);
});
