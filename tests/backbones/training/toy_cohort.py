"""A cohort that is learnt in seconds: the class shows in one tile of every bag."""

from pathlib import Path

import numpy as np

from foci import Cohort
from tests.bags import feature_files as write

D_IN = 8


def toy_cohort(
    folder: Path, n: int = 24, tiles: int = 9, *, seed: int = 0, classes: str = "ab"
) -> Cohort:
    rng = np.random.default_rng(seed)
    rows = ["slide_id,case_id,label,split"]
    for i in range(n):
        label = i % len(classes)
        x = rng.normal(size=(tiles - i % 3, D_IN)).astype(np.float32)
        x[rng.integers(len(x)), label] += 6
        write.trident(folder / "features" / f"s{i:02d}.h5", x, write.grid(len(x)))
        split = "train" if i < n // 2 else "val" if i < 3 * n // 4 else "test"
        rows.append(f"s{i:02d},c{i},{classes[label]},{split}")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    return Cohort.read(folder / "features", folder / "labels.csv", cache=False, keep=100)
