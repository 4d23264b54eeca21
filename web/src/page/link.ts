/** Deep links: the open slide, its number of tiles, and its two rankings in the URL fragment. */

export interface Link {
  slide: string | null;
  k: number | null;
  left: string | null;
  right: string | null;
}

export function parseLink(hash: string): Link {
  const values = new URLSearchParams(hash.replace(/^#/, ""));
  const k = Number(values.get("k"));
  return {
    slide: values.get("slide"),
    k: Number.isInteger(k) && k > 0 ? k : null,
    left: values.get("left"),
    right: values.get("right"),
  };
}

export function formatLink(link: Link): string {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(link))
    if (value !== null) values.set(name, String(value));
  return `#${values}`;
}

/** The two rankings that a slide opens with: as linked, otherwise the map and the headline. */
export function startingPair(
  columns: string[],
  map: string,
  headline: string,
  link: Pick<Link, "left" | "right">,
): [string, string] {
  const known = (name: string | null) => (name !== null && columns.includes(name) ? name : null);
  const left = known(link.left) ?? known(map) ?? columns[0];
  const beside = headline === left ? null : known(headline);
  const right = known(link.right) ?? beside ?? columns.find((c) => c !== left) ?? left;
  return [left, right];
}
