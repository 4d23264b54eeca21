"""The same reveal curve by the loop of other software, side by side in one run.

The loop: for every count a mask over the whole bag, and one forward pass of the whole bag from its
features, unrevealed tiles masked out. Paper presets and the official TransMIL, 1,024 tiles x 1,536
features, counts 1..256. Both curves are compared. The unit is one forward pass of the same
classifier; times are processor time on one thread, taken in turns. For TransMIL the loop runs at
every 32nd count, for the official one at every 8th, and its cost there is taken for the counts
between.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

import foci
from classifiers import EVERY, created
from foci.backbones import Backbone

TILES, WIDTH, COUNTS = 1024, 1536, 256
STRIDE = {"transmil": 32, "transmil:official": 8}


@torch.no_grad()
def main() -> None:
    """Print one row per classifier."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=EVERY)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'classifier':17s} {'loop':>9s} {'FOCI':>9s} {'ratio':>9s} {'largest difference':>20s}")
    for name in options.only:
        row(name, options.repeats)


def row(name: str, repeats: int) -> None:
    """Time both, and compare their probabilities."""
    torch.manual_seed(0)
    model = created(name, WIDTH).eval().requires_grad_(False)
    features, order = torch.randn(TILES, WIDTH), torch.randperm(TILES)
    every = STRIDE.get(name, 1)
    counts = list(range(every, COUNTS + 1, every))
    model(features)
    costs = []
    for _ in range(repeats):
        one = (seconds(lambda: model(features))[0] + seconds(lambda: model(features))[0]) / 2
        slow, looped = seconds(lambda: masked_loop(model, features, order, counts))
        fast, curve = seconds(lambda: foci.reveal.curve(model, features, order))
        costs.append((every * slow / one, fast / one))
    loop, own = sorted(costs)[len(costs) // 2]
    gap = float((looped - curve[torch.tensor(counts) - 1]).abs().max())
    print(f"{name:17s} {loop:9.1f} {own:9.2f} {loop / own:9.1f} {gap:20.1e}", flush=True)


def masked_loop(model: Backbone, features: Tensor, order: Tensor, counts: list[int]) -> Tensor:
    """Class probabilities, by one masked forward pass of the whole bag per count."""
    curve = []
    for count in counts:
        mask = torch.zeros(1, len(features), dtype=torch.bool)
        mask[0, order[:count]] = True
        logits = model.aggregate(model.embed(features)[None], mask)
        curve.append(torch.softmax(logits[0].double(), dim=-1))
    return torch.stack(curve)


def seconds(function: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Processor time of a call, and its result."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()
