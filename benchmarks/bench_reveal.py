"""What a reveal curve costs, counted in full-bag inferences of the same classifier.

Paper presets and the official TransMIL, N = 1024 tiles, D = 1536 features, all counts 1..256. A
full-bag inference is the plain forward pass: for TransMIL every layer on every token. (FOCI's own
forward pass computes only the CLS token in the last layer; the column "own" counts in that cheaper
unit.)
"""

from __future__ import annotations

import argparse

import torch

import foci
from classifiers import EVERY, created, plain
from foci.backbones.models._pooled import PooledBackbone
from foci.reveal import EmbeddedBag, Revealer
from foci.studies.cells import peak_mb
from timing import in_units

N, D, K = 1024, 1536, 256
COLUMNS = (
    "engine",
    "own",
    "2nd ranking",
    "reference",
    "peak MiB",
    "greedy 32",
    "deletion 5 K",
    "both 256",
    "2nd both",
)


@torch.no_grad()
def main() -> None:
    """Print one row per classifier."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--skip-reference", action="store_true")
    parser.add_argument("--only", nargs="+", default=EVERY)
    options = parser.parse_args()
    torch.manual_seed(0)
    features = torch.randn(N, D)
    order, other = torch.randperm(N), torch.randperm(N)
    print(f"{'classifier':17s} " + " ".join(f"{c:>12s}" for c in COLUMNS))
    for name in options.only:
        row(name, features, order, other, options)


def row(
    name: str,
    features: torch.Tensor,
    order: torch.Tensor,
    other: torch.Tensor,
    options: argparse.Namespace,
) -> None:
    """Everything in one process; the peak first, while no memory has been used before."""
    model = created(name, D).eval()
    model(features)
    revealer = Revealer(model)

    def curve() -> None:
        revealer.open(features).curve(order)

    def own() -> None:
        model(features)

    def every_token() -> None:
        plain(model, features)

    def greedy() -> None:
        foci.rankings.score("greedy-insertion", model, features, rounds=32)

    def both() -> None:
        insert_and_delete(revealer.open(features), order)

    peak = peak_mb(curve)
    opened = revealer.open(features)
    opened.curve(order)  # embeds the bag
    slow = not isinstance(model, PooledBackbone)
    repeats = 3 if slow else options.repeats
    cells = [
        in_units(curve, every_token, repeats),
        in_units(curve, own, repeats),
        in_units(lambda: opened.curve(other), every_token, repeats),
        float("nan")
        if options.skip_reference
        else in_units(
            lambda: foci.reveal.curve(model, features, order, engine="reference"), every_token, 1
        ),
        peak,
        float("nan") if slow else in_units(greedy, every_token, repeats),
        in_units(lambda: delete(opened, order), every_token, repeats),
    ]
    if slow:
        cells += 2 * [float("nan")]
    else:
        again = in_units(lambda: insert_and_delete(opened, other), every_token, repeats)
        cells += [in_units(both, every_token, repeats), again]
    print(f"{name:17s} " + " ".join(f"{c:12.2f}" for c in cells), flush=True)


def delete(opened: EmbeddedBag, order: torch.Tensor) -> None:
    """The paper's five deletion counts."""
    opened.curve(order, ks=[16, 32, 64, 128, 256], direction="delete")


def insert_and_delete(opened: EmbeddedBag, order: torch.Tensor) -> None:
    """Every count in both directions."""
    opened.curve(order, range(1, K + 1))
    opened.curve(order, range(1, K + 1), "delete")


if __name__ == "__main__":
    main()
