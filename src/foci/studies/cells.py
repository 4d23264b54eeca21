"""Compute the cells of a study: train, fit, audit, joint control and cost.

Train, fit and audit do what ``foci train``, ``foci fit`` and ``foci audit`` do, each from the
result of the one before. The joint control trains a copy of a classifier with its selector; cost
measures time and memory of predictions and reveal curves.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import json
import math
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict

from foci import rankings, selectors
from foci.audits.numbers import split_scores
from foci.audits.prepare import for_backbone, ready_to_fit
from foci.audits.run import RunOptions, run
from foci.audits.settings import Inputs
from foci.audits.sources import Sources, open_sources
from foci.backbones.base import Backbone
from foci.backbones.freezing import device_and_dtype, frozen
from foci.backbones.training.loop import batch_of, epoch_order, predict
from foci.backbones.training.run import train_into, trainable, with_train_and_val
from foci.bags import Bag, Cohort, Slide
from foci.errors import ChangedError, FociError
from foci.files.atomic import write_whole
from foci.files.bounds import read_json
from foci.files.hashes import was_changed, with_own_hash
from foci.progress import showing
from foci.reveal import Revealer
from foci.selectors import Target
from foci.selectors.criterion import aukc_on_grid
from foci.selectors.fitting import new_head, randomness
from foci.selectors.gated import GatedBackbone, choose_site, gate_backbone
from foci.selectors.objective import Adaptive, GatedBatch, loss_terms, total, unit_box
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.selector import FittedSelector, Head, scores_at
from foci.studies.plan import Cell, StudyFolder, audit_settings, training_settings
from foci.studies.study import Study, data_digest, read_cohort

VALIDATION, RESULT = "validation.json", "result.json"

SHORT = 32
"""Where the budget is adaptive, the validation AUKC up to this many tiles is measured, too: the
paper reports a validation AUKC and does not say up to which count."""

BASE_SHARE = 0.2
"""The classifier's learning rate in joint training as a share of the selector's: the paper
multiplies by 5."""

Scores = dict[str, float | None]
"""``auc`` (None where a class is absent), ``accuracy`` and ``loss``, on the validation slides."""


@showing(False)
def compute(folder: StudyFolder, cell: Cell, needed: tuple[Path, ...], out: Path) -> None:
    """Compute a cell into a folder, on a GPU if one is visible, and resume a killed process.

    The results that it needs are the model, then the selector if it has one.

    Raises:
        ChangedError: If rows or feature files are not those that the study was planned with.
    """
    study, device = folder.study, visible_device()
    if cell.kind == "train":
        _train(study, cell, out, device)
        return
    if cell.kind == "cost" and study.efficiency is not None and study.efficiency.device != "auto":
        device = study.efficiency.device
    sources = _open(study, cell, needed[0], device)
    selector = needed[1] if len(needed) > 1 else None
    if cell.kind == "fit":
        _fit(study, cell, sources, out)
    elif cell.kind == "audit":
        _audit(study, cell, sources, selector, out)
    elif cell.kind == "joint":
        _joint(study, cell, sources, out)
    elif cell.kind == "cost":
        _cost(study, cell, sources, selector, out, device)
    else:
        raise FociError(cell.name, f"is of unknown kind {cell.kind!r}", "plan the study again")


def visible_device() -> str:
    """The first GPU that this process may use, else the CPU."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def _open(study: Study, cell: Cell, model: Path, device: str) -> Sources:
    """Load the classifier of a cell, and read the table of its cohort; no feature file is read."""
    entry, backbone = study.cohorts[cell.cohort], study.backbones[cell.backbone]
    own = {name: getattr(entry, name) for name in Inputs.model_fields if hasattr(entry, name)}
    fold = entry.fold if cell.fold is None else cell.fold
    ready_made = cell.seed in backbone.models.get(cell.cohort, {})
    options = backbone.model_options if ready_made else {}
    given = {**own, "fold": fold, "n_cap": cell.n_cap, "model": model, "model_options": options}
    inputs = Inputs(**given)
    sources = open_sources(inputs.model, inputs, **inputs.opening, device=device)
    _check_unchanged(study, cell, sources.cohort)
    return sources


