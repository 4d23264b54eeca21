"""Find the options of a checkpoint by the answers that the user's own code gave.

A table holds the model's probabilities or logits for a few slides. Every combination of the options
that the file leaves open is loaded, and the one whose answers agree is taken; if none agrees, or
several cannot be told apart, the checkpoint is refused.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foci.backbones.base import Backbone
from foci.backbones.checkpoints.formats.base import WRAP
from foci.backbones.checkpoints.load import LoadedCheckpoint, OpenCheckpoint
from foci.backbones.freezing import frozen, to_model
from foci.bags import Cohort, Slide
from foci.bags.matching import short
from foci.bags.store import BagStore
from foci.bags.tables import Table, read_table
from foci.errors import CheckpointError, CohortError, FociError
from foci.words import counted

TOLERANCE = {"probabilities": 1e-3, "logits": 1e-2}
"""Largest difference that devices and precisions make, beside the rounding of what was printed."""

_CLEARLY = 10.0
"""A variant is told from another by differences of this ratio."""

_NUMBERED = re.compile(r"(p|prob|logit)s?_?(\d+)", re.IGNORECASE)
_SUM = 0.02
"""How far from 1 the sum of printed probabilities may be."""


@dataclass(frozen=True)
class Tried:
    """One variant of a checkpoint: the options that were tried, and its largest difference."""

    options: dict[str, Any]
    difference: float

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return values or "as loaded"


@dataclass(frozen=True)
class Agreement:
    """Which variant of a checkpoint gives the expected answers.

    Attributes:
        file: Name of the table of answers.
        kind: ``"probabilities"`` or ``"logits"``.
        slides: Number of slides compared.
        tolerance: Largest difference that counts as agreement.
        taken: The variant that agrees.
        tried: All variants, the closest first.
    """

    file: str
    kind: str
    slides: int
    tolerance: float
    taken: Tried
    tried: tuple[Tried, ...]

    @property
    def note(self) -> str:
        """The outcome in one sentence."""
        others = [f"{one} is off by {one.difference:.2g}" for one in self.tried[1:4]]
        more = f" and {len(self.tried) - 4} more" if len(self.tried) > 4 else ""
        rest = f"; also tried: {', '.join(others)}{more}" if others else ""
        slides = counted(self.slides, "slide")
        return (
            f"the {self.kind} in {self.file} agree on {slides} ({self.taken}; largest difference "
            f"{self.taken.difference:.2g}){rest}"
        )


def agree(
    path: str | Path | OpenCheckpoint,
    table: str | Path,
    cohort: Cohort,
    *,
    tolerance: float | None = None,
    device: str = "cpu",
    **options: Any,
) -> tuple[LoadedCheckpoint, Agreement]:
    """Load the variant of a checkpoint that gives the expected answers.

    Tried is every combination of the options that the file leaves open and that were not given;
    options without a short list of values (``heads``, ``landmarks``) only if that was not enough.

    Args:
        path: As for :func:`~foci.backbones.checkpoints.load`, or a checkpoint that is open.
        table: The answers; see :func:`~foci.backbones.checkpoints.expect.read_expected`.
        cohort: Has the features of the slides in the table, and the names of the classes.
        tolerance: Largest difference; default 0.001 for probabilities and 0.01 for logits. What
            the rounding of the answers makes comes on top.
        device: Where to compute.
        **options: What is known already.

    Raises:
        CheckpointError: If no variant agrees, or several do and cannot be told apart.
    """
    file = path if isinstance(path, OpenCheckpoint) else OpenCheckpoint(path)
    variants = _load_variants(file, options, wide=False)
    classes = [loaded.backbone.n_classes for _, loaded in variants]
    n_classes = len(cohort.classes) if len(cohort.classes) in classes else classes[0]
    expected = read_expected(table, cohort, n_classes, tolerance)
    compared = _compare(variants, expected, device)
    if not compared[0][0].difference <= expected.tolerance:
        compared = _compare(_load_variants(file, options, wide=True), expected, device)
    return compared[0][1], _settle(file.path, [one for one, _ in compared], expected)


def check_answers(
    backbone: Backbone, table: str | Path, cohort: Cohort, *, tolerance: float | None = None
) -> Agreement:
    """Check that a loaded classifier gives the expected answers; arguments as for :func:`agree`."""
    expected = read_expected(table, cohort, backbone.n_classes, tolerance)
    difference = expected.difference(expected.answered_by(backbone))
    return _settle(backbone.architecture, [Tried({}, difference)], expected)


@dataclass(frozen=True)
class Expected:
    """Known answers of a classifier; ``file``, ``kind`` and ``tolerance`` as in an agreement.

    Attributes:
        answers: ``[S, C]`` of S slides, float64.
        slides: The slides, whose bags are read one at a time, as they are audited.
        rounding: Largest error that printing so few decimals can make.
    """

    file: str
    kind: str
    answers: Tensor
    slides: tuple[Slide, ...]
    store: BagStore
    rounding: float
    tolerance: float

    def answered_by(self, backbone: Backbone) -> Tensor:
        """The classifier's own answers, as probabilities or as logits."""
        own = []
        with frozen(backbone):
            for bag in map(self.store.bag, self.slides):
                if bag.width != backbone.d_in:
                    what = f"is about features of width {bag.width}, the model reads"
                    fix = "give features of the encoder it was trained on"
                    raise CohortError(self.file, f"{what} {backbone.d_in}", fix)
                own.append(backbone(to_model(backbone.inputs(bag), backbone)).double().cpu())
        logits = torch.stack(own)
        return logits if self.kind == "logits" else torch.softmax(logits, dim=-1)

    def difference(self, own: Tensor) -> float:
        """Largest difference; of logits up to a constant per slide, which changes no answer."""
        off = own - self.answers
        if self.kind == "logits":
            off = off - off.mean(dim=-1, keepdim=True)
        return float(off.abs().max())


