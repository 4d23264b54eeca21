"""Draw a synthetic cohort: patients, tissue on a grid of tiles, and features with a planted class.

A cohort is planned first (:func:`plan_cohort`), its slides are then drawn one by one
(:func:`plant`): where the tissue lies, what every tile shows, and the features that follow from it.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from foci.errors import FociError
from foci.outputs import Output

CLASSES = ("A-type", "B-type", "C-type")
SITES = ("site-1", "site-2")

PATCH_SIZE = 256
"""Side of a tile in pixels at the target magnification."""

TARGET_MAGNIFICATION = 20
"""0.5 micrometres per pixel."""

FEWEST, MOST = 120, 600
"""Tiles of a slide."""

WIDTH = 64
"""Feature width D."""

_LENGTHS = {
    "stroma": 2.5,
    "fat": 2.5,
    "lymphoid": 5.5,
    "necrosis": 4.0,
    "normal epithelium": 4.5,
    "tumour": 2.5,
    "pen": 9.0,
    "fold": 9.0,
}
"""Dense benign tissue and artefacts outshine the tumour, so that a tile's norm says little."""

KINDS = tuple(_LENGTHS)
"""What a tile can show; the last two are artefacts."""

TUMOUR, PEN, FOLD = (KINDS.index(kind) for kind in ("tumour", "pen", "fold"))

# Patients, classes, sites and splits


@dataclass(frozen=True)
class PlannedSlide:
    """What is decided about a slide before its tiles are drawn.

    Attributes:
        label: Index into :data:`CLASSES`.
        site: Index into :data:`SITES`.
        hard: Whether the witnesses carry less.
        magnification: Of level 0, 20 or 40.
        strength: How much the witnesses carry; None for what hard and other slides have. Where it
            is given, a slide has as many distractors of either class.
    """

    slide_id: str
    case_id: str
    label: int
    split: str
    site: int
    hard: bool = False
    magnification: int = TARGET_MAGNIFICATION
    strength: float | None = None


def plan_cohort(rng: np.random.Generator, slides: int, classes: int) -> list[PlannedSlide]:
    """Plan exactly ``slides`` slides, ordered by name.

    One patient in five has two slides. Classes and sites alternate over the patients; within a
    class 15 % of the patients (at least one) validate, 25 % (at least one) test, the rest train.
    15 % of the slides are hard, 10 % were scanned at 40x.
    """
    if not 2 <= classes <= len(CLASSES):
        raise FociError(f"classes={classes}", "is not possible in the demo", "choose 2 or 3")
    if slides < 4 * classes:
        raise FociError(
            f"slides={slides}",
            f"is too few for {classes} classes in three splits",
            f"choose at least {4 * classes}",
        )
    # p patients with 0.2 p second slides are 1.2 p slides in all
    n_two = round(slides * 0.2 / 1.2)
    n = slides - n_two
    two, names = rng.permutation(n) < n_two, rng.permutation(n) + 1
    plans: list[PlannedSlide] = []
    for index, (has_two, name) in enumerate(zip(two, names, strict=True)):
        label, place = index % classes, index // classes
        in_class = len(range(label, n, classes))
        n_val, n_test = max(1, round(0.15 * in_class)), max(1, round(0.25 * in_class))
        split = "val" if place < n_val else "test" if place < n_val + n_test else "train"
        case_id = f"demo-{name:04d}"
        plans += [
            PlannedSlide(f"{case_id}-{number}", case_id, label, split, place % len(SITES))
            for number in range(1, 3 if has_two else 2)
        ]
    plans.sort(key=lambda plan: plan.slide_id)
    hard = _mark(rng, plans, 0.15)
    at_40 = _mark(rng, plans, 0.1)
    return [
        replace(plan, hard=bool(is_hard), magnification=40 if is_at_40 else 20)
        for plan, is_hard, is_at_40 in zip(plans, hard, at_40, strict=True)
    ]


def _mark(rng: np.random.Generator, plans: list[PlannedSlide], share: float) -> NDArray[np.bool_]:
    """Mark ``share`` of the slides of every class and split, at random."""
    strata = [(plan.label, plan.split) for plan in plans]
    marked = np.zeros(len(strata), dtype=np.bool_)
    for stratum in sorted(set(strata)):
        members = [index for index, own in enumerate(strata) if own == stratum]
        marked[rng.permutation(members)[: round(share * len(members))]] = True
    return marked


