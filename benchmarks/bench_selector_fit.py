"""An epoch of fitting a selector against the straightforward loop.

The straightforward loop pads every bag to 1,024 tiles, gates the raw 1,536-d features, and sends
the full, the keep and the drop view through projection and classifier in every step. Both minimise
the same loss, which is checked. The bags' one-time preparation is shared out over 30 epochs.

A transformer under an attention gate is also compared, step by step in the same loop, with the
view that leaves the gate to the classifier's own attention.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from foci import backbones, selectors
from foci.backbones import Backbone
from foci.backbones.training.loop import epoch_order
from foci.bags import Bag, Cohort, Slide
from foci.bags.store import BagStore
from foci.selectors import SelectorRecipe
from foci.selectors.fitting import Fit, new_head, randomness, train_epoch, validate
from foci.selectors.gated import FeatureGated, GatedBackbone, choose_site, gate_backbone
from foci.selectors.objective import GatedBatch, loss_terms, total, unit_box
from foci.selectors.prepared import PreparedBags
from foci.selectors.selector import Head, scores_at
from timing import alternately, seconds

WIDTH, N_CAP, EPOCHS = 1536, 1024, 30
TILES = (1024, 1024, 640, 1024, 1024, 420, 1024, 860)
CASES = (
    ("abmil", "paper-ste", len(TILES), 5, 3.0),
    ("clam-sb", "paper-ste", len(TILES), 5, 3.0),
    ("acmil", "paper-ste", len(TILES), 5, 3.0),
    ("abmil", "per class", len(TILES), 5, 3.0),
    ("transmil", "paper-ste", 4, 2, 1.2),
    ("transmil", "per class", 4, 1, 3.0),
    ("transmil", "default", 4, 1, 3.0),
)
PER_CLASS = {
    "class_conditional": True, "width": 256, "sites": ("attention", "feature"),
    "budget.kind": "octaves", "budget.k_max": 32, "weights.budget": 0.0,
}  # fmt: skip
"""Of ``paper-ste``: one score per class, K drawn."""
SMALL = {"d": 128, "heads": 4, "depth": 2, "hidden": 256}
TRANSFORMERS = (
    ("paper, 1,024 x 1,536", {}, 1536, (1024, 1024), 1, 3.0),
    ("small, 375 x 1,280", SMALL, 1280, (375, 375), 9, 1.3),
)


class InMemory(BagStore):
    """Bags that are already there."""

    def __init__(self, bags: dict[str, Bag]) -> None:
        super().__init__()
        self.bags = bags

    def bag(self, slide: Slide) -> Bag:
        """The bag."""
        return self.bags[slide.slide_id]


class AttentionFromFeatures(GatedBackbone):
    """The attention gate without anything kept: embed again in every view."""

    def logits(self, tiles: dict[str, Tensor], mask: Tensor, gate: Tensor) -> Tensor:
        """Embed, then gate."""
        return self.backbone.aggregate(self.backbone.embed(tiles["features"]), mask, gate)


class OwnAttention(GatedBackbone):
    """The attention gate left to the classifier, whatever it closes."""

    def logits(self, tiles: dict[str, Tensor], mask: Tensor, gate: Tensor) -> Tensor:
        """Gate."""
        return self.backbone.aggregate(tiles["tokens"], mask, gate)


def main() -> None:
    """Print the ratio for some pooling classifiers and the paper's TransMIL."""
    print(f"bags of {min(TILES)} to {max(TILES)} tiles x {WIDTH}, batches of 2")
    for name, recipe, n_bags, repeats, least in CASES:
        slow, fast = compare(name, recipe_of(recipe), n_bags, repeats)
        times = f"{slow / n_bags * 1e3:7.1f} -> {fast / n_bags * 1e3:6.1f} ms per bag and epoch"
        ratio = f"ratio {slow / fast:5.1f}  (must be at least {least})"
        print(f"  {name:<9} {recipe:<18} {times}  {ratio}", flush=True)
    print(
        "TransMIL, one score per class, a batch of 2: its own gated attention against FOCI's view"
    )
    for name, widths, d_in, tiles, repeats, least in TRANSFORMERS:
        for what, (slow, fast) in compare_views(widths, d_in, tiles, repeats).items():
            times = f"{slow * 1e3:8.1f} -> {fast * 1e3:7.1f} ms"
            ratio = f"ratio {slow / fast:5.1f}  (must be at least {least})"
            print(f"  {name:<22} {what:<10} {times}  {ratio}", flush=True)


def recipe_of(name: str) -> SelectorRecipe:
    """The recipe of a case."""
    if name == "per class":
        return selectors.vary(selectors.recipe("paper-ste"), PER_CLASS)
    return selectors.recipe(name)


