"""An audit folder made by hand: tiles with known evidence, and a pool that averages it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foci.audits import AuditedSlide, AuditSettings, Curve, RankedTiles, StoredAudit
from foci.audits.folder import CURVES, MANIFEST, SUMMARY, part_name
from foci.audits.manifest import Manifest, SelectorRecord
from foci.audits.numbers import summarise
from foci.audits.records import Localised, RankingTruth, TruthRecord
from foci.audits.settings import null_counts
from foci.files.hashes import file_digest
from foci.rankings import NULL_MAPS
from foci.rankings.controls import uniform_scores
from tests.makers.curves import DELETION, agreement
from tests.makers.folders import bare_manifest, write_tables

Floats = NDArray[np.float64]

HOSTILE = (
    "<script>alert(1)</script>",
    "a</script><img src=x onerror=alert(2)>",
    "\"quotes\" & 'more' <!-- not a comment",
)
SEEDS = (0, 1, 2)
STEP = 256


@dataclass(frozen=True)
class Plan:
    """What to make: slides of which sizes, of how many classes, with which names."""

    n_slides: int = 20
    n_tiles: int | None = None
    n_classes: int = 2
    k_max: int = 256
    counts: tuple[int, ...] | None = None
    random_orders: int = 10
    null_maps: int = 39
    labelled: bool = True
    names: Sequence[str] = HOSTILE
    rankings: Sequence[str] = ("native", "selector", "random")
    synthetic_note: bool = True
    step: int = STEP


def make(folder: Path, plan: Plan = Plan()) -> StoredAudit:  # noqa: B008
    """Write the whole folder, summary included."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [_Made(plan, index) for index in range(plan.n_slides)]
    slides = [m.slide for m in made]
    curves = [c for name in plan.rankings for m in made for c in m.curves(name)]
    curves += [m.null_curve() for m in made if plan.null_maps]
    skipped = [
        AuditedSlide("unreadable", "P900", skipped="unreadable.h5: is truncated; copy it again"),
        AuditedSlide("<b>empty</b>", "P901", skipped="holds no tile; no tissue was found"),
    ]
    write_tables(folder, curves, [*slides, *skipped], [m.tiles for m in made])
    settings = AuditSettings(
        rankings=tuple(plan.rankings),
        k_max=plan.k_max,
        random_orders=plan.random_orders,
        null_maps=plan.null_maps,
        seeds=SEEDS,
        n_boot=200,
    )
    hashes = {part_name(CURVES, 0): file_digest(folder / part_name(CURVES, 0))}
    manifest = _manifest(plan, settings, hashes)
    (folder / MANIFEST).write_text(manifest.model_dump_json(exclude_none=True))
    audit = StoredAudit.load(folder)
    found = agreement(audit.curves, audit.tiles())
    summary = summarise(
        audit.measured(), audit.curves, _classes(plan), settings, found, n_skipped=2
    )
    (folder / SUMMARY).write_text(summary.to_json())
    return StoredAudit.load(folder)


