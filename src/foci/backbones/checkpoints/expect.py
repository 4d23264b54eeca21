"""Answers that the user's own code printed for a few slides, read from a table."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from foci.backbones.base import Backbone
from foci.backbones.checkpoints.load import LoadedCheckpoint, OpenCheckpoint
from foci.backbones.freezing import frozen, to_model
from foci.bags import Cohort
from foci.bags.bag import Bag
from foci.bags.matching import short
from foci.bags.tables import Table, read_table
from foci.errors import CheckpointError, CohortError, FociError
from foci.words import counted

Kind = Literal["probabilities", "logits"]

_NUMBERED = re.compile(r"(p|prob|logit)s?_?(\d+)", re.IGNORECASE)
_SUM = 0.02


@dataclass(frozen=True)
class Expected:
    """Known answers of a classifier.

    Attributes:
        name: What people call them: the name of the file.
        kind: Whether they are probabilities or logits.
        answers: Per slide, its id and one number per class.
        decimals: Most decimals of a number; fewer than the classifier has.
    """

    name: str
    kind: Kind
    answers: tuple[tuple[str, tuple[float, ...]], ...]
    decimals: int = 17

    @property
    def rounding(self) -> float:
        """Largest error that printing so few decimals can make."""
        return 0.5 * 10.0**-self.decimals


def read_expected(path: str | Path, classes: Sequence[str], n_classes: int) -> Expected:
    """Read a table of ``slide_id`` and one column per class.

    Args:
        path: The table. Its columns are the names of the classes, or ``p0``, ``p1``, ... (also
            ``p_0``, ``prob_0``), or ``logit0``, ``logit1``, ...; ``p1`` alone is enough for two
            classes. Other columns are left alone.
        classes: Class names in the order of the classifier's outputs; may be empty.
        n_classes: Number of classes.
    """
    table = read_table(path)
    table.require("slide_id")
    columns = _columns(table, classes, n_classes)
    rows = [[_number(table, i, row[c], c) for c in columns] for i, row in enumerate(table.rows)]
    if not rows:
        raise CohortError(path, "holds no slides", "give the answers for at least one slide")
    ids = [row["slide_id"] for row in table.rows]
    if twice := next((one for one in ids if ids.count(one) > 1), None):
        raise CohortError(path, f"names the slide {twice} twice", "keep one of its rows")
    if len(columns) < n_classes:
        rows = [[1.0 - p, p] for (p,) in rows]
    kind = _kind(rows, columns)
    if kind == "logits" and not any("logit" in c.lower() for c in columns) and _says_p(columns):
        fix = "give softmax outputs, or name the columns logit0, logit1, ..."
        raise CohortError(path, "holds numbers that are no probabilities", fix)
    decimals = max(_decimals(row[c]) for row in table.rows for c in columns)
    answers = tuple((one, tuple(row)) for one, row in zip(ids, rows, strict=True))
    return Expected(Path(path).name, kind, answers, decimals)


def find_bags(expected: Expected, cohort: Cohort) -> list[Bag]:
    """The whole bag of every slide with an answer; no tile is left out, as in the user's code."""
    known = {short(slide.slide_id): slide for slide in cohort}
    known |= {slide.slide_id: slide for slide in cohort}
    found = {one: known.get(one, known.get(short(one))) for one, _ in expected.answers}
    missing = [one for one, slide in found.items() if slide is None]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise CohortError(
            expected.name,
            f"names {missing[0]}{more}, which the cohort does not have",
            "give slides of the cohort",
        )
    store = cohort.store.with_cap(None)
    return [store.bag(slide) for slide in found.values() if slide is not None]


def _columns(table: Table, classes: Sequence[str], n_classes: int) -> list[str]:
    numbered = {}
    for column in table.columns:
        if found := _NUMBERED.fullmatch(column):
            numbered[int(found[2])] = column
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


def _kind(rows: Sequence[Sequence[float]], columns: Sequence[str]) -> Kind:
    if any("logit" in column.lower() for column in columns):
        return "logits"
    likely = all(min(row) >= 0 and max(row) <= 1 and abs(sum(row) - 1) <= _SUM for row in rows)
    return "probabilities" if likely else "logits"


def _says_p(columns: Sequence[str]) -> bool:
    return all(_NUMBERED.fullmatch(column) for column in columns)


def _decimals(text: str) -> int:
    """Digits behind the point; all of them for a number with an exponent.

    >>> _decimals("0.9731"), _decimals("1"), _decimals("9.7e-01")
    (4, 0, 17)
    """
    return 17 if "e" in text.lower() else len(text.strip().partition(".")[2])


# Find the options of a checkpoint by the answers that the user's own code gave.


TOLERANCE = {"probabilities": 1e-3, "logits": 1e-2}
"""Largest difference that devices and precisions make, beside the rounding of what was printed."""

_CLEARLY = 10.0
"""A variant is told from another by differences of this ratio."""

_WRAP = "wrap the model in foci.backbones.CallableBackbone"


@dataclass(frozen=True)
class Tried:
    """One variant of a checkpoint: the options that were tried, and its largest difference."""

    options: dict[str, Any]
    difference: float

    def __str__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return said or "as loaded"


