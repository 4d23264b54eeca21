"""Control experiment: train the classifier together with the selector.

The paper found that this costs the classifier more than 15 points of AUC within two epochs. It
cannot be reached through a recipe or :func:`foci.selectors.fit`, and it never changes the given
classifier: it trains a copy, which is then another model.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from foci.backbones.base import Backbone
from foci.backbones.freezing import home
from foci.backbones.training.batches import batch_of, epoch_order
from foci.backbones.training.evaluate import Predictions, predict
from foci.bags import Cohort, Slide
from foci.errors import FociError
from foci.progress import Progress
from foci.selectors.fitting.batch import GatedBatch
from foci.selectors.fitting.fit import new_head
from foci.selectors.fitting.loop import randomness
from foci.selectors.fitting.losses import unit_box
from foci.selectors.fitting.objective import loss_terms, total
from foci.selectors.fitting.preflight import check_seed
from foci.selectors.gated.base import GatedBackbone
from foci.selectors.gated.choice import choose_site, gate_backbone
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.selector import Head, scores_at

Scores = dict[str, float | None]
"""Numbers by name; None where one is not defined."""

BASE_SHARE = 0.2
"""The classifier's learning rate as a share of the selector's: the paper multiplies by 5."""


@dataclass(frozen=True)
class JointControl:
    """Result of :func:`train_jointly`.

    Attributes:
        backbone: The copy that was trained: another model than the one given.
        head: The head that was trained with it.
        before: Scores of the classifier on the validation slides as it was given.
        epochs: Scores of the copy on the validation slides after every epoch.
    """

    backbone: Backbone
    head: Head
    before: Scores
    epochs: list[Scores]


def train_jointly(
    backbone: Backbone,
    cohort: Cohort,
    recipe: SelectorRecipe,
    *,
    seed: int = 0,
    score: Callable[[Predictions], Scores] | None = None,
    epochs: int | None = None,
    progress: Progress = lambda items, what: items,
) -> JointControl:
    r"""Minimise :math:`\mathcal{L}_\mathrm{full} + \mathcal{L}_\mathrm{selector}` over both.

    Args:
        backbone: Copied; itself never changed.
        cohort: With splits ``train`` and ``val``, labelled.
        recipe: As for :func:`foci.selectors.fit`; targets are always the labels.
        seed: Of the head, the order, the noise and dropout.
        score: Numbers from the predictions on the validation slides; default is loss and accuracy.
        epochs: Stop after this many of the recipe's epochs; None for all of them.
        progress: Wraps the steps of an epoch.
    """
    seed = check_seed(seed)
    if recipe.start != "random":
        what = f"{recipe.name} starts as evidence of a classifier that changes meanwhile"
        raise FociError("recipe", what, "choose one that starts at random (paper-ste)")
    score = score or (lambda p: {"loss": p.loss, "accuracy": p.accuracy})
    train, val = cohort.split("train"), cohort.split("val")
    before = score(predict(backbone, val))
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
            for step in progress(range(steps), f"joint {number}/{schedule.epochs}"):
                rate = schedule.rate((number - 1) * steps + step, steps)
                for group, share in zip(optimizer.param_groups, (1.0, BASE_SHARE), strict=True):
                    group["lr"] = rate * share
                batch = _batch_with_gradients(gated, cohort, order[step * size : (step + 1) * size])
                scores = scores_at(head, batch.tiles, batch.targets, batch.mask)
                k = recipe.budget.draw(batch.n_tiles, generator)
                terms = loss_terms(batch, scores, gated, recipe.gate, k, recipe.weights, generator)
                optimizer.zero_grad(set_to_none=True)
                loss = terms["full"] + total(terms, recipe.weights)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            scored.append(score(predict(model, val)))
    return JointControl(model.eval().requires_grad_(False), head, before, scored)


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
