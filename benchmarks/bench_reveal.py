"""What a reveal curve costs, counted in full-bag inferences of the same classifier.

Paper presets, N = 1024 tiles, D = 1536 features, all counts 1..256. A full-bag inference is the
plain forward pass: for TransMIL every layer on every token. (FOCI's own forward pass computes only
the CLS token in the last layer; the column "own" counts in that cheaper unit.)
"""

from __future__ import annotations

import argparse

import torch

import foci
from foci.backbones.models.transmil import TransMIL
from foci.reveal import EmbeddedBag, Revealer, refined_curves
from foci.studies.cells.memory import peak_mb
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
    "refined 10",
    "refined none",
)
FOUND_AT_10 = 6 * [False] + [True, False, True]
"""A condition that first holds at 10 tiles, at the counts 1, 2, 3, 4, 6, 8, 12, 9, 10."""


@torch.no_grad()
def main() -> None:
    """Print one row per classifier."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--skip-reference", action="store_true")
    parser.add_argument("--only", nargs="+", default=foci.backbones.available())
    options = parser.parse_args()
    torch.manual_seed(0)
    features = torch.randn(N, D)
    order, other = torch.randperm(N), torch.randperm(N)
    print(f"{'classifier':12s} " + " ".join(f"{c:>12s}" for c in COLUMNS))
    for name in options.only:
        if "paper" in foci.backbones.presets(name):
            row(name, features, order, other, options)


def row(
    name: str,
    features: torch.Tensor,
    order: torch.Tensor,
    other: torch.Tensor,
    options: argparse.Namespace,
) -> None:
    """Everything in one process; the peak first, while no memory has been used before."""
    model = foci.backbones.create(name, d_in=D, n_classes=2).eval()
    model(features)
    revealer = Revealer(model)

    def curve() -> None:
        revealer.open(features).curve(order)

    def own() -> None:
        model(features)

    def plain() -> None:
        if isinstance(model, TransMIL):
            model.readout(model.encode(model.embed(features)[None])[:, 0])
        else:
            model(features)

    def greedy() -> None:
        foci.rankings.score("greedy-insertion", model, features, rounds=32)

    def both() -> None:
        revealer.open(features).both_curves(order, range(1, K + 1), range(1, K + 1))

    peak = peak_mb(curve)
    opened = revealer.open(features)
    opened.curve(order)  # embeds the bag
    slow = isinstance(model, TransMIL)
    repeats = 3 if slow else options.repeats
    cells = [
        in_units(curve, plain, repeats),
        in_units(curve, own, repeats),
        in_units(lambda: opened.curve(other), plain, repeats),
        float("nan")
        if options.skip_reference
        else in_units(
            lambda: foci.reveal.curve(model, features, order, engine="reference"), plain, 1
        ),
        peak,
        float("nan") if slow else in_units(greedy, plain, repeats),
        in_units(lambda: delete(opened, order), plain, repeats),
    ]
    unknown = 2 * [float("nan")]
    if slow:
        refined = [
            in_units(lambda a=a: refine(revealer.open(features), order, a), plain, repeats)
            for a in (FOUND_AT_10, [])
        ]
        cells += unknown + refined
    else:
        counts = range(1, K + 1)
        again = in_units(lambda: opened.both_curves(other, counts, counts), plain, repeats)
        cells += [in_units(both, plain, repeats), again, *unknown]
    print(f"{name:12s} " + " ".join(f"{c:12.2f}" for c in cells), flush=True)


def delete(opened: EmbeddedBag, order: torch.Tensor) -> None:
    """The paper's five deletion counts."""
    opened.curve(order, ks=[16, 32, 64, 128, 256], direction="delete")


def refine(opened: EmbeddedBag, order: torch.Tensor, answers: list[bool]) -> None:
    """The grid with refinement, for a condition with these answers and False from then on."""
    left = iter(answers)
    refined_curves(opened, order, [lambda kept, removed: next(left, False)])


if __name__ == "__main__":
    main()
