"""Slides with a time and an event, a number and labels, which known tiles carry."""

from pathlib import Path

import numpy as np

from foci import Cohort
from foci.bags.importers import Outcomes


def planted(folder: Path, columns: Outcomes, slides: int = 60) -> tuple[Cohort, dict[str, int]]:
    """Slides whose first tiles, and no others, carry a risk: dimension 1 of tiles that stand out
    in dimension 0, which the model attends to."""
    rng, sizes, rows = np.random.default_rng(0), {}, []
    (folder / "features").mkdir()
    for i in range(slides):
        name, n, k = f"s{i:02d}", int(rng.integers(60, 120)), int(rng.integers(4, 13))
        side = 1 if i % 2 else -1
        x = rng.normal(scale=0.1, size=(n, 8))
        x[:, 1] -= 0.15 * side  # the rest leans to the other side
        x[:k, 0], x[:k, 1] = 1.0, side * rng.uniform(0.8, 1.2, size=k)
        np.save(folder / "features" / f"{name}.npy", x.astype(np.float32))
        split = ("train", "val", "test", "test")[i // 2 % 4]
        time, censored = rng.exponential(np.exp(-side)) + 0.01, rng.exponential(3) + 0.01
        seen, value = int(time <= censored), 2 * side + rng.normal(scale=0.1)
        rows.append(f"{name},p{i},{split},{min(time, censored)},{seen},{value},{int(side > 0)}")
        sizes[name] = k
    table = folder / "labels.csv"
    table.write_text("\n".join(["slide_id,case_id,split,days,died,score,high", *rows]) + "\n")
    return Cohort.read(folder / "features", table, outcomes=columns, cache=False), sizes