def read_expected(
    path: str | Path, cohort: Cohort, n_classes: int, tolerance: float | None = None
) -> Expected:
    """Read a table of ``slide_id`` and one column per class.

    Args:
        path: The table. Its columns are the names of the classes, or ``p0``, ``p1``, ... (also
            ``p_0``, ``prob_0``), or ``logit0``, ``logit1``, ...; ``p1`` alone is enough for two
            classes. Other columns are left alone.
        cohort: Has the slides' features, and class names in the order of the classifier's outputs.
        n_classes: Number of classes.
        tolerance: Instead of :data:`TOLERANCE`.
    """
    table = read_table(path)
    table.require("slide_id")
    columns = _columns(table, cohort.classes, n_classes)
    rows = [[_number(table, i, row[c], c) for c in columns] for i, row in enumerate(table.rows)]
    if not rows:
        raise CohortError(path, "holds no slides", "give the answers for at least one slide")
    ids = [row["slide_id"] for row in table.rows]
    if twice := next((one for one in ids if ids.count(one) > 1), None):
        raise CohortError(path, f"names the slide {twice} twice", "keep one of its rows")
    if len(columns) < n_classes:
        rows = [[1.0 - p, p] for (p,) in rows]
    says_logits = any("logit" in column.lower() for column in columns)
    likely = all(min(row) >= 0 and max(row) <= 1 and abs(sum(row) - 1) <= _SUM for row in rows)
    if not likely and not says_logits and all(map(_NUMBERED.fullmatch, columns)):
        fix = "give softmax outputs, or name the columns logit0, logit1, ..."
        raise CohortError(path, "holds numbers that are no probabilities", fix)
    kind = "probabilities" if likely and not says_logits else "logits"
    rounding = 0.5 * 10.0 ** -max(_decimals(row[c]) for row in table.rows for c in columns)
    limit = TOLERANCE[kind] if tolerance is None else tolerance
    name, answers = Path(path).name, torch.tensor(rows, dtype=torch.float64)
    slides = _find_slides(name, ids, cohort)
    return Expected(name, kind, answers, slides, cohort.store, rounding, limit + rounding)


def _columns(table: Table, classes: Sequence[str], n_classes: int) -> list[str]:
    matches = {column: _NUMBERED.fullmatch(column) for column in table.columns}
    numbered = {int(found[2]): column for column, found in matches.items() if found}
    if set(numbered) == set(range(n_classes)):
        return [numbered[c] for c in range(n_classes)]
    if n_classes == 2 and set(numbered) == {1}:
        return [numbered[1]]
    if classes and set(classes) <= set(table.columns):
        return list(classes)
    named = f"{', '.join(classes)} or " if classes else ""
    fix = f"name them {named}{', '.join(f'p{c}' for c in range(n_classes))}"
    raise CohortError(table.path, f"has no column for each of the {n_classes} classes", fix)


