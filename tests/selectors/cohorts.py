"""Small cohorts whose evidence is known."""

from pathlib import Path

import numpy as np

from foci.bags import Cohort
from tests.bags import feature_files as write

D = 32


def planted(folder: Path, slides: int = 12, d: int = D, tiles: tuple[int, int] = (4, 15)) -> Cohort:
    """Bags of noise; the first two tiles of a bag of class c carry 3 in column c."""
    rng = np.random.default_rng(7)
    rows = ["slide_id,case_id,label,split"]
    for i in range(slides):
        n, label = int(rng.integers(*tiles)), i % 2
        x = 0.1 * rng.standard_normal((n, d)).astype(np.float32)
        x[:2, label] += 3.0
        write.trident(folder / "features" / f"s{i}.h5", x, write.grid(n))
        rows.append(f"s{i},c{i},{'ab'[label]},{'val' if i >= 2 * slides // 3 else 'train'}")
    (folder / "labels.csv").write_text("\n".join(rows))
    return Cohort.read(folder / "features", folder / "labels.csv", cache=False, keep=64)
