"""An audit of cached slides with everything verified, against the same audit without.

Verified: the checksum of every cache entry, the stamps of all feature files before and after the
run, and the hash of every file when the finished folder is opened. Native ranking and two random
orders, no selector: the cheapest audit, so that verification has the largest share.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import h5py
import numpy as np
import torch

import foci
from foci.audits import StoredAudit
from foci.audits.run import run
from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources
from foci.backbones import Backbone
from foci.bags import Cohort, Slide

SETTINGS = AuditSettings(rankings=("native", "random"), random_orders=2, n_boot=200)


def main() -> None:
    """Make the cohort, audit it in turns, print both medians and their ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--slides", type=int, default=1000)
    parser.add_argument("--tiles", type=int, default=256)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_cohort(folder, options.slides, options.tiles, options.width)
        torch.manual_seed(0)
        model = foci.backbones.create("abmil", d_in=options.width, n_classes=2)
        model = model.eval().requires_grad_(False)
        times: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        for number in range(-1, options.repeats):  # the first fills the caches
            for verified in times:
                with contextlib.nullcontext() if verified else unverified():
                    took = timed(model, folder, f"{verified}-{number}", verified)
                if number >= 0:
                    times[verified].append(took)
    shape = f"{options.slides} cached slides of {options.tiles} x {options.width}"
    print(f"{shape}, ABMIL, native and 2 random orders, {options.repeats} runs each, in turns")
    for place, kind in enumerate(("wall time", "CPU time")):
        with_, without = (statistics.median(t[place] for t in times[v]) for v in times)
        ratio = with_ / without
        print(f"  {kind:10s} verified {with_:7.2f} s, not {without:7.2f} s, ratio {ratio:.3f}")
    print("  the ratio must be at most 1.05")


def timed(model: Backbone, folder: Path, name: str, verified: bool) -> tuple[float, float]:
    """Seconds and CPU seconds of one audit, opened afterwards."""
    cache = folder / ("cache" if verified else "cache-without")
    start, cpu = time.perf_counter(), time.process_time()
    cohort = Cohort.read(folder / "features", folder / "cohort.csv", cache=cache, keep=4)
    run(Sources(model, cohort), SETTINGS, folder / name)
    StoredAudit.load(folder / name)
    return time.perf_counter() - start, time.process_time() - cpu


@contextlib.contextmanager
def unverified() -> Iterator[None]:
    """Without checksums, stamps and hashes; such cache entries need a folder of their own."""
    with (
        mock.patch("foci.bags.store._checksum", return_value=""),
        mock.patch("foci.audits.prepare.files_read", return_value=[]),
        mock.patch("foci.audits.audit.changed_files", return_value=()),
    ):
        yield


def write_cohort(folder: Path, slides: int, tiles: int, width: int) -> None:
    """Feature files in TRIDENT's layout, all of split test."""
    rng = np.random.default_rng(0)
    (folder / "features").mkdir()
    rows = []
    for number in range(slides):
        name = f"s{number:04d}"
        with h5py.File(folder / "features" / f"{name}.h5", "w") as file:
            file["features"] = rng.standard_normal((tiles, width), dtype=np.float32)
            cells = np.stack([np.arange(tiles) % 32, np.arange(tiles) // 32], 1) * 256
            file.create_dataset("coords", data=cells).attrs["patch_size_level0"] = 256
        rows.append(Slide(name, name, "ab"[number % 2], "test"))
    Cohort(tuple(rows)).to_csv(folder / "cohort.csv")


if __name__ == "__main__":
    main()
