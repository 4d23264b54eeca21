"""Joint cell: what training the classifier together with the selector costs the classifier.

The paper found that this control costs the classifier more than 15 points of AUC within two epochs.
It cannot be reached through a recipe or :func:`foci.selectors.fit`, and it never changes the given
classifier: it trains a copy, which is then another model.
"""

from __future__ import annotations

import copy
import math
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict

from foci.audits.analysis.selected_only import split_scores
from foci.audits.setup.preflight import for_backbone
from foci.audits.setup.splits import ready_to_fit
from foci.backbones.base import Backbone
from foci.backbones.freezing import home
from foci.backbones.training.batches import batch_of, epoch_order
from foci.backbones.training.evaluate import predict
from foci.bags import Cohort, Slide
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.progress import silent
from foci.selectors.fitting.batch import GatedBatch
from foci.selectors.fitting.fit import new_head
from foci.selectors.fitting.loop import randomness
from foci.selectors.fitting.losses import unit_box
from foci.selectors.fitting.objective import loss_terms, total
from foci.selectors.gated.base import GatedBackbone
from foci.selectors.gated.choice import choose_site, gate_backbone
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.selector import Head, scores_at
from foci.studies.cells.inputs import open_model
from foci.studies.plan.cells import Cell
from foci.studies.plan.expand import audit_settings
from foci.studies.plan.study import Study

RESULT = "result.json"

BASE_SHARE = 0.2
"""The classifier's learning rate as a share of the selector's: the paper multiplies by 5."""

Scores = dict[str, float | None]
"""``auc`` (None where a class is absent), ``accuracy`` and ``loss``, on the validation slides."""


class JointResult(BaseModel):
    """Scores on the validation slides while classifier and selector are trained together.

    Attributes:
        before: Of the classifier as it was trained.
        epochs: After every epoch of joint training.
    """

    model_config = ConfigDict(frozen=True)

    before: Scores
    epochs: tuple[Scores, ...]

    @classmethod
    def read(cls, folder: Path) -> JointResult:
        """The result of a finished joint cell."""
        return cls.model_validate_json((folder / RESULT).read_bytes())


def joint(study: Study, cell: Cell, model: Path, out: Path, device: str) -> None:
    """Train a copy of a classifier with its selector, and write :class:`JointResult`."""
    sources = open_model(study, cell, model, device)
    slides = for_backbone(sources.cohort, sources.backbone)
    _, _, result = train_jointly(
        sources.backbone,
        ready_to_fit(slides, study.cohorts[cell.cohort].split_seed, silent),
        audit_settings(study, cell).plan,
        seed=cell.seed,
        epochs=cell.epochs,
    )
    sources.model_files.check("the joint training")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / RESULT, result.model_dump_json(indent=1) + "\n")


def train_jointly(
    backbone: Backbone,
    cohort: Cohort,
    recipe: SelectorRecipe,
    *,
    seed: int = 0,
    epochs: int | None = None,
) -> tuple[Backbone, Head, JointResult]:
    r"""Minimise :math:`\mathcal{L}_\mathrm{full} + \mathcal{L}_\mathrm{selector}` over both.

    Args:
        backbone: Copied; itself never changed.
        cohort: With splits ``train`` and ``val``, labelled.
        recipe: As for :func:`foci.selectors.fit`; targets are always the labels.
        seed: Of the head, the order, the noise and dropout; 0 or more.
        epochs: Stop after this many of the recipe's epochs; None for all of them.

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
    device, dtype = home(gated.backbone)
    batch = batch_of(cohort, slides).to(device)
    tiles = gated.prepare(batch.features.to(dtype))
    coords = batch.features.new_zeros(*batch.mask.shape, 2)
    if batch.coords is not None:
        for row, (places, real) in enumerate(zip(batch.coords, batch.mask, strict=True)):
            coords[row, real] = unit_box(places[real])
    full = gated.backbone.aggregate(tiles["tokens"], batch.mask)
    return GatedBatch(tiles, batch.mask, coords.to(dtype), batch.labels, full)