def _number(table: Table, index: int, text: str, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise CohortError(table.line(index), f"{column} is {text!r}", "give a number")
    return value


def _decimals(text: str) -> int:
    """Digits behind the point; all of them for a number with an exponent.

    >>> _decimals("0.9731"), _decimals("1"), _decimals("9.7e-01")
    (4, 0, 17)
    """
    return 17 if "e" in text.lower() else len(text.strip().partition(".")[2])


def _find_slides(name: str, ids: Sequence[str], cohort: Cohort) -> tuple[Slide, ...]:
    """The slides that have an answer."""
    known = {short(slide.slide_id): slide for slide in cohort}
    known |= {slide.slide_id: slide for slide in cohort}
    found = [known.get(one, known.get(short(one))) for one in ids]
    missing = [one for one, slide in zip(ids, found, strict=True) if slide is None]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        what = f"names {missing[0]}{more}, which the cohort does not have"
        raise CohortError(name, what, "give slides of the cohort")
    return tuple(slide for slide in found if slide is not None)


def _settle(where: str | Path, tried: Sequence[Tried], expected: Expected) -> Agreement:
    """The closest variant, if it agrees and can be told from the others."""
    best, file, limit = tried[0], expected.file, expected.tolerance
    if not best.difference <= limit:
        cut = "" if expected.store.n_cap is None else f", tile cap ({expected.store.n_cap})"
        raise CheckpointError(
            where,
            f"does not give the {expected.kind} in {file}: of {counted(len(tried), 'variant')} the "
            f"closest ({best}) is off by {best.difference:.3g}, at most {limit:.2g} is agreement",
            f"check slides, features{cut} and order of the classes, or {WRAP}",
        )
    floor = _CLEARLY * max(best.difference, expected.rounding, 1e-7)
    alike = [one for one in tried[1:] if one.difference <= min(limit, floor)]
    if alike:
        raise CheckpointError(
            where,
            f"agrees with {file} in more than one variant: {best} is off by "
            f"{best.difference:.2g}, {alike[0]} by {alike[0].difference:.2g}",
            "give more slides, more decimals or logits, or the option itself",
        )
    return Agreement(file, expected.kind, len(expected.slides), limit, best, tuple(tried))


def _compare(
    variants: Sequence[tuple[dict[str, Any], LoadedCheckpoint]], expected: Expected, device: str
) -> list[tuple[Tried, LoadedCheckpoint]]:
    """The variants, the closest first; those that answer alike count once."""
    found: list[tuple[Tried, LoadedCheckpoint, Tensor]] = []
    for options, loaded in variants:
        if loaded.backbone.n_classes != expected.answers.shape[1]:
            continue
        own = expected.answered_by(loaded.backbone.to(device))
        if not any(torch.equal(own, other) for _, _, other in found):
            found.append((Tried(options, expected.difference(own)), loaded, own))
    found.sort(key=lambda one: one[0].difference)
    return [(tried, loaded) for tried, loaded, _ in found]


def _load_variants(
    file: OpenCheckpoint, given: Mapping[str, Any], wide: bool
) -> list[tuple[dict[str, Any], LoadedCheckpoint]]:
    """All combinations of the open options that the file allows, the defaults first.

    None leaves an option out. If no combination can be loaded, the first one's error is raised.
    """
    tried = {
        name: option.candidates
        for name, option in file.options.items()
        if name not in given and len(option.candidates) > 1 and (wide or option.choices)
    }
    found: list[tuple[dict[str, Any], LoadedCheckpoint]] = []
    refused: FociError | None = None
    for values in itertools.product(*tried.values()):
        named = zip(tried, values, strict=True)
        options = {name: value for name, value in named if value is not None}
        try:
            found.append((options, file.load(**{**given, **options})))
        except FociError as error:  # some files load only with an option
            refused = refused or error
    if not found and refused is not None:
        raise refused
    return found
