"""Cost cell: time and memory of a prediction, and of the reveal curves, of one classifier."""

from __future__ import annotations

import math
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict

from foci import rankings, selectors
from foci.audits.setup.preflight import for_backbone
from foci.audits.setup.splits import ready_to_fit
from foci.backbones import Backbone
from foci.backbones.freezing import frozen
from foci.bags import Bag
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.progress import silent
from foci.reveal import Revealer
from foci.selectors import FittedSelector
from foci.studies.cells.inputs import open_model
from foci.studies.cells.joint import RESULT
from foci.studies.cells.memory import peak_mb
from foci.studies.plan.cells import Cell
from foci.studies.plan.expand import audit_settings
from foci.studies.plan.study import Study


class Cost(BaseModel):
    """Cost of one way to rank: by the classifier's own scores, or by the selector.

    Attributes:
        parameters: Of the classifier, and of the selector if it is used.
        inference_ms: One prediction from the full bag (with the selector's scores, if it is used):
            the median over repeats, averaged over slides.
        inference_mb: Peak memory of it, largest over slides; None where it cannot be read.
        srp_ms: One reveal curve: embedding, scores, and a prediction at every count.
        srp_mb: Peak memory of it.
        ratio: ``srp_ms / inference_ms``, averaged over slides as a ratio: it compares across
            devices where milliseconds do not.
    """

    model_config = ConfigDict(frozen=True)

    parameters: int
    inference_ms: float
    inference_mb: float | None
    srp_ms: float
    srp_mb: float | None
    ratio: float


class CostResult(BaseModel):
    """What one classifier costs on the slides of ``efficiency``.

    Attributes:
        device: ``"cpu"`` or ``"cuda"``.
        machine: Name of the GPU or of the processor's architecture.
        threads: Of torch.
        slides: Names of the slides.
        n_tiles: Their tiles.
        k_max: Largest reveal count; every count up to it is revealed.
        repeats: Repetitions behind every median.
        native: The classifier with its own scores; None where it has none.
        selector: The classifier with its selector; None where the study fits none.
    """

    model_config = ConfigDict(frozen=True)

    device: str
    machine: str
    threads: int
    slides: tuple[str, ...]
    n_tiles: tuple[int, ...]
    k_max: int
    repeats: int
    native: Cost | None
    selector: Cost | None

    @classmethod
    def read(cls, folder: Path) -> CostResult:
        """The result of a finished cost cell."""
        return cls.model_validate_json((folder / RESULT).read_bytes())


def cost(
    study: Study, cell: Cell, model: Path, selector: Path | None, out: Path, device: str
) -> None:
    """Measure a classifier and its selector, and write :class:`CostResult`."""
    if study.efficiency is None:
        raise FociError("efficiency", "is not in the study", "add it, and plan again")
    plan = study.efficiency
    chosen = device if plan.device == "auto" else plan.device
    sources = open_model(study, cell, model, chosen)
    backbone = sources.backbone
    cohort = for_backbone(sources.cohort, backbone)
    split = ready_to_fit(cohort, study.cohorts[cell.cohort].split_seed, silent)
    audited = split.split(audit_settings(study, cell).split)
    bags = [bag for bag, _ in zip(audited.bags(), range(plan.slides), strict=False)]
    k_max = audit_settings(study, cell).k_max
    fitted = None if selector is None else selectors.load(selector, backbone)
    scored = backbone.capabilities.score != "none"
    result = CostResult(
        device=torch.device(chosen).type,
        machine=_machine(chosen),
        threads=torch.get_num_threads(),
        slides=tuple(bag.slide_id for bag in bags),
        n_tiles=tuple(len(bag) for bag in bags),
        k_max=k_max,
        repeats=plan.repeats,
        native=measure(backbone, bags, None, k_max, plan.repeats, chosen) if scored else None,
        selector=None
        if fitted is None
        else measure(backbone, bags, fitted, k_max, plan.repeats, chosen),
    )
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / RESULT, result.model_dump_json(indent=1) + "\n")


def measure(
    backbone: Backbone,
    bags: Sequence[Bag],
    selector: FittedSelector | None,
    k_max: int,
    repeats: int,
    device: str = "cpu",
) -> Cost:
    """Time and memory of predictions and reveal curves on some bags.

    Args:
        backbone: The frozen classifier, on the device.
        bags: The slides.
        selector: Its scores rank the tiles; None for the classifier's own.
        k_max: Largest reveal count.
        repeats: Repetitions behind every median.
        device: Where it is measured.
    """
    revealer = Revealer(backbone)
    options: dict[str, Any] = {} if selector is None else {"selector": selector}
    name = "native" if selector is None else "selector"
    rows = []
    for bag in bags:
        x = bag.x.to(device)

        def predict(x: Any = x) -> None:
            tokens = backbone.embed(x)
            if selector is not None:
                selector.best(tokens).cpu()
            backbone.aggregate(tokens[None], tokens.new_ones(1, len(x), dtype=torch.bool)).cpu()

        def reveal(bag: Bag = bag) -> None:
            opened = revealer.open(bag)
            order = torch.from_numpy(rankings.score(name, backbone, opened, **options).order)
            opened.curve(order, range(1, min(k_max, len(bag)) + 1))

        with frozen(backbone):
            memory = peak_mb(predict, device), peak_mb(reveal, device)
            rows.append((*_milliseconds(predict, reveal, repeats), *memory))
    inference, srp, small, large = zip(*rows, strict=True)
    heads = () if selector is None else tuple(selector.best.head.parameters())
    return Cost(
        parameters=sum(p.numel() for p in (*backbone.parameters(), *heads)),
        inference_ms=statistics.mean(inference),
        inference_mb=_largest(small),
        srp_ms=statistics.mean(srp),
        srp_mb=_largest(large),
        ratio=statistics.mean(b / a for a, b in zip(inference, srp, strict=True)),
    )


def _milliseconds(
    first: Callable[[], None], second: Callable[[], None], repeats: int
) -> tuple[float, float]:
    """Median wall times of two calls taken in turns, so that a busy machine slows down both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for call, own in zip((first, second), times, strict=True):
            start = time.perf_counter()
            call()
            own.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[0]), statistics.median(times[1])


def _largest(values: Sequence[float]) -> float | None:
    return None if any(math.isnan(value) for value in values) else max(values)


def _machine(device: str) -> str:
    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    return platform.processor() or platform.machine()
