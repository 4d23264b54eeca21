"""What a reveal curve costs, counted in full-bag inferences of the same classifier.

Paper presets, N = 1024 tiles, D = 1536 features, all counts 1..256. A full-bag inference is the
plain forward pass: for TransMIL every layer on every token. (FOCI's own forward spares the last
layer all tokens but CLS; the column "own" counts in that cheaper unit.)
"""

from __future__ import annotations

import argparse

import torch

import foci
from foci.backbones import Backbone
from foci.backbones.transmil import TransMIL
from foci.reveal import OpenBag, Revealer
from memory import peak_mb
from timing import seconds

N, D, K = 1024, 1536, 256
COLUMNS = ("engine", "own", "2nd ranking", "reference", "peak MiB", "greedy 32", "deletion 5 K")


@torch.no_grad()
def main() -> None:
    """Print one row per classifier."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--skip-reference", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    features = torch.randn(N, D)
    order, other = torch.randperm(N), torch.randperm(N)
    print(f"{'classifier':12s} " + " ".join(f"{c:>12s}" for c in COLUMNS))
    for name in foci.backbones.available():
        if "paper" in foci.backbones.presets(name):
            row(name, features, order, other, options)


def row(
    name: str,
    features: torch.Tensor,
    order: torch.Tensor,
    other: torch.Tensor,
    options: argparse.Namespace,
) -> None:
    """Everything in one process, the unit measured before and after."""
    model = foci.backbones.create(name, d_in=D, n_classes=2).eval()
    slow = isinstance(model, TransMIL)
    repeats = 1 if slow else options.repeats
    revealer = Revealer(model)
    opened = revealer.open(features)

    def curve() -> None:
        revealer.open(features).curve(order)

    own, plain = unit(model, features, options.repeats)
    engine = seconds(curve, repeats)
    second = seconds(lambda: opened.curve(other), repeats)
    deletion = seconds(lambda: delete(opened, order), repeats)
    reference = float("nan")
    if not options.skip_reference:
        reference = seconds(
            lambda: foci.reveal.curve(model, features, order, engine="reference"), 1
        )
    greedy = float("nan")
    if not slow:
        with torch.enable_grad():
            bag = foci.Bag("bench", features.numpy())
            greedy = seconds(
                lambda: foci.rankings.score("greedy-insertion", model, bag, rounds=32), repeats
            )
    again, plain_again = unit(model, features, options.repeats)
    own, plain = (own + again) / 2, (plain + plain_again) / 2
    peak = peak_mb(curve)
    cells = (engine / plain, engine / own, second / plain, reference / plain, peak,
             greedy / plain, deletion / plain)  # fmt: skip
    print(f"{name:12s} " + " ".join(f"{c:12.2f}" for c in cells), flush=True)


def unit(model: Backbone, features: torch.Tensor, repeats: int) -> tuple[float, float]:
    """One inference: FOCI's own forward, and the plain one."""
    own = seconds(lambda: model(features), repeats)
    if not isinstance(model, TransMIL):
        return own, own
    plain = seconds(lambda: model.readout(model.encode(model.embed(features)[None])[:, 0]), repeats)
    return own, plain


def delete(opened: OpenBag, order: torch.Tensor) -> None:
    """The paper's five deletion counts."""
    opened.curve(order, ks=[16, 32, 64, 128, 256], direction="delete")


if __name__ == "__main__":
    main()
