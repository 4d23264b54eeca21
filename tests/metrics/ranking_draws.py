"""Random rankings, with and without truth, for the trials of the metrics."""

from typing import Any

import numpy as np
from numpy.random import Generator


def two_rankings(rng: Generator) -> dict[str, Any]:
    first, second = rng.integers(0, 5, size=(2, rng.integers(1, 9))).astype(float)
    return {"first": first, "second": second}


def two_rankings_at_k(rng: Generator) -> dict[str, Any]:
    drawn = two_rankings(rng)
    return drawn | {"k": int(rng.integers(1, len(drawn["first"]) + 1))}


def marked(rng: Generator, *, at_k: bool) -> dict[str, Any]:
    n = int(rng.integers(1, 7))
    truth = rng.permutation(np.arange(n) < rng.integers(1, n + 1)).astype(int)
    drawn = {"scores": rng.integers(0, 4, size=n).astype(float), "truth": truth}
    return drawn | ({"k": int(rng.integers(1, n + 1))} if at_k else {})
