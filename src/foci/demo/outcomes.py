"""Demo cohorts of a risk, a number or three labels, each carried by planted tiles alone.

A risk or a number is planted as the class of two types is: tiles of the B type raise it, tiles of
the A type lower it. Each of the three labels has tissue of its own (:data:`TISSUE`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from foci.demo.cohort import (
    KINDS,
    TUMOUR,
    Palette,
    PlannedSlide,
    PlantedSlide,
    grow,
    lay_out,
    map_tissue,
    on_its_grid,
    with_amounts,
)
from foci.outputs import Output

TISSUE = {"invasion": "tumour", "inflammation": "lymphoid", "atrophy": "normal epithelium"}
"""Labels of the demo, and the tissue that each is planted in."""

COLUMNS: dict[Output, tuple[str, ...]] = {
    "cox": ("days", "died"),
    "hazards": ("days", "died"),
    "regression": ("score",),
    "multilabel": tuple(TISSUE),
}

NOTES: dict[Output, str] = {
    "cox": "A patient's hazard follows from the planted witnesses alone: those of the B type raise "
    "it, those of the A type lower it, by as much as they show. Other tiles speak of "
    "either type as often, and more softly.",
    "regression": "The score follows from the planted witnesses alone: those of the B type raise "
    "it, those of the A type lower it, by as much as they show. Other tiles speak of "
    "either type as often, and more softly.",
    "multilabel": "Each label is carried by one cluster of tiles alone, in tissue of its own: "
    + ", ".join(f"{label} in {kind}" for label, kind in TISSUE.items())
    + ".",
}
NOTES["hazards"] = NOTES["cox"]


@dataclass(frozen=True)
class Outcome:
    """What is known of a patient: how strong the witnesses are, and the columns of the table."""

    strength: float
    columns: dict[str, str]


def draw_outcomes(
    rng: np.random.Generator, plans: Sequence[PlannedSlide], output: Output
) -> dict[str, Outcome]:
    r"""Strength and columns of every patient, by name.

    .. math:: \lambda(t) = \lambda_0(t)\, e^{\pm 5 g}, \qquad y = 50 \pm 20\, g + 2\, \varepsilon,
       \qquad g \sim \mathcal{U}(0.8, 1.2)

    and g = 0 of every third patient, whose slides have no witnesses and lie in the middle. Plus for
    the B type, with a Weibull hazard :math:`\lambda_0 \propto t^3`. About a fifth is censored.
    """
    found = {}
    for case, label in {plan.case_id: plan.label for plan in plans}.items():
        speaks, side = rng.random() < 2 / 3, 2 * label - 1
        strength = rng.uniform(0.8, 1.2) * speaks
        death = 600 * (rng.exponential() * np.exp(-5 * side * strength)) ** 0.25
        last = rng.exponential(4000)
        score = 50 + 20 * side * strength + 2 * rng.normal()
        columns = {
            "days": f"{max(1, min(death, last)):.0f}",
            "died": str(int(death <= last)),
            "score": f"{score:.2f}",
        }
        own = {name: columns[name] for name in COLUMNS[output] if name in columns}
        found[case] = Outcome(strength, own)
    return found


def plant_labels(rng: np.random.Generator, plan: PlannedSlide, palette: Palette) -> PlantedSlide:
    """Draw the tiles of one slide, and the clusters that carry its labels.

    Each label is present on every other slide, where the slide has enough of its tissue: 3 to 6 %
    of the tiles, at least 4, connected. They hold 3 to 4.5 of the label's direction, tumour tiles
    up to 0.5 of every one.
    """
    layout = lay_out(rng)
    tissue = map_tissue(rng, layout)
    n, marks = len(layout), np.zeros((len(layout), len(TISSUE)), dtype=np.bool_)
    for label, kind in enumerate(TISSUE.values()):
        size = max(4, round(rng.uniform(0.03, 0.06) * n))
        present = rng.random() < 0.5
        within = tissue.kind == KINDS.index(kind)
        seed = int(rng.integers(max(1, within.sum())))
        if present and within.sum() >= size:
            start = int(np.flatnonzero(within)[seed])
            distance = np.hypot(*(layout.cells - layout.cells[start]).T)
            marks[:, label] = grow(layout.touching, start, -distance, size, within)
    witness = marks.sum(axis=1) > 0
    tissue = replace(tissue, witness=witness, distractor=np.zeros(n, dtype=np.bool_))
    amounts = rng.uniform(0, 0.5, size=marks.shape) * (tissue.kind == TUMOUR)[:, None]
    amounts += marks * rng.uniform(3.0, 4.5, size=marks.shape)
    features = with_amounts(rng, palette, tissue, plan, amounts)
    return on_its_grid(rng, plan, layout, tissue, features, marks)
