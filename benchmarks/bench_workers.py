"""Two worker processes against the ceiling of the machine, on the whole embedded cohort.

All 240 slides are audited, or the first of them (``--slides 48`` for a transformer), by native,
evidence and random orders, in blocks of 8. The ceiling is measured in the same run: two independent
audits with one thread each, side by side, against one alone. The clock starts when torch, model and
cohort are loaded, in every process that takes part: ``foci audit --workers 2`` loads the workers
while it loads itself. It stops when the last audit is complete on disk, before Python unloads
everything. Sending the model to the workers, tables and summary are part of the cost. Then whole
commands are timed, from the call to the end. The cohort is that of ``foci demo``, the models are
trained on it.

Where other programs are running, wall clocks say little. The same share is printed of processor
time: that of one audit alone, over twice what two workers need on two cores, where the first
process works alone before and after the shards.
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
from collections.abc import Callable
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event, Semaphore
from pathlib import Path
from typing import Any

import torch

import foci
from foci.audits import run as audit_run
from foci.audits.run import RunOptions, run
from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources
from foci.bags import Cohort
from foci.engines.local import Processes
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
    ceilings, speeds, shares, processor = [], [], [], []
    for _ in range(repeats):
        alone, one = timed([(model, features, labels, 1)])
        both, _ = timed([(model, features, labels, 1)] * 2)
        workers, needed = timed([(model, features, labels, 2)])
        ceilings.append(2 * alone / both)
        speeds.append(alone / workers)
        shares.append(both / (2 * workers))
        processor.append(one / (2 * needed))
        print(f"{model.name}: alone {alone:.1f} s, two side by side {both:.1f} s, "
              f"two workers {workers:.1f} s, {shares[-1]:.0%} of the ceiling; processor time "
              f"{one:.2f} s and {needed:.2f} s, {processor[-1]:.0%}",
              flush=True)  # fmt: skip
    ceiling, speed, share = (statistics.median(one) for one in (ceilings, speeds, shares))
    print(f"{model.name}: medians: ceiling {ceiling:.2f}, two workers {speed:.2f}, "
          f"{share:.0%} of the ceiling; of processor time {statistics.median(processor):.0%} "
          f"({min(processor):.0%} to {max(processor):.0%})", flush=True)  # fmt: skip
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


def timed(audits: list[tuple[Path, Path, Path, int]]) -> tuple[float, float]:
    """Wall time of audits side by side, from the first slide of any to the end of all.

    And the processor time of the last one to end, as two workers need it on two cores.
    """
    context = multiprocessing.get_context("spawn")
    spent: SimpleQueue[float] = context.SimpleQueue()
    start, ready, done = context.Event(), context.Semaphore(0), context.Semaphore(0)
    processes = [
        context.Process(target=audit, args=(*one, ready, start, done, spent)) for one in audits
    ]
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
    return taken, [spent.get() for _ in audits][-1]


def audit(
    model: Path,
    features: Path,
    labels: Path,
    workers: int,
    ready: Semaphore,
    start: Event,
    done: Semaphore,
    spent: SimpleQueue[float],
) -> None:
    """Load everything, say so, wait, audit, say so."""
    torch.set_num_threads(1)
    shared = Shared()
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
        before = time.process_time()
        try:
            run(
                Sources(backbone, cohort), settings, Path(out, "audit"), RunOptions(workers=workers)
            )
        finally:
            done.release()
    own = time.process_time() - before
    spent.put(own - shared.own + (shared.own + shared.workers) / min(workers, 2))


class Shared:
    """Processor time of the shards: of this process, and of the workers that it ends."""

    def __init__(self) -> None:
        self.own = self.workers = 0.0
        reveal: Callable[..., None] = vars(audit_run)["reveal_shards"]
        end = Processes.__exit__

        def revealed(*given: Any, **options: Any) -> None:
            start = time.process_time()
            reveal(*given, **options)
            self.own = time.process_time() - start

        def ended(pool: Processes, *error: Any) -> None:
            for pid in pool._pool._processes:
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                ticks = int(fields[11]) + int(fields[12])  # user and system
                self.workers += ticks / os.sysconf("SC_CLK_TCK")
            end(pool, *error)

        vars(audit_run)["reveal_shards"] = revealed
        Processes.__exit__ = ended  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
