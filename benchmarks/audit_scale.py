"""A large audit: peak memory, and what the audit costs beside reading and the reveal engine.

Bags of 1,024 x 1,536 in TRIDENT's layout, ABMIL at the paper's widths, native + selector + 10
random orders, every count up to 256 and nine deletions. The plain loop reads every bag and computes
the same curves and nothing else: no hashes, no files, no summary. Both read from the bag cache.
Needs about 12 MB of disk per slide.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

import foci
from foci.audits.run import run
from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources
from foci.backbones import Backbone
from foci.bags import Cohort, Slide
from foci.progress import showing
from foci.rankings import random_controls
from foci.reveal import Revealer
from foci.studies.cells import peak_mb

TILES, WIDTH, FITTED = 1024, 1536, (60, 20)
REVEALING = "revealing slides"


def main() -> None:
    """Make the cohort, audit it, run the plain loop, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--slides", type=int, default=1000, help="slides to audit")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cohort = make_cohort(folder, options.slides)
        torch.manual_seed(0)
        model = foci.backbones.create("abmil", d_in=WIDTH, n_classes=2).eval().requires_grad_(False)
        settings = AuditSettings(
            seeds=(0,), recipe_settings={"schedule.epochs": 2, "schedule.warmup": 0}
        )
        cohort.readable()  # fills the cache
        selector = foci.selectors.fit(model, cohort, settings.plan)

        def alone() -> float:
            start = time.perf_counter()
            plain(model, cohort.split("test"), settings, selector)
            return time.perf_counter() - start

        watch = Watch()
        before = alone()
        with showing(watch):
            peak = peak_mb(lambda: run(Sources(model, cohort), settings, folder / "audit"))
        audit = time.perf_counter() - watch.started
        engine = (before + alone()) / 2  # a busy machine slows down in phases
    n = options.slides
    print(
        f"{n} slides of {TILES} x {WIDTH}, ABMIL; native, selector, {settings.random_orders} random"
    )
    print(f"  engine and reading  {engine / n * 1e3:8.1f} ms per slide")
    print(f"  audit               {audit / n * 1e3:8.1f} ms per slide, tables and summary included")
    print(f"  ratio               {audit / engine:8.2f}  (must be at most 2)")
    print(f"  peak memory         {peak:8.0f} MiB above the model  (must be below 2048)")


class Watch:
    """Knows when the slides began to be revealed; until then selectors are fitted."""

    def __init__(self) -> None:
        self.started = time.perf_counter()

    def __call__(self, items: Any, what: str) -> Iterable[Any]:
        """As a progress bar would be called."""
        if what == REVEALING:
            self.started = time.perf_counter()
        return items  # type: ignore[no-any-return]


def plain(model: Backbone, cohort: Cohort, settings: AuditSettings, selector: Any) -> None:
    """Read, rank, reveal, delete; nothing is kept."""
    revealer = Revealer(model, recheck=(settings.kappa,))
    for bag in cohort.bags():
        embedded = revealer.open(bag)
        embedded = embedded.with_target(int(embedded.full().argmax()))
        rankings = [
            foci.rankings.score("native", model, embedded),
            foci.rankings.score("selector", model, embedded, selector=selector),
            *random_controls(bag, settings.random_orders),
        ]
        for ranking in rankings:
            order = torch.from_numpy(ranking.order)
            embedded.curve(order, range(1, settings.k_max + 1))
            embedded.curve(order, settings.deletion, direction="delete")


def make_cohort(folder: Path, n_slides: int) -> Cohort:
    """Slides to audit, and a few to fit the selector on."""
    counts = {"train": FITTED[0], "val": FITTED[1], "test": n_slides}
    rng = np.random.default_rng(0)
    cells = np.stack([np.arange(TILES) % 32, np.arange(TILES) // 32], 1) * 256
    slides = []
    (folder / "features").mkdir()
    for split, count in counts.items():
        for number in range(count):
            name = f"{split}-{number:04d}"
            x = rng.standard_normal((TILES, WIDTH), dtype=np.float32)
            with h5py.File(folder / "features" / f"{name}.h5", "w") as file:
                file["features"] = x
                file.create_dataset("coords", data=cells).attrs["patch_size_level0"] = 256
            slides.append(Slide(name, name, "ab"[number % 2], split))
    Cohort(tuple(slides)).to_csv(folder / "cohort.csv")
    return Cohort.read(folder / "features", folder / "cohort.csv", cache=folder / "cache", keep=4)


if __name__ == "__main__":
    main()
