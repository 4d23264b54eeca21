"""Two worker processes against the ceiling of the machine, on the whole embedded cohort.

All 240 slides are audited, or the first of them (``--slides 48`` for a transformer), by native,
evidence and random orders, in blocks of 8. The ceiling is measured in the same run: two independent
audits with one thread each, side by side, against one alone. The clock starts when torch, model and
cohort are loaded, in every process that takes part: ``foci audit --workers 2`` loads the workers
while it loads itself. It stops when the last audit is complete on disk, before Python unloads
everything. Sending the model to the workers, tables and summary are part of the cost. Then whole
commands are timed, from the call to the end. The cohort is that of ``foci demo``, the models are
trained on it.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.synchronize import Event, Semaphore
from pathlib import Path

import torch

import foci
from foci.audits.run import RunOptions, run
from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources
from foci.bags import Cohort
from foci.processes import preload, warm_context

BLOCK = 8


def main() -> None:
    """Print the ceiling, the speed of two workers, and their ratio, for each model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cohort", type=Path, help="folder with cohort.csv and features_demo")
    parser.add_argument("models", type=Path, nargs="+", help="model folders")
    parser.add_argument("--slides", type=int, default=240)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        table = options.cohort / "cohort.csv"
        labels = first_slides(table, Path(place, "cohort.csv"), options.slides)
        for model in options.models:
            measure(model, options.cohort / "features_demo", labels, options.repeats)


def first_slides(table: Path, out: Path, number: int) -> Path:
    """The first rows of the label table without its splits, so that every slide is audited."""
    with table.open() as file, out.open("w") as kept:
        rows = csv.DictReader(file)
        names = [name for name in rows.fieldnames or () if name != "split"]
        writer = csv.DictWriter(kept, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(itertools.islice(rows, number))
    return out


def measure(model: Path, features: Path, labels: Path, repeats: int) -> None:
    """Print every repetition and the medians of one model."""
    ceilings, speeds, shares = [], [], []
    for _ in range(repeats):
        alone = timed([(model, features, labels, 1)])
        both = timed([(model, features, labels, 1)] * 2)
        workers = timed([(model, features, labels, 2)])
        ceilings.append(2 * alone / both)
        speeds.append(alone / workers)
        shares.append(both / (2 * workers))
        print(f"{model.name}: alone {alone:.1f} s, two side by side {both:.1f} s, "
              f"two workers {workers:.1f} s, {shares[-1]:.0%} of the ceiling",
              flush=True)  # fmt: skip
    ceiling, speed, share = (statistics.median(one) for one in (ceilings, speeds, shares))
    print(f"{model.name}: medians: ceiling {ceiling:.2f}, two workers {speed:.2f}, "
          f"{share:.0%} of the ceiling", flush=True)  # fmt: skip
    one, two = (commanded(model, features, labels, workers) for workers in (1, 2))
    print(f"{model.name}: whole command {one:.1f} s, with two workers {two:.1f} s", flush=True)


def commanded(model: Path, features: Path, labels: Path, workers: int) -> float:
    """Wall time of ``foci audit`` on one core per worker, loading and report included."""
    with tempfile.TemporaryDirectory() as out:
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "foci", "audit", "--model", str(model),
             "--features", str(features), "--labels", str(labels), "--out", f"{out}/audit",
             "--rankings", "native,evidence,random", "--set", f"block={BLOCK}",
             "--workers", str(workers)],
            check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        return time.perf_counter() - started


def timed(audits: list[tuple[Path, Path, Path, int]]) -> float:
    """Wall time of audits side by side, from the first slide of any to the end of all."""
    context = multiprocessing.get_context("spawn")
    start, ready, done = context.Event(), context.Semaphore(0), context.Semaphore(0)
    processes = [context.Process(target=audit, args=(*one, ready, start, done)) for one in audits]
    for process in processes:
        process.start()
    for _ in audits:
        ready.acquire()
    started = time.perf_counter()
    start.set()
    for _ in audits:
        done.acquire()
    taken = time.perf_counter() - started
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit("an audit failed")
    return taken


def audit(
    model: Path,
    features: Path,
    labels: Path,
    workers: int,
    ready: Semaphore,
    start: Event,
    done: Semaphore,
) -> None:
    """Load everything, say so, wait, audit, say so."""
    torch.set_num_threads(1)
    if workers > 1:
        preload()
        loaded = warm_context().Process(target=time.time)
        loaded.start()
        loaded.join()
    backbone = foci.backbones.load(model)
    cohort = Cohort.read(features, labels, cache=False)
    settings = AuditSettings(rankings=("native", "evidence", "random"), block=BLOCK)
    with tempfile.TemporaryDirectory() as out:
        ready.release()
        start.wait()
        try:
            run(
                Sources(backbone, cohort), settings, Path(out, "audit"), RunOptions(workers=workers)
            )
        finally:
            done.release()


if __name__ == "__main__":
    main()