def compare(name: str, recipe: SelectorRecipe, n_bags: int, repeats: int) -> tuple[float, float]:
    """Seconds per epoch of the straightforward loop and of FOCI."""
    torch.manual_seed(0)
    backbone = backbones.create(name, d_in=WIDTH, n_classes=2).eval().requires_grad_(False)
    site = choose_site(backbone, recipe.sites)
    cohort = synthetic(n_bags)
    head = new_head(backbone, recipe, seed=0)
    slow_head = copy.deepcopy(head)

    def prepared() -> PreparedBags:
        reads = recipe.start != "random"
        bags = PreparedBags(
            cohort, gate_backbone(backbone, site), "label", memory_gb=4, evidence=reads
        )
        bags.batch(cohort.slides)
        return bags

    known = prepared()
    columns = {
        slide.slide_id: known[slide].tiles["evidence"]
        for slide in cohort.slides
        if recipe.start != "random"
    }
    fit = Fit(head, known, cohort.slides, (), recipe, seed=0)
    optimizer, slow_optimizer = (
        torch.optim.AdamW(h.parameters(), lr=5e-4, weight_decay=0.3) for h in (head, slow_head)
    )
    view = FeatureGated(backbone) if site == "feature" else AttentionFromFeatures(backbone)

    def fast() -> float:
        return train_epoch(fit, optimizer, 1)[1]

    def slow() -> float:
        return straightforward(slow_head, slow_optimizer, view, cohort, recipe, columns)

    gap = abs(fast() - slow())
    assert gap < 1e-3, f"the two loops minimise different losses: {gap}"
    slow_seconds, fast_seconds = alternately(slow, fast, repeats)
    return slow_seconds, fast_seconds + seconds(prepared, 1) / EPOCHS


def compare_views(
    widths: dict[str, int], d_in: int, tiles: tuple[int, ...], repeats: int
) -> dict[str, tuple[float, float]]:
    """Seconds of a training step and of a validation, through both views of a TransMIL."""
    torch.manual_seed(0)
    backbone = backbones.create("transmil", d_in=d_in, n_classes=2, **widths)
    backbone.eval().requires_grad_(False)
    recipe, cohort = recipe_of("per class"), synthetic(len(tiles), tiles, d_in)
    steps: list[Callable[[], float]] = []
    validations: list[Callable[[], float]] = []
    for view in (OwnAttention(backbone), gate_backbone(backbone, "attention")):
        head = new_head(backbone, recipe, seed=0)
        bags = PreparedBags(cohort, view, "label", memory_gb=4)
        fit = Fit(head, bags, cohort.slides, cohort.slides, recipe, seed=0)
        optimizer = torch.optim.AdamW(head.parameters(), lr=5e-4, weight_decay=0.3)
        steps.append(partial(_step, fit, optimizer))
        validations.append(partial(_validation, fit))
    found = {}
    for what, (slow, fast) in (("training", steps), ("validation", validations)):
        gap = abs(fast() - slow())
        assert gap < 1e-3, f"the two views minimise different losses: {gap}"
        found[what] = alternately(slow, fast, repeats)
    return found


def _step(fit: Fit, optimizer: torch.optim.Optimizer) -> float:
    return train_epoch(fit, optimizer, 1)[1]


def _validation(fit: Fit) -> float:
    return validate(fit)[0]


def straightforward(
    head: Head,
    optimizer: torch.optim.Optimizer,
    view: GatedBackbone,
    cohort: Cohort,
    recipe: SelectorRecipe,
    columns: dict[str, Tensor],
) -> float:
    """One epoch without any shortcut but that evidence is known; the mean loss."""
    rng, generator = randomness(0, 1)
    order = epoch_order(cohort.slides, balanced=False, rng=rng)
    steps, losses = len(order) // 2, []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = recipe.schedule.rate(step, steps)
        batch = padded_to_cap(view.backbone, cohort, order[2 * step : 2 * step + 2], columns)
        scores = scores_at(head, batch.tiles, batch.targets)
        k = recipe.budget.draw(batch.n_tiles, generator)
        terms = loss_terms(batch, scores, view, recipe.gate, k, recipe.weights, generator)
        loss = total(terms, recipe.weights)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return float(np.mean(losses))


def padded_to_cap(
    backbone: Backbone, cohort: Cohort, slides: list[Slide], columns: dict[str, Tensor]
) -> GatedBatch:
    """Raw features of two bags, their tokens and the full view."""
    features, coords = torch.zeros(2, N_CAP, WIDTH), torch.zeros(2, N_CAP, 2)
    mask = torch.zeros(2, N_CAP, dtype=torch.bool)
    for row, slide in enumerate(slides):
        bag = cohort.store.bag(slide)
        features[row, : len(bag)], mask[row, : len(bag)] = bag.x, True
        coords[row, : len(bag)] = unit_box(torch.from_numpy(bag.coords))
    tokens = backbone.embed(features)
    targets = torch.tensor([cohort.target(slide.slide_id) for slide in slides])
    tiles = {"tokens": tokens, "features": features}
    if columns:
        own = [columns[slide.slide_id] for slide in slides]
        tiles["evidence"] = torch.zeros(2, N_CAP, *own[0].shape[1:], dtype=own[0].dtype)
        for row, known in enumerate(own):
            tiles["evidence"][row, : len(known)] = known
    return GatedBatch(tiles, mask, coords, targets, backbone.aggregate(tokens, mask))


def synthetic(n_bags: int, tiles: tuple[int, ...] = TILES, d_in: int = WIDTH) -> Cohort:
    """Bags of noise."""
    rng = np.random.default_rng(0)
    bags, slides = {}, []
    for i, n in enumerate(tiles[:n_bags]):
        x = rng.standard_normal((n, d_in), dtype=np.float32)
        coords = np.stack([np.arange(n) % 32, np.arange(n) // 32], axis=1) * 256
        bags[f"s{i}"] = Bag(f"s{i}", x, coords)
        slides.append(Slide(f"s{i}", f"s{i}", "ab"[i % 2], "train"))
    return Cohort(tuple(slides), ("a", "b"), store=InMemory(bags))


if __name__ == "__main__":
    main()
