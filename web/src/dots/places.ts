/** Places of dots that would cover each other: on a spiral. */

/** Dots on one spot lie on a spiral around it, so that each can be seen and picked. */
export function spread<D extends { x: number; y: number }>(
  dots: D[],
  radius: number,
  limit = 20,
): D[] {
  const spots = new Map<string, D[]>();
  for (const dot of dots) {
    const key = `${dot.x.toFixed(1)},${dot.y.toFixed(1)}`;
    spots.set(key, [...(spots.get(key) ?? []), dot]);
  }
  return [...spots.values()].flatMap((group) => {
    const step = Math.min(radius * 1.25, limit / Math.sqrt(group.length));
    return group.map((dot, i) => {
      const [angle, reach] = [i * GOLDEN, step * Math.sqrt(i)];
      return { ...dot, x: dot.x + reach * Math.cos(angle), y: dot.y + reach * Math.sin(angle) };
    });
  });
}

const GOLDEN = Math.PI * (3 - Math.sqrt(5));
