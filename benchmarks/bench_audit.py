"""What a whole default audit costs per slide, in inferences of the same classifier.

Paper presets and the official TransMIL, slides of 1,024 tiles x 1,536 features; native, evidence,
the selector as the mean rank of three seeds, 10 random orders, revealed and deleted, and the
content-free maps. The bags are generated: some tiles of each carry its class. Every classifier is
trained briefly on smaller bags of the same kind, so that its slides are decided, as those of a
classifier in use are.

The unit is the classifier's own forward pass on one slide; for TransMIL "plain" counts in passes
that compute every layer for every token. Times are processor time of this process, on one thread:
other programs on the machine hardly change them. "Writing" are partial results, tables and summary,
"other" is what no part counts; the whole is everything from the first slide to the end of the run.
Fitting the selectors is not part of the cost, nor is the import of pandas: pyarrow loads it with
its first array where it is installed, and FOCI does not need it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import torch

from classifiers import EVERY, created, fitted, plain
from foci.audits import StoredAudit, null_maps
from foci.audits import reveal as audit_slide
from foci.audits import run as audit_run
from foci.audits.jobs import RankingJob
from foci.audits.null_maps import NullMaps, draw_null_maps
from foci.audits.run_folder import Shards
from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources
from foci.backbones import Backbone
from foci.bags import Cohort
from foci.bags.store import BagStore
from foci.progress import showing
from foci.rankings import minimal_set
from foci.reveal import EmbeddedBag

WIDTH, SMALL = 1536, 96
PARTS = (
    "reading", "embedding", "ranking", "insertion", "deletion", "random", "null maps", "minima",
    "writing", "other",
)  # fmt: skip
RARE = {"transmil": 6, "transmil:official": 3}
STEPS = {"transmil": 120, "transmil:official": 120}
SHORT = {"schedule.epochs": 1, "schedule.warmup": 0}


def main() -> None:
    """Print one row per classifier."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--slides", type=int, default=128)
    parser.add_argument("--tiles", type=int, default=1024)
    parser.add_argument("--only", nargs="+", default=EVERY)
    parser.add_argument("--dense", action="store_true", help="every count, as --dense audits")
    parser.add_argument("--sample", type=int, help="slides of TransMIL with content-free maps")
    options = parser.parse_args()
    null_maps.SAMPLE = null_maps.SAMPLE if options.sample is None else options.sample
    torch.set_num_threads(1)
    head = " ".join(f"{part:>9s}" for part in (*PARTS, "whole", "plain"))
    print(f"{'classifier':17s} {head}  decided, restricted mean K of native and random", flush=True)
    for name in options.only:
        n_slides = min(options.slides, RARE.get(name, options.slides))
        row(name, n_slides, options.tiles, options.dense)


def row(name: str, n_slides: int, n_tiles: int, dense: bool) -> None:
    """Audit a generated cohort and print what each part cost."""
    model = briefly_trained(name)
    with tempfile.TemporaryDirectory() as folder:
        cohort = generated(Path(folder), n_slides, n_tiles)
        settings = AuditSettings(recipe_settings=SHORT, dense=dense)
        done, cells = audited(model, cohort, settings, Path(folder, "audit"), n_slides)
        numbers = done.summary.views["prediction"]
        counts = [numbers[r].restricted.estimate for r in ("native", "random")]
        decided = f"{done.answers.n_decided}/{done.answers.n_slides}"
    print(f"{name:17s} {cells}  {decided}, {counts[0]:.1f}, {counts[1]:.1f}", flush=True)


def audited(
    model: Backbone, cohort: Cohort, settings: AuditSettings, out: Path, n_slides: float
) -> tuple[StoredAudit, str]:
    """An audit, and what each part of it cost per slide, as the columns of a row."""
    bag = cohort.bag(cohort.split("test").slides[0].slide_id).x
    units = [unit(model, bag)]
    pa.array([0])  # loads pandas
    clock = Clock()

    def between(items: Any, what: str) -> Any:
        return clock.between(items, what, lambda: units.append(unit(model, bag)))

    with clock.watching(), torch.no_grad(), showing(between):
        done = audit_run.run(Sources(model, cohort), settings, out)
        clock.stop()
    own, plain = (statistics.median(times) for times in zip(*units, strict=True))
    costs = [clock.spent[part] / n_slides / own for part in PARTS]
    whole = sum(costs)
    return done, " ".join(f"{x:9.2f}" for x in (*costs, whole, whole * own / plain))