@dataclass(frozen=True)
class Agreement:
    """Which variant of a checkpoint gives the expected answers.

    Attributes:
        file: Where the answers came from.
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
    n_classes = _n_classes(file, options, len(cohort.classes))
    known = _Known.read(table, cohort, n_classes, tolerance)
    for wide in (False, True):
        compared = _compare(file, known, options, device, wide)
        if compared[0][0].difference <= known.limit:
            break
    return compared[0][1], _settled(file.path, [one for one, _ in compared], known)


def check_answers(
    backbone: Backbone, table: str | Path, cohort: Cohort, *, tolerance: float | None = None
) -> Agreement:
    """Check that a loaded classifier gives the expected answers; arguments as for :func:`agree`."""
    known = _Known.read(table, cohort, backbone.n_classes, tolerance)
    off = known.difference(known.answered_by(backbone))
    return _settled(backbone.architecture, [Tried({}, off)], known)


@dataclass(frozen=True)
class _Known:
    """Bags with their expected answers ``[S, C]``, and the largest difference that is allowed."""

    expected: Expected
    bags: list[Tensor]
    answers: Tensor
    limit: float

    @classmethod
    def read(
        cls, table: str | Path, cohort: Cohort, n_classes: int, tolerance: float | None
    ) -> _Known:
        expected = read_expected(table, cohort.classes, n_classes)
        bags = [torch.as_tensor(bag.features) for bag in find_bags(expected, cohort)]
        answers = torch.tensor([numbers for _, numbers in expected.answers], dtype=torch.float64)
        limit = TOLERANCE[expected.kind] if tolerance is None else tolerance
        return cls(expected, bags, answers, limit + expected.rounding)

    def answered_by(self, backbone: Backbone) -> Tensor:
        """The classifier's own answers, as probabilities or as logits."""
        with frozen(backbone):
            own = [backbone(to_model(bag, backbone)).double().cpu() for bag in self.bags]
        logits = torch.stack(own)
        return logits if self.expected.kind == "logits" else torch.softmax(logits, dim=-1)

    def difference(self, own: Tensor) -> float:
        """Largest difference; of logits up to a constant per slide, which changes no answer."""
        off = own - self.answers
        if self.expected.kind == "logits":
            off = off - off.mean(dim=-1, keepdim=True)
        return float(off.abs().max())


def _settled(where: str | Path, tried: Sequence[Tried], known: _Known) -> Agreement:
    """The closest variant, if it agrees and can be told from the others."""
    best, expected = tried[0], known.expected
    if not best.difference <= known.limit:
        raise CheckpointError(
            where,
            f"does not give the {expected.kind} in {expected.name}: of "
            f"{counted(len(tried), 'variant')} the closest ({best}) is off by "
            f"{best.difference:.3g}, at most {known.limit:.2g} is agreement",
            f"check slides, features and order of the classes, or {_WRAP}",
        )
    floor = _CLEARLY * max(best.difference, expected.rounding, 1e-7)
    alike = [one for one in tried[1:] if one.difference <= min(known.limit, floor)]
    if alike:
        raise CheckpointError(
            where,
            f"cannot be told by {expected.name}: {best} is off by {best.difference:.2g}, "
            f"{alike[0]} by {alike[0].difference:.2g}",
            "give more slides, more decimals or logits, or the option itself",
        )
    slides = len(known.bags)
    return Agreement(expected.name, expected.kind, slides, known.limit, best, tuple(tried))


def _compare(
    file: OpenCheckpoint, known: _Known, given: Mapping[str, Any], device: str, wide: bool
) -> list[tuple[Tried, LoadedCheckpoint]]:
    """All variants that the file allows, the closest first; those that answer alike count once."""
    found: list[tuple[Tried, LoadedCheckpoint, Tensor]] = []
    for options in _variants(file, given, wide):
        try:
            loaded = file.load(**{**given, **options})
        except FociError:
            continue
        if loaded.backbone.n_classes != known.answers.shape[1]:
            continue
        own = known.answered_by(loaded.backbone.to(device))
        if not any(torch.equal(own, other) for _, _, other in found):
            found.append((Tried(options, known.difference(own)), loaded, own))
    found.sort(key=lambda one: one[0].difference)
    return [(tried, loaded) for tried, loaded, _ in found]


def _n_classes(file: OpenCheckpoint, given: Mapping[str, Any], wanted: int) -> int:
    """Classes of the variants that can be loaded: as many as the cohort's, or the first's."""
    found: list[int] = []
    refused: FociError | None = None
    for options in _variants(file, given, wide=False):
        try:
            found.append(file.load(**{**given, **options}).backbone.n_classes)
        except FociError as error:  # some files load only with an option
            refused = refused or error
        if wanted in found:
            return wanted
    if not found and refused is not None:
        raise refused
    return found[0]


def _variants(
    file: OpenCheckpoint, given: Mapping[str, Any], wide: bool
) -> Iterable[dict[str, Any]]:
    """Combinations of the open options, the defaults first; None leaves an option out."""
    tried = {
        name: option.candidates
        for name, option in file.options.items()
        if name not in given and len(option.candidates) > 1 and (wide or option.choices)
    }
    for values in itertools.product(*tried.values()):
        named = zip(tried, values, strict=True)
        yield {name: value for name, value in named if value is not None}