def _check_unchanged(study: Study, cell: Cell, cohort: Cohort) -> None:
    if data_digest(cohort, study.cohorts[cell.cohort].split_seed) != cell.data:
        what = "has changed since the study was planned"
        raise ChangedError(f"cohort {cell.cohort}", what, "run foci study plan again")


def _ready(sources: Sources) -> Cohort:
    """The slides that the classifier can read, split by patients where no table does."""
    return ready_to_fit(for_backbone(sources.cohort, sources.backbone), sources.split_seed)


def _train(study: Study, cell: Cell, out: Path, device: str) -> None:
    """Train a classifier into a model folder."""
    entry, backbone = study.cohorts[cell.cohort], study.backbones[cell.backbone]
    table = read_cohort(entry, cell.fold, cell.n_cap)
    _check_unchanged(study, cell, table)
    cohort = trainable(with_train_and_val(table.readable(), entry.split_seed))
    train_into(
        out,
        backbone.architecture or cell.backbone,
        cohort,
        training_settings(study, cell, cohort.classes),
        preset=backbone.preset,
        widths=backbone.widths,
        device=device,
        score=split_scores,
    )


def _fit(study: Study, cell: Cell, sources: Sources, out: Path) -> None:
    """Fit a selector into a selector folder."""
    settings, cohort = audit_settings(study, cell), _ready(sources)
    fitted = selectors.fit(
        sources.backbone,
        cohort,
        settings.plan,
        seed=cell.seed,
        target=settings.fitted_for,
        out=out,
        criterion=settings.choose_by,
        memory_gb=settings.memory_gb,
        model_files=sources.model_files,
    )
    if isinstance(settings.plan.budget, Adaptive):
        short = validation_aukc(fitted, cohort.split("val"), settings.fitted_for, SHORT)
        write_with_hash(out / VALIDATION, {f"aukc_{SHORT}": short})


def validation_aukc(fitted: FittedSelector, val: Cohort, target: Target, k_max: int) -> float:
    """Mean AUKC of the validation slides up to ``k_max``, over the grid that chooses the epoch."""
    revealer = Revealer(fitted.best.backbone, recheck=())
    areas = []
    for slide in val:
        bag = revealer.open(val.bag(slide.slide_id))
        followed = val.target(slide.slide_id) if target == "label" else int(bag.full().argmax())
        scores = fitted.scores(bag.tokens, followed)
        areas.append(aukc_on_grid(bag, scores, followed, k_max))
    return float(np.mean(areas))


def _audit(study: Study, cell: Cell, sources: Sources, selector: Path | None, out: Path) -> None:
    """Audit a classifier, with the selector of a fit cell, into an audit folder."""
    named = replace(sources, name=cell.name.removeprefix("audit/"))
    given = () if selector is None else (selector,)
    run(named, audit_settings(study, cell), out, RunOptions(selectors=given))


def write_with_hash(path: Path, content: Mapping[str, Any]) -> None:
    """Write a small JSON file with the hash of its entries."""
    write_whole(path, json.dumps(with_own_hash(content), indent=1) + "\n")


def read_unchanged(path: Path) -> dict[str, Any]:
    """The entries of a small JSON file; refused if they no longer have their hash."""
    content: dict[str, Any] = read_json(path)
    if was_changed(content):
        fix = "copy the folder again, or delete it and run the study again"
        raise FociError(path, "was changed since it was written", fix)
    return content


class _Result(BaseModel):
    """Content of the ``result.json`` of a cell."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The result of a finished cell."""
        return cls.model_validate(read_unchanged(folder / RESULT))

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_with_hash(folder / RESULT, json.loads(self.model_dump_json()))


# Joint control: what training the classifier together with the selector costs the classifier