class Clock:
    """Adds up processor time by part of the audit; a call within another belongs to the outer."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self.started = False
        self._begun = self._here_only = 0.0
        self._here = threading.local()  # bags are read in a thread of their own

    def timed(
        self, function: Callable[..., Any], part_of: Callable[..., str]
    ) -> Callable[..., Any]:
        """The same function, on the clock."""

        def call(*args: Any, **named: Any) -> Any:
            if not self.started or getattr(self._here, "busy", False):
                return function(*args, **named)
            self._here.busy, start = True, time.thread_time()
            try:
                return function(*args, **named)
            finally:
                passed = time.thread_time() - start
                self.spent[part_of(*args, **named)] += passed
                self._here_only += passed * (threading.current_thread() is threading.main_thread())
                self._here.busy = False

        return call

    def between(self, items: Any, what: str, pause: Callable[[], None]) -> Iterator[Any]:
        """The slides, with a break that is on no clock after each; fitting is not timed."""
        if what == "revealing slides":
            self.started, self._begun = True, time.thread_time()
        for item in items:
            yield item
            if self.started:
                start = time.thread_time()
                pause()
                self._begun += time.thread_time() - start

    def stop(self) -> None:
        """End of the run: what this thread did beside the parts is "other"."""
        self.spent["other"] = time.thread_time() - self._begun - self._here_only

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Puts the parts of an audit on the clock."""
        curves = audit_slide.SlideReveal._curves

        def revealed(reveal: Any, jobs: Sequence[RankingJob], *args: Any) -> Any:
            if not jobs[0].orders:
                return curves(reveal, jobs, *args)
            return self.timed(lambda *a: list(curves(*a)), lambda *a: "random")(reveal, jobs, *args)

        def direction(*args: Any, **named: Any) -> str:
            chosen = named.get("direction") or (args[3] if len(args) > 3 else "insert")
            return "insertion" if chosen == "insert" else "deletion"

        reading, minima, writing = (
            partial(self.timed, part_of=lambda *args, part=part, **named: part)
            for part in ("reading", "minima", "writing")
        )
        drawing = draw_null_maps

        def drawn(*args: Any) -> Any:  # before the first slide, and part of the cost
            start = time.thread_time()
            found = drawing(*args)
            self.spent["null maps"] += time.thread_time() - start
            return found

        watched = [
            (audit_run, "draw_null_maps", drawn),
            (NullMaps, "curve", self.timed(NullMaps.curve, lambda *a: "null maps")),
            (BagStore, "bag", reading(BagStore.bag)),
            (audit_slide, "_audited_slide", reading(audit_slide._audited_slide)),
            (EmbeddedBag, "full", self.timed(EmbeddedBag.full, lambda *a: "embedding")),
            (RankingJob, "rank", self.timed(RankingJob.rank, lambda *a: "ranking")),
            (EmbeddedBag, "curve", self.timed(EmbeddedBag.curve, direction)),
            (EmbeddedBag, "curves", self.timed(EmbeddedBag.curves, direction)),
            (audit_slide, "minimal_set", minima(minimal_set)),
            (audit_slide.SlideReveal, "_curves", revealed),
            (audit_slide.ShardReveal, "_measured", writing(audit_slide.ShardReveal._measured)),
            (Shards, "write", writing(Shards.write)),
            (Shards, "finish", writing(Shards.finish)),
            (audit_run, "_conclude", writing(audit_run._conclude)),
        ]  # fmt: skip
        before = [(owner, name, owner.__dict__[name]) for owner, name, _ in watched]
        for owner, name, function in watched:
            setattr(owner, name, function)
        try:
            yield
        finally:
            for owner, name, function in before:
                setattr(owner, name, function)


@torch.no_grad()
def unit(model: Backbone, x: torch.Tensor) -> tuple[float, float]:
    """Processor time of the model's own forward pass, and of the plain one."""
    times = []
    for call in (lambda: model(x), lambda: plain(model, x)):
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return times[0], times[1]


def bag(rng: np.random.Generator, label: int, n_tiles: int) -> np.ndarray:
    """Noise, and on about one tile in twenty the direction of the class."""
    x = rng.standard_normal((n_tiles, WIDTH), dtype=np.float32)
    marked = rng.permutation(n_tiles)[: max(1, n_tiles // 20)]
    x[marked, label * 64 : (label + 1) * 64] += 2.0
    return x


def briefly_trained(name: str) -> Backbone:
    """A classifier that tells the classes apart, after some steps on small bags."""
    torch.manual_seed(0)
    rng = np.random.default_rng(1)
    return fitted(
        created(name, WIDTH),
        lambda label: torch.from_numpy(bag(rng, label, SMALL)),
        STEPS.get(name, 400),
    )


def generated(folder: Path, n_slides: int, n_tiles: int) -> Cohort:
    """Slides to fit on and to audit, as feature files in TRIDENT's layout."""
    rng = np.random.default_rng(0)
    (folder / "features").mkdir()
    rows = ["slide_id,case_id,label,split"]
    splits = [*4 * ["train"], *2 * ["val"], *n_slides * ["test"]]
    places = np.stack([np.arange(n_tiles) % 32, np.arange(n_tiles) // 32], axis=1) * 256
    for number, split in enumerate(splits):
        rows.append(f"s{number},c{number},{'ab'[number % 2]},{split}")
        with h5py.File(folder / "features" / f"s{number}.h5", "w") as file:
            file["features"] = bag(rng, number % 2, n_tiles)
            file["coords"] = places
    (folder / "cohort.csv").write_text("\n".join(rows) + "\n")
    return Cohort.read(folder / "features", folder / "cohort.csv", cache=False)


if __name__ == "__main__":
    main()
