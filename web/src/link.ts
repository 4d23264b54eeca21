/** Deep links: which slide is open, at which count, under which two rankings. */

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