class JointResult(_Result):
    """Scores on the validation slides: before joint training, and after every epoch of it."""

    before: Scores
    epochs: tuple[Scores, ...]


def _joint(study: Study, cell: Cell, sources: Sources, out: Path) -> None:
    """Train a copy of a classifier with its selector, and write :class:`JointResult`."""
    plan = audit_settings(study, cell).plan
    _, _, result = train_jointly(
        sources.backbone, _ready(sources), plan, seed=cell.seed, epochs=cell.epochs
    )
    sources.model_files.check("the joint training")
    result.write(out)


def train_jointly(
    backbone: Backbone,
    cohort: Cohort,
    recipe: SelectorRecipe,
    *,
    seed: int = 0,
    epochs: int | None = None,
) -> tuple[Backbone, Head, JointResult]:
    r"""Minimise :math:`\mathcal{L}_\mathrm{full} + \mathcal{L}_\mathrm{selector}` over both.

    The paper found that this costs the classifier more than 15 points of AUC within two epochs. It
    cannot be reached through a recipe or :func:`foci.selectors.fit`.

    The backbone is copied and itself never changed; targets are always the labels. With ``epochs``
    the training stops after so many of the recipe's.

    Returns:
        The trained copy, which is another model than the one given, the head that was trained with
        it, and the scores of both models.
    """
    if recipe.start != "random":
        what = f"{recipe.name} starts as evidence of a classifier that changes meanwhile"
        raise FociError("recipe", what, "choose one that starts at random (paper-ste)")
    train, val = cohort.split("train"), cohort.split("val")
    before = split_scores(predict(backbone, val))
    model = copy.deepcopy(backbone).requires_grad_(True)
    head = new_head(model, recipe, seed)
    gated = gate_backbone(model, choose_site(model, recipe.sites), dense=recipe.dense)
    schedule, size = recipe.schedule, recipe.schedule.batch_size
    optimizer = torch.optim.AdamW(
        [{"params": head.parameters()}, {"params": model.parameters()}],
        weight_decay=schedule.weight_decay,
    )
    steps = math.ceil(len(train) / size)
    scored = []
    with torch.random.fork_rng():
        for number in range(1, min(epochs or schedule.epochs, schedule.epochs) + 1):
            rng, generator = randomness(seed, number)
            torch.manual_seed(generator.initial_seed())
            order = epoch_order(train.slides, balanced=False, rng=rng)
            model.train()
            for step in range(steps):
                rate = schedule.rate((number - 1) * steps + step, steps)
                for group, share in zip(optimizer.param_groups, (1.0, BASE_SHARE), strict=True):
                    group["lr"] = rate * share
                batch = _batch_with_gradients(gated, cohort, order[step * size : (step + 1) * size])
                scores = scores_at(head, batch.tiles, batch.targets)
                k = recipe.budget.draw(batch.n_tiles, generator)
                terms = loss_terms(batch, scores, gated, recipe.gate, k, recipe.weights, generator)
                optimizer.zero_grad(set_to_none=True)
                loss = terms["full"] + total(terms, recipe.weights)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            scored.append(split_scores(predict(model, val)))
    result = JointResult(before=before, epochs=tuple(scored))
    return model.eval().requires_grad_(False), head, result


def _batch_with_gradients(gated: GatedBackbone, cohort: Cohort, slides: list[Slide]) -> GatedBatch:
    """A batch whose tokens and full-bag logits pass gradients on to the classifier."""
    device, dtype = device_and_dtype(gated.backbone)
    batch = batch_of(cohort, slides).to(device)
    tiles = gated.prepare(batch.features.to(dtype))
    coords = batch.features.new_zeros(*batch.mask.shape, 2)
    if batch.coords is not None:
        for row, (places, real) in enumerate(zip(batch.coords, batch.mask, strict=True)):
            coords[row, real] = unit_box(places[real])
    full = gated.backbone.aggregate(tiles["tokens"], batch.mask)
    return GatedBatch(tiles, batch.mask, coords.to(dtype), batch.labels, full)


