"""Cells of a study, the units of work, and the plan that lists them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

from foci.errors import FociError
from foci.files.digest import digest

Kind = Literal["train", "fit", "audit", "joint", "cost"]
KINDS: tuple[Kind, ...] = ("train", "fit", "audit", "joint", "cost")
MAIN = "main"
"""The variant that everything else is compared with."""
N_CAP = "n_cap"
"""The variant with another tile cap than the study's."""


@dataclass(frozen=True)
class Cell:
    """One unit of work: a training, a fit, an audit, a joint control or a measurement of cost.

    Cells with the same cohort, backbone, variant and cap, and other seeds or folds, are replicates:
    tables pool them.

    Attributes:
        kind: What is done.
        cohort: Name of the cohort in ``study.yaml``.
        backbone: Name of the backbone in ``study.yaml``.
        seed: Of training and of the selector.
        variant: ``"main"``, the recipe of a sweep (``"no-suff"``), or the value that it varies:
            ``"lambda.hinge=0.5"`` for a sweep ``lambda`` that varies ``weights.hinge``;
            ``"n_cap"`` where only the tile cap differs.
        n_cap: Most tiles per bag.
        needs: Keys of the cells whose results it reads.
        key: Digest of everything that decides its result: the name of its folder.
        fold: Fold of a ``splits/`` folder; None for a cohort without folds.
        recipe: Recipe of the selector.
        recipe_settings: What replaces settings of the recipe.
        rankings: Of an audit; empty for the study's.
        epochs: Of a joint control.
        model: Ready-made checkpoint, where nothing is trained.
        data: Digest of the cohort's rows and feature files, to notice a change.
    """

    kind: Kind
    cohort: str
    backbone: str
    seed: int
    variant: str
    n_cap: int
    needs: tuple[str, ...]
    key: str
    fold: int | None = None
    recipe: str = "default"
    recipe_settings: dict[str, Any] = field(default_factory=dict, hash=False)
    rankings: tuple[str, ...] = ()
    epochs: int | None = None
    model: str | None = None
    data: str = ""

    @property
    def name(self) -> str:
        """The cell in words, unique within a study: ``audit/nsclc/transmil/42/main``."""
        fold = () if self.fold is None else (f"fold-{self.fold}",)
        named = () if self.kind in ("train", "cost") else (self.variant,)
        if self.variant == N_CAP:
            named = (f"{N_CAP}={self.n_cap}",)
        parts = (self.kind, self.cohort, *fold, self.backbone, str(self.seed), *named)
        return "/".join(parts)


@dataclass(frozen=True)
class Plan:
    """All cells of a study: those that others need come first.

    Attributes:
        cells: In the order in which ``foci study cell --index`` counts them.
        notes: What was assumed, as sentences.
    """

    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, key: str) -> Cell:
        if key not in self._by_key:
            what = "is no cell of this plan: study.yaml or a cohort was changed meanwhile"
            raise FociError(key, what, "start the study again")
        return self._by_key[key]

    @cached_property
    def _by_key(self) -> dict[str, Cell]:
        return {cell.key: cell for cell in reversed(self.cells)}

    @property
    def digest(self) -> str:
        """Digest of the list of cells, so that an index means the same cell everywhere."""
        return digest([cell.key for cell in self.cells])

    def needs(self, cell: Cell) -> tuple[Cell, ...]:
        """The cells whose results a cell reads."""
        return tuple(self[key] for key in cell.needs)

    def select(self, **wanted: Any) -> tuple[Cell, ...]:
        """Cells whose attributes are these: ``select(kind="audit", variant="main")``."""
        return tuple(
            cell
            for cell in self.cells
            if all(getattr(cell, name) == value for name, value in wanted.items())
        )

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {"cells": [asdict(cell) for cell in self.cells], "notes": list(self.notes)}

    @classmethod
    def from_json(cls, content: Any) -> Plan:
        """The plan from plain values."""
        try:
            cells = tuple(
                Cell(**{**one, "needs": tuple(one["needs"]), "rankings": tuple(one["rankings"])})
                for one in content["cells"]
            )
            return cls(cells, tuple(content["notes"]))
        except (KeyError, TypeError) as error:
            raise FociError("plan.json", f"is no plan ({error})", "run foci study plan") from None