class _Made:
    """One slide: evidence per tile, and curves of a classifier that averages evidence."""

    def __init__(self, plan: Plan, index: int) -> None:
        self.plan, self.index = plan, index
        rng = np.random.default_rng(index)
        n = plan.n_tiles or int(rng.integers(40, 700))
        if index == 4 and plan.n_tiles is None:
            n = 1
        self.target = index % plan.n_classes
        cells = rng.permutation(48 * 40)[:n] if n > 900 else _tissue(rng, n)
        self.xy = np.sort(cells)
        column, row = self.xy % 48, self.xy // 48
        spot = np.hypot(column - rng.integers(8, 40), row - rng.integers(8, 32)) < 3.5
        hard = index % 6 == 5
        self.evidence = rng.normal(-0.1 if hard else 0.15, 0.5, n) + spot * (0.8 if hard else 3.0)
        self.scores = {"native": self.evidence * 0.55 + rng.normal(0, 1.0, n)}
        for seed in SEEDS:
            self.scores[f"selector-{seed}"] = self.evidence + rng.normal(0, 0.45, n)
        self.name = (
            plan.names[index]
            if index < len(plan.names)
            else f"TCGA-{50 + index:02d}-{4000 + index}"
        )
        placed = index != 3
        corners = np.column_stack([column + 4, row + 2]) * plan.step
        coords = corners if placed else None
        ran = {k: v for k, v in self.scores.items() if k.split("-")[0] in plan.rankings}
        self.tiles = RankedTiles(self.name, np.arange(n), coords, ran)

    @property
    def slide(self) -> AuditedSlide:
        classes = _classes(self.plan)
        wrong = self.index % 7 == 6
        label = classes[(self.target + wrong) % len(classes)] if self.plan.labelled else None
        n = len(self.tiles)
        case, content = f"P{self.index // 2:03d}", f"{self.index:064x}"
        return AuditedSlide(self.name, case, label, n, n, "px", self.plan.step, content)

    def probs(self, sums: Floats, counts: NDArray[np.int64]) -> Floats:
        """Evidence averaged over the kept tiles, as the target's logit."""
        logits = np.zeros((len(counts), self.plan.n_classes))
        logits[:, self.target] = 3.2 * sums / (counts + 2.0) + 0.35 * np.log1p(counts) - 0.4
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        return shifted / shifted.sum(axis=1, keepdims=True)

    @property
    def full(self) -> Floats:
        """Probabilities of the whole slide."""
        return self.probs(np.array([self.evidence.sum()]), np.array([len(self.tiles)]))[0]

    def curves(self, ranking: str) -> Iterator[Curve]:
        n, k_max = len(self.tiles), self.plan.k_max
        for seed in self._seeds(ranking):
            order = self._order(ranking, seed)
            running = np.cumsum(self.evidence[order])
            grid = self.plan.counts or range(1, k_max + 1)
            ks = np.array(sorted({min(k, n) for k in grid}))
            inserted = self.probs(running[ks - 1], ks)
            yield Curve(self.name, ranking, seed, "insert", n, ks, inserted, self.full)
            gone = np.unique([0, *(k for k in DELETION if k < n), *null_counts(n)])
            deleted = self.without(order, gone)
            yield Curve(self.name, ranking, seed, "delete", n, gone, deleted, self.full)

    def without(self, order: NDArray[np.int64], gone: NDArray[np.int64]) -> Floats:
        """Probabilities without the first tiles of an order."""
        running = np.cumsum(self.evidence[order])
        left = running[-1] - np.where(gone > 0, running[gone - 1], 0.0)
        return self.probs(left, len(order) - gone)

    def null_curve(self) -> Curve:
        """Deletion along directions across the slide, the same for all slides, and two more."""
        n = len(self.tiles)
        angles = np.linspace(0, 2 * np.pi, self.plan.null_maps + 2, endpoint=False)
        place = np.stack([self.xy % 48, self.xy // 48])
        gone = np.array([k for k in np.unique(null_counts(n)).tolist() if k], dtype=np.int64)
        along = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ place
        each = [self.without(np.argsort(-scores, kind="stable"), gone) for scores in along]
        probs = np.concatenate(each)
        return Curve(self.name, NULL_MAPS, None, "delete", n, gone, probs, self.full)

    def _seeds(self, ranking: str) -> Sequence[int | None]:
        if ranking == "random":
            return range(self.plan.random_orders)
        return SEEDS if ranking == "selector" else (None,)

    def _order(self, ranking: str, seed: int | None) -> NDArray[np.int64]:
        if ranking == "random":
            assert seed is not None
            return np.argsort(-uniform_scores(self.name, len(self.tiles), seed), kind="stable")
        return self.tiles.order(ranking if seed is None else f"{ranking}-{seed}")


def _tissue(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """The n cells of a 48 x 40 slide that lie nearest to a wavy blob."""
    cells = np.arange(48 * 40)
    x, y = (cells % 48 - 23.5) / 24, (cells // 48 - 19.5) / 20
    angle = np.arctan2(y, x)
    edge = 1 + 0.2 * np.sin(3 * angle + rng.uniform(0, 6)) + 0.12 * np.sin(5 * angle)
    return np.argsort(np.hypot(x, y) / edge, kind="stable")[:n]


def _classes(plan: Plan) -> tuple[str, ...]:
    return ("LUAD", "LUSC") if plan.n_classes == 2 else tuple("ABCDEFGH"[: plan.n_classes])


def _against_truth(plan: Plan, precision: float, average: float) -> RankingTruth:
    def found(estimate: float) -> Localised:
        low, high = estimate - 0.1, estimate + 0.1
        return Localised(estimate=estimate, low=low, high=high, chance=0.06, n_slides=plan.n_slides)

    return RankingTruth(
        average_precision=found(average),
        precision8=found(precision),
        precision32=found(precision / 2),
        froc=[found(0.5)] * 4,
        deciding=found(precision),
    )


def _manifest(plan: Plan, settings: AuditSettings, hashes: dict[str, str]) -> Manifest:
    return bare_manifest(
        "abmil <demo> & co",
        parameters=132609,
        settings=settings,
        sources={"features": "features_demo", "model": "abmil"},
        classes=list(_classes(plan)),
        split="test",
        slides={"train": 60, "val": 20, "audited": plan.n_slides, "skipped": 2},
        features_sha256="a" * 64,
        selectors=[
            SelectorRecord(
                seed=s, site="attention", recipe="default", best_epoch=9 + s,
                weights_sha256=f"{s}" * 64,
            )
            for s in SEEDS
        ],
        notes=["Synthetic slides: no patient, no diagnosis."] if plan.synthetic_note else [],
        versions={"foci": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6", "python": "3.11.7"},
        finished="2026-11-16T08:03:20+00:00",
        files=hashes,
        truth=TruthRecord(
            what="Tiles planted by the maker of the synthetic slides.",
            n_slides=plan.n_slides, n_cases=plan.n_slides, n_tiles=100 * plan.n_slides,
            false_tiles=[1, 2, 4, 8],
            rankings={
                "native": _against_truth(plan, 0.41, 0.33),
                "selector": _against_truth(plan, 0.83, 0.71),
            },
        ),
    )  # fmt: skip