# Cost: time and memory of a prediction, and of the reveal curves, of one classifier

_STATUS, _REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_mb(function: Callable[[], Any], device: str = "cpu") -> float:
    """How much a call adds to the memory in use, in MiB; NaN where that cannot be read.

    On a CPU this is resident memory above where it was, on a GPU all that is allocated, the model
    included, as the paper does.
    """
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
        function()
        return float(torch.cuda.max_memory_allocated(device)) / 1024**2
    with contextlib.suppress(OSError):
        # a call that finds enough freed memory would seem to need none: return it to the kernel
        with contextlib.suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).malloc_trim(0)
        _REFS.write_text("5")  # resets the high-water mark
        before = _resident("VmRSS")
        function()
        return max(0.0, _resident("VmHWM") - before)
    function()
    return float("nan")


def _resident(field: str) -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", _STATUS.read_text())
    return float(found.group(1)) / 1024 if found else float("nan")


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


class CostResult(_Result):
    """What one classifier costs on the slides of ``efficiency``.

    Attributes:
        machine: Name of the GPU or of the processor's architecture.
        k_max: Largest reveal count; every count up to it is revealed.
        repeats: Repetitions behind every median.
        native: The classifier with its own scores; None where it has none.
        selector: The classifier with its selector; None where the study fits none.
    """

    device: str
    machine: str
    threads: int
    slides: tuple[str, ...]
    n_tiles: tuple[int, ...]
    k_max: int
    repeats: int
    native: Cost | None
    selector: Cost | None


def _cost(
    study: Study, cell: Cell, sources: Sources, selector: Path | None, out: Path, device: str
) -> None:
    """Measure a classifier and its selector, and write :class:`CostResult`."""
    plan, settings, backbone = study.efficiency, audit_settings(study, cell), sources.backbone
    if plan is None:
        raise FociError("efficiency", "is not in the study", "add it, and plan again")
    audited = _ready(sources).split(settings.split)
    bags = [bag for bag, _ in zip(audited.bags(), range(plan.slides), strict=False)]
    fitted = None if selector is None else selectors.load(selector, backbone)
    how = (settings.k_max, plan.repeats, device)
    machine = platform.processor() or platform.machine()
    if device.startswith("cuda"):
        machine = torch.cuda.get_device_name(device)
    scored = backbone.capabilities.score != "none"
    result = CostResult(
        device=torch.device(device).type,
        machine=machine,
        threads=torch.get_num_threads(),
        slides=tuple(bag.slide_id for bag in bags),
        n_tiles=tuple(len(bag) for bag in bags),
        k_max=settings.k_max,
        repeats=plan.repeats,
        native=measure(backbone, bags, None, *how) if scored else None,
        selector=None if fitted is None else measure(backbone, bags, fitted, *how),
    )
    result.write(out)


def measure(
    backbone: Backbone,
    bags: Sequence[Bag],
    selector: FittedSelector | None,
    k_max: int,
    repeats: int,
    device: str = "cpu",
) -> Cost:
    """Time and memory of predictions and reveal curves on some bags, ranked by the selector.

    Without one, the classifier's own scores rank the tiles. The classifier is on the device.
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
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(repeats):  # in turns, so that a busy machine slows down both
                for call, own in zip((predict, reveal), times, strict=True):
                    start = time.perf_counter()
                    call()
                    own.append(1000 * (time.perf_counter() - start))
            rows.append((*map(statistics.median, times), *memory))
    inference, srp, *peaks = zip(*rows, strict=True)
    small, large = (None if np.isnan(peak).any() else max(peak) for peak in peaks)
    heads = () if selector is None else tuple(selector.best.head.parameters())
    return Cost(
        parameters=sum(p.numel() for p in (*backbone.parameters(), *heads)),
        inference_ms=statistics.mean(inference),
        inference_mb=small,
        srp_ms=statistics.mean(srp),
        srp_mb=large,
        ratio=statistics.mean(b / a for a, b in zip(inference, srp, strict=True)),
    )
