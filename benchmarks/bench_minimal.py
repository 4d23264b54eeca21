"""What the proven minimum K* costs, in full-bag inferences of ABMIL, and how it grows.

CPU time of one thread, 1,024 tiles of width 1,536, bags embedded; getting the parts (attention and
evidence of the tiles) stands apart. Each classifier is fitted for a moment to bags whose class is
carried by 2 % of the tiles, so that K* is neither 1 nor most of the tiles. Then the same up to
100,000 tiles, per tile and logarithm of their number. T5 takes one step of its search, as in an
audit; every further one costs about half as much again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from classifiers import fitted
from foci import backbones
from foci.audits.reveal import RELU_STEPS
from foci.backbones import Backbone
from foci.metrics import minimal_decisive
from timing import cpu_seconds

TILES, WIDTH, GROWTH = 1024, 1536, (1_000, 10_000, 100_000)
PRESETS = {
    "T2": ("abmil", "official"),
    "T4 averaged": ("acmil", "paper"),
    "T4 own": ("clam-mb", "official"),
    "T5": ("abmil", "paper"),
    "best tile": ("max-mil", "official"),
}
LIMITS = {"T2": 0.3, "T4 averaged": 2.0, "T4 own": 2.0, "T5": 2.0, "best tile": 0.3}


def trained(name: str, preset: str) -> tuple[Backbone, Callable[[int], Tensor]]:
    """A classifier fitted to small bags whose class is carried by a few tiles, and such bags."""
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    direction = torch.randn(WIDTH, generator=generator)
    direction *= 12 / direction.norm()

    def bag(n: int, label: int = 1) -> Tensor:
        x = torch.randn(n, WIDTH, generator=generator)
        witnesses = max(1, n // 50)
        x[:witnesses] += direction if label else -direction
        return x

    model = backbones.create(name, preset, d_in=WIDTH, n_classes=2)
    return fitted(model, lambda label: bag(256, label), 60, 3e-4), bag


def main() -> None:
    """Print costs and growth; fail where a limit is passed."""
    torch.set_num_threads(1)
    reference = backbones.create("abmil", "paper", d_in=WIDTH, n_classes=2).eval()
    features = torch.randn(TILES, WIDTH)
    with torch.no_grad():
        unit = cpu_seconds(lambda: reference(features))
    print(f"{TILES} tiles of width {WIDTH}; one inference of ABMIL: {1e3 * unit:.1f} ms of one CPU")
    print(f"{'theorem':12} {'K*':>6} {'kind':12} {'parts':>7} {'K*':>7}   growth: us per N log2 N")
    late = []
    for theorem, (name, preset) in PRESETS.items():
        model, bag = trained(name, preset)
        tokens = model.embed(bag(TILES))
        target = int(model.aggregate(tokens[None]).argmax())
        parts = model.parts(tokens)
        steps = RELU_STEPS if theorem == "T5" else None
        least = partial(minimal_decisive, target=target, tolerance=1e-5, steps=steps)
        found = least(parts)
        apart = cpu_seconds(partial(model.parts, tokens)) / unit
        cost = cpu_seconds(partial(least, parts)) / unit
        growth = []
        for n in GROWTH:
            seconds = cpu_seconds(partial(least, model.parts(model.embed(bag(n)))), repeats=1)
            growth.append(f"{n:,}: {1e6 * seconds / (n * math.log2(n)):.3f}")
        print(f"{theorem:12} {found.k!s:>6} {found.kind:12} {apart:7.2f} {cost:7.2f}   "
              + ", ".join(growth), flush=True)  # fmt: skip
        if cost > LIMITS[theorem]:
            late.append(f"{theorem}: {cost:.2f} inferences")
    assert not late, late


if __name__ == "__main__":
    main()