# Tiles on a grid: neighbours, connected pieces, growing regions, smooth fields

Neighbours = list[list[int]]
"""For every tile the indices of the tiles that touch it, by a side or a corner."""


def neighbours(cells: NDArray[Any]) -> Neighbours:
    """The 8-neighbours of every tile, for tiles given as (column, row).

    >>> neighbours(np.array([[0, 0], [1, 1], [5, 0]]))
    [[1], [0], []]
    """
    near = KDTree(cells).query_ball_point(cells, r=1, p=np.inf)
    return [[other for other in own if other != tile] for tile, own in enumerate(near)]


def pieces(touching: Neighbours) -> NDArray[np.int64]:
    """Connected component of every tile, numbered from 0 in tile order.

    >>> pieces([[2], [], [0]]).tolist()
    [0, 1, 0]
    """
    ends = np.cumsum([0, *map(len, touching)])
    others = np.fromiter(chain.from_iterable(touching), dtype=np.int64, count=ends[-1])
    graph = csr_array((np.ones(len(others)), others, ends), shape=(len(touching),) * 2)
    numbers: NDArray[np.int64] = connected_components(graph, directed=False)[1].astype(np.int64)
    return numbers


def grow(
    touching: Neighbours, seed: int, appeal: NDArray[Any], size: int, within: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Grow a region ``[N]`` from ``seed``, at each step by its most appealing neighbour.

    The lower tile index breaks ties. The region is connected at every step, and smaller than
    ``size`` only where ``within`` ends. Written by hand because no library does it: flooding in
    SciPy has neither an order nor a size.

    >>> line = [[1], [0, 2], [1, 3], [2]]
    >>> grow(line, 1, np.array([0, 9, 5, 7]), 3, np.ones(4, dtype=bool)).tolist()
    [False, True, True, True]
    """
    region = np.zeros(len(touching), dtype=np.bool_)
    seen = {seed}
    waiting = [(-float(appeal[seed]), seed)]
    left = size
    while waiting and left:
        _, tile = heapq.heappop(waiting)
        region[tile] = True
        left -= 1
        for other in touching[tile]:
            if other not in seen and within[other]:
                seen.add(other)
                heapq.heappush(waiting, (-float(appeal[other]), other))
    return region


_WAVES = 24


def smooth_field(
    rng: np.random.Generator, places: NDArray[Any], wavelength: float
) -> NDArray[np.float64]:
    r"""A random field of mean 0 and variance 1, similar at places closer than ``wavelength``.

    .. math:: f(u) = \sqrt{2/M} \sum_{m=1}^{M} \cos(2\pi\, k_m \cdot u / \lambda + \varphi_m),
       \qquad k_m \sim \mathcal{N}(0, I / 4), \quad \varphi_m \sim \mathcal{U}(0, 2\pi)

    at places u ``[n, 2]``, with the wavelength :math:`\lambda` in their units. It tends to a
    Gaussian process with a squared-exponential kernel as M grows (M = 24 here).
    """
    waves = rng.normal(scale=0.5, size=(2, _WAVES))
    phases = rng.uniform(0, 2 * np.pi, size=_WAVES)
    angles = 2 * np.pi / wavelength * (places @ waves) + phases
    field: NDArray[np.float64] = np.sqrt(2 / _WAVES) * np.cos(angles).sum(axis=1)
    return field


# Tissue: its shape, and what every tile shows


@dataclass(frozen=True, eq=False)
class Layout:
    """The tiles of a slide on its grid.

    Attributes:
        cells: ``[N, 2]`` int64, column and row of every tile, row by row.
        columns: Width of the canvas in tiles; ``rows`` is its height.
        piece: ``[N]``, which piece of tissue each tile belongs to.
    """

    cells: NDArray[np.int64]
    columns: int
    rows: int
    touching: Neighbours
    piece: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.cells)


def lay_out(rng: np.random.Generator) -> Layout:
    r"""Draw a canvas and its tissue.

    The number of tiles wanted is log-normal, :math:`n = 250\, e^{0.35 z}` clipped to [120, 600].
    Pieces of tissue are bumps side by side at :math:`c_p` with radii :math:`r_p`, made ragged by a
    smooth field f, and the tissue is where the sum is highest:

    .. math:: h(u) = \max_p\, \big(1 - \lVert (u - c_p) / r_p \rVert^2\big) + 0.3\, f(u), \qquad
       \text{tissue} = \text{the } n \text{ cells with the largest } h

    Islands of fewer than 8 tiles are dropped, as tissue segmentation does, unless that would leave
    fewer than 120 tiles.
    """
    wanted = int(np.clip(250 * np.exp(0.35 * rng.normal()), FEWEST, MOST))
    n_pieces = int(rng.choice([1, 2, 3], p=[0.4, 0.4, 0.2]))
    aspect = rng.uniform(1.1, 1.5) * (1 if n_pieces == 1 else 1.3)
    rows = round(np.sqrt(wanted / 0.3 / aspect))  # the tissue covers 30 % of the canvas
    columns = round(rows * aspect)
    inside = np.stack(np.meshgrid(np.arange(1, columns - 1), np.arange(1, rows - 1)), axis=-1)
    cells = inside.reshape(-1, 2).astype(np.int64)
    slot, height = columns / n_pieces, np.full(len(cells), -np.inf)
    for number in range(n_pieces):
        centre = np.array([(number + rng.uniform(0.42, 0.58)) * slot, rng.uniform(0.4, 0.6) * rows])
        radii = rng.uniform(0.3, 0.5, size=2) * [slot, rows]
        height = np.maximum(height, 1 - (((cells - centre) / radii) ** 2).sum(axis=1))
    height += 0.3 * smooth_field(rng, cells, wavelength=rows / 2)
    cells = cells[np.sort(np.argsort(-height, kind="stable")[:wanted])]
    piece = pieces(neighbours(cells))
    without_islands = cells[np.bincount(piece)[piece] >= 8]
    if len(without_islands) >= FEWEST:
        cells = without_islands
    touching = neighbours(cells)
    return Layout(cells, columns, rows, touching, pieces(touching))


@dataclass(frozen=True, eq=False)
class TissueMap:
    """What the tiles of one slide show.

    Attributes:
        kind: ``[N]`` int64, index into :data:`KINDS`.
        witness: ``[N]`` bool, the planted rationale: one connected cluster of tumour tiles.
        distractor: ``[N]`` bool, tumour tiles that hint at a class drawn at random.
    """

    kind: NDArray[np.int64]
    witness: NDArray[np.bool_]
    distractor: NDArray[np.bool_]


def map_tissue(rng: np.random.Generator, layout: Layout) -> TissueMap:
    r"""Assign a kind to every tile and choose witnesses, distractors and artefacts.

    - Benign tissue: :math:`\arg\max_t (f_t(u) + b_t)` over one smooth field per kind, with
      :math:`b_t` making stroma common and necrosis rare.
    - Tumour: 20 to 40 % of the tiles, grown in the largest piece from the peak of another field.
    - Witnesses: 2 to 6 % of the tiles, at least 3, grown around a random tumour tile.
    - Distractors: 8 % of the other tumour tiles, scattered.
    - Artefacts: 2 to 6 tiles anywhere but on witnesses and distractors, pen or fold.
    """
    n = len(layout)
    frequency = np.array([0.7, 0.1, -0.2, -0.4, 0.1])
    fields = [smooth_field(rng, layout.cells, wavelength=10) for _ in frequency]
    kind = np.argmax(np.stack(fields, axis=1) + frequency, axis=1)
    largest = layout.piece == np.bincount(layout.piece).argmax()
    field = smooth_field(rng, layout.cells, wavelength=20)
    peak = int(np.argmax(np.where(largest, field, -np.inf)))
    size = round(rng.uniform(0.2, 0.4) * n)
    tumour = grow(layout.touching, peak, field, size, largest)
    kind[tumour] = TUMOUR
    size = int(rng.integers(max(3, math.ceil(0.02 * n)), int(0.06 * n), endpoint=True))
    seed = int(rng.choice(np.flatnonzero(tumour)))
    distance = np.hypot(*(layout.cells - layout.cells[seed]).T)
    witness = grow(layout.touching, seed, -distance, size, tumour)
    others = np.flatnonzero(tumour & ~witness)
    distractor = np.zeros(n, dtype=np.bool_)
    chosen = rng.choice(others, size=math.ceil(0.08 * len(others)), replace=False)
    distractor[chosen] = True
    free = np.flatnonzero(~witness & ~distractor)
    spoilt = rng.choice(free, size=rng.integers(2, 6, endpoint=True), replace=False)
    kind[spoilt] = rng.choice([PEN, FOLD], size=len(spoilt))
    return TissueMap(kind, witness, distractor)


# Features: only the witnesses carry the class


@dataclass(frozen=True, eq=False)
class Palette:
    """The directions in feature space that a cohort shares.

    Attributes:
        kinds: ``[len(KINDS), D]``, prototype of every kind of tile.
        classes: ``[C, D]``, the direction that witnesses of a class carry.
        sites: ``[S, D]``, shift of every site (stain and scanner).
    """

    kinds: NDArray[np.float64]
    classes: NDArray[np.float64]
    sites: NDArray[np.float64]


def mix_palette(rng: np.random.Generator, classes: int) -> Palette:
    r"""Draw prototypes and class directions, all orthogonal, and the shift of every site.

    .. math:: \mu_t = \rho_t\, q_t, \quad v_c = q_{T + c}, \quad b_s \sim \mathcal{N}(0, 0.15^2 I)

    with orthonormal q, and lengths :math:`\rho_t` between 2.5 (tumour) and 9 (artefacts).
    """
    q = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0].T
    lengths = np.array([_LENGTHS[kind] for kind in KINDS])
    return Palette(
        kinds=lengths[:, None] * q[: len(KINDS)],
        classes=q[len(KINDS) : len(KINDS) + classes],
        sites=rng.normal(scale=0.15, size=(len(SITES), WIDTH)),
    )


def encode(
    rng: np.random.Generator, palette: Palette, tissue: TissueMap, plan: PlannedSlide
) -> NDArray[np.float32]:
    r"""Features ``[N, D]`` of the tiles of one slide; those of a hard one carry less.

    .. math:: x_i = \mu_{t(i)} + \sum_c a_{ic} v_c + b_{\text{site}} + s + 0.5\, \varepsilon_i,
       \qquad s \sim \mathcal{N}(0, 0.1^2 I) \text{ once per slide}, \quad
       \varepsilon_i \sim \mathcal{N}(0, I)

    with the amounts :math:`a_{ic}` of :func:`class_amounts`.
    """
    classes = len(palette.classes)
    amounts = class_amounts(
        rng, tissue, label=plan.label, classes=classes, hard=plan.hard, strength=plan.strength
    )
    return with_amounts(rng, palette, tissue, plan, amounts)


def with_amounts(
    rng: np.random.Generator,
    palette: Palette,
    tissue: TissueMap,
    plan: PlannedSlide,
    amounts: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Features ``[N, D]``, as in :func:`encode`, of tiles that hold so much of each direction."""
    shift = palette.sites[plan.site] + rng.normal(scale=0.1, size=WIDTH)
    noise = rng.normal(scale=0.5, size=(len(tissue.kind), WIDTH))
    features = palette.kinds[tissue.kind] + amounts @ palette.classes + shift + noise
    return np.asarray(features, dtype=np.float32)


def class_amounts(
    rng: np.random.Generator,
    tissue: TissueMap,
    *,
    label: int,
    classes: int,
    hard: bool,
    strength: float | None = None,
) -> NDArray[np.float64]:
    r"""How much of each class's direction every tile holds, ``[N, C]``.

    .. math:: a_{ic} = m_c\, u_{ic}\, [i \in \text{tumour}]
       + g\, w_i\, [i \in \text{witnesses}, c = y] + d_i\, [i \in \text{distractors}, c = o]

    - :math:`m_c \sim \mathcal{U}(0, 1)` once per slide, :math:`u_{ic} \sim \mathcal{U}(0.5, 1.5)`:
      the tumour as a whole is a random mixture, whatever the class y;
    - :math:`w_i \sim \mathcal{U}(2.6, 4.2)`, and g = 1, or :math:`g \sim \mathcal{U}(0.3, 0.7)` on
      a hard slide: the rationale;
    - :math:`d_i \sim \mathcal{U}(1.6, 2.6)` of a class o drawn once per slide, whatever y.

    Only the second term depends on y.
    """
    n = len(tissue.kind)
    amounts = rng.uniform(0, 1, size=classes) * rng.uniform(0.5, 1.5, size=(n, classes))
    amounts[tissue.kind != TUMOUR] = 0
    drawn = rng.uniform(0.3, 0.7) if hard else 1.0
    given = drawn if strength is None else strength
    amounts[:, label] += tissue.witness * given * rng.uniform(2.6, 4.2, size=n)
    other = np.full(n, rng.integers(classes))
    if strength is not None:
        amounts *= tissue.witness[:, None]  # nothing but witnesses and distractors speaks
        other = np.cumsum(tissue.distractor) % classes
    softly = 1.0 if strength is None else 0.6
    amounts[np.arange(n), other] += tissue.distractor * softly * rng.uniform(1.6, 2.6, size=n)
    return amounts


@dataclass(frozen=True, eq=False)
class PlantedSlide:
    """A slide with its answer key.

    Attributes:
        features: ``[N, D]`` float32.
        coords: ``[N, 2]`` int64, top-left corner (x, y) of each tile in level-0 pixels.
        patch_size: Side of a tile in level-0 pixels.
        size: Width and height of level 0.
        marks: ``[N, L]`` which tile carries which label; None of a cohort of classes.
    """

    plan: PlannedSlide
    features: NDArray[np.float32]
    coords: NDArray[np.int64]
    patch_size: int
    size: tuple[int, int]
    tissue: TissueMap
    marks: NDArray[np.bool_] | None = None


def plant(rng: np.random.Generator, plan: PlannedSlide, palette: Palette) -> PlantedSlide:
    """Draw the tiles of one planned slide."""
    layout = lay_out(rng)
    tissue = map_tissue(rng, layout)
    if plan.strength == 0:
        tissue = replace(tissue, witness=np.zeros(len(layout), dtype=np.bool_))
    return on_its_grid(rng, plan, layout, tissue, encode(rng, palette, tissue, plan))


def on_its_grid(
    rng: np.random.Generator,
    plan: PlannedSlide,
    layout: Layout,
    tissue: TissueMap,
    features: NDArray[np.float32],
    marks: NDArray[np.bool_] | None = None,
) -> PlantedSlide:
    """The slide with its tiles in level-0 pixels."""
    side = PATCH_SIZE * plan.magnification // TARGET_MAGNIFICATION
    width, height = np.array([layout.columns, layout.rows]) * side + rng.integers(side, size=2)
    size = int(width), int(height)
    return PlantedSlide(plan, features, layout.cells * side, side, size, tissue, marks)


# Cohorts of a risk, a number or three labels, each carried by planted tiles alone. A risk or a
# number is planted as the class of two types is: tiles of the B type raise it, tiles of the A type
# lower it. Each of the three labels has tissue of its own.

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

    and g = 0 of a third of the patients, whose slides have no witnesses and lie in the middle. Plus
    for the B type, with a Weibull hazard :math:`\lambda_0 \propto t^3`. About a fifth is censored.

    All are drawn again until the median of the validation slides, from which an audit takes the cut
    between both sides, lies in the middle half of those without witnesses. Beside them, tissue that
    says nothing would lie on one side, and a few witnesses could not decide for it.
    """
    while True:
        found = _drawn(rng, plans, output)
        val = [(found[plan.case_id].strength, plan.label) for plan in plans if plan.split == "val"]
        sides = Counter(label for strength, label in val if strength)
        if 2 * abs(sides[0] - sides[1]) <= len(val) - sides.total():
            return found


def _drawn(
    rng: np.random.Generator, plans: Sequence[PlannedSlide], output: Output
) -> dict[str, Outcome]:
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
