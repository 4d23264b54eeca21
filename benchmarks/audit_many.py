"""Many slides: memory and time per slide of an audit as it goes on, and its report in a browser.

ABMIL on generated slides of 256 tiles x 64 features; native, evidence and 10 random orders, every
count revealed and deleted. For every thousand slides: the mean memory of the process (resident, in
MiB) and its processor time per slide. Then the report is written and opened in Chromium, where the
table of slides is searched.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import foci
from foci.audits.run import RunOptions, run
from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources
from foci.bags import Cohort, Slide
from foci.progress import showing
from foci.reports import write_report

TILES, WIDTH = 256, 64
OPENED = 5


def main() -> None:
    """Audit, print one line per step, write the report, open it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--slides", type=int, default=10_000)
    parser.add_argument("--step", type=int, default=1000, help="slides per printed line")
    parser.add_argument("--out", type=Path, help="keep the audit and its report here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder, out = Path(name), options.out or Path(name)
        cohort = make_cohort(folder, options.slides)
        torch.manual_seed(0)
        model = foci.backbones.create("abmil", d_in=WIDTH, n_classes=2).eval().requires_grad_(False)
        settings = AuditSettings(rankings=("native", "evidence", "random"), split="test")
        watch = Watch(options.step)
        with showing(watch):
            audit = run(Sources(model, cohort), settings, out / "audit", RunOptions(workers=1))
        print(f"summary and tables   {time.process_time() - watch.last:8.1f} s of processor time")
        start = time.process_time()
        page = write_report(audit, out / "report.html")
        print(f"report written in    {time.process_time() - start:8.1f} s of processor time")
        print(f"report               {page.stat().st_size / 2**20:8.1f} MiB", flush=True)
        open_report(page, "s05000" if options.slides > 5000 else "s00000")
    first, last = watch.lines[0], watch.lines[-1]
    print(f"memory, last {options.step} slides against the first  {last[0] / first[0]:.3f}")
    print(f"time per slide, largest against the smallest  "
          f"{max(t for _, t in watch.lines) / min(t for _, t in watch.lines):.3f}")  # fmt: skip


class Watch:
    """A progress bar that prints memory and processor time per step."""

    def __init__(self, step: int) -> None:
        self.step, self.last = step, time.process_time()
        self.lines: list[tuple[float, float]] = []

    def __call__(self, items: Any, what: str) -> Iterable[Any]:
        """As a progress bar would be called."""
        return self._watched(items) if what == "revealing slides" else items

    def _watched(self, items: Any) -> Iterator[Any]:
        self.last, seen = time.process_time(), []
        for number, item in enumerate(items, start=1):
            yield item
            if number % 32 == 0:
                seen.append(resident())
            if number % self.step == 0:
                spent = (time.process_time() - self.last) / self.step * 1e3
                mean = statistics.mean(seen)
                self.lines.append((mean, spent))
                print(f"{number:6d} slides {mean:7.1f} MiB {spent:6.2f} ms per slide", flush=True)
                self.last, seen = time.process_time(), []
        self.last = time.process_time()


def resident() -> float:
    """Memory of this process, in MiB."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return float(found.group(1)) / 1024 if found else float("nan")


def make_cohort(folder: Path, n_slides: int) -> Cohort:
    """Noise with the direction of the class on every eighth tile."""
    rng = np.random.default_rng(0)
    (folder / "features").mkdir()
    slides = []
    for number in range(n_slides):
        x = rng.standard_normal((TILES, WIDTH), dtype=np.float32)
        x[::8, number % 2] += 3.0
        np.save(folder / "features" / f"s{number:05d}.npy", x)
        slides.append(Slide(f"s{number:05d}", f"c{number:05d}", "ab"[number % 2], "test"))
    Cohort(tuple(slides)).to_csv(folder / "cohort.csv")
    return Cohort.read(folder / "features", folder / "cohort.csv", cache=False)


def open_report(page: Path, wanted: str) -> None:
    """Time from the call until the table of slides answers a search."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tools.screenshots import chromium

    with chromium() as browser:
        for _ in range(OPENED):
            view = browser.new_page()
            start = time.perf_counter()
            view.goto(page.resolve().as_uri(), wait_until="load")
            loaded = time.perf_counter() - start
            view.get_by_role("searchbox").first.fill(wanted)
            view.get_by_role("table").get_by_text(wanted).first.wait_for()
            found = time.perf_counter() - start
            print(f"opened in {loaded:.2f} s, a slide found after {found:.2f} s", flush=True)
            view.close()


if __name__ == "__main__":
    main()
