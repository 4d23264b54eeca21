"""What a ranking costs, in full-bag inferences of the same classifier.

CPU time of one thread, 1,024 tiles of width 1,536, embedding included. Greedy searches run to 32
rounds. Pooling classifiers of the paper must stay below 8; give names to measure others.
"""

from __future__ import annotations

import sys

import torch

from foci import backbones, rankings
from foci.backbones.models._pooled import PooledBackbone
from timing import cpu_seconds

TILES, WIDTH, LIMIT = 1024, 1536, 8.0
NAMES = ("native", "single-tile", "evidence", "leave-one-out",
         "gradient-x-input", "greedy-insertion", "greedy-deletion")  # fmt: skip


def main(chosen: list[str]) -> None:
    """Print one row per classifier."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    features = torch.randn(TILES, WIDTH)
    names = tuple(chosen) or NAMES
    print("full-bag inferences per ranking".ljust(18), *(name.rjust(22) for name in names))
    for backbone in backbones.available():
        if "paper" not in backbones.presets(backbone):
            continue
        model = backbones.create(backbone, d_in=WIDTH, n_classes=2).eval()
        if not isinstance(model, PooledBackbone):
            continue
        with torch.no_grad():
            inference = cpu_seconds(lambda model=model: model(features))
        costs = [
            cpu_seconds(lambda model=model, name=name: rankings.score(name, model, features))
            / inference
            for name in names
        ]
        print(backbone.ljust(31), *(f"{cost:22.2f}" for cost in costs))
        if not chosen:
            assert max(costs) < LIMIT, f"{backbone}: {max(costs):.1f} inferences"


if __name__ == "__main__":
    main(sys.argv[1:])
