"""A table of a study: rows, columns, and in every cell one's own value beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from foci.audits.settings import PAPER, PROFILES
from foci.studies.published import COHORTS, PublishedNumber, PublishedNumbers
from foci.studies.read import AuditFacts, Measure, Numbers, Place, StudyNumbers, Value
from foci.studies.study import BackboneEntry, Study
from foci.words import counted, decimals

MARKED = 2.0
"""A z beyond this is marked."""


@dataclass(frozen=True)
class Column:
    """A quantity.

    Attributes:
        key: Name in the CSV file and in the published numbers.
        head: In Markdown and on the page.
        digits: Decimals.
        better: Which direction is better; None where neither is.
        signed: Whether a plus sign is written.
        positive: Whether 0 cannot be: a number that would round to 0 is written as a bound.
    """

    key: str
    head: str
    digits: int
    better: Literal["lower", "higher"] | None = None
    signed: bool = False
    positive: bool = False

    @property
    def heading(self) -> str:
        """The head with an arrow towards what is better."""
        arrow = {"lower": " ↓", "higher": " ↑", None: ""}[self.better]
        return self.head + arrow

    def text(self, number: float) -> str:
        """A number with the decimals of the column; minus is a hyphen here.

        >>> Column("shi", "SHI", 3, signed=True).text(0.5621)
        '+0.562'
        >>> Column("pvalue", "p", 4, positive=True).text(0.00002)
        '< 0.0001'
        """
        smallest = 10**-self.digits
        if self.positive and number < smallest / 2:
            return f"< {decimals(smallest, self.digits)}"
        written = decimals(number, self.digits)
        return (
            f"+{written}" if self.signed and number > 0 and not written.startswith("-") else written
        )


@dataclass(frozen=True)
class Cell:
    """One's own value, and what the paper prints there.

    Attributes:
        value: Over seeds.
        paper: None where the paper prints nothing.
        text: Words that stand instead of a number.
    """

    value: Value
    paper: PublishedNumber | None = None
    text: str | None = None

    @property
    def difference(self) -> float | None:
        """Own mean minus the paper's; None where one of them is missing."""
        if self.value.mean is None or self.paper is None:
            return None
        return self.value.mean - self.paper.mean

    @property
    def z(self) -> float | None:
        r"""Difference in units of the spread over seeds of both.

        .. math:: z = (m_y - m_p) / \sqrt{s_y^2 + s_p^2}

        None where a standard deviation is missing or 0.
        """
        if self.difference is None or self.paper is None:
            return None
        own, other = self.value.std, self.paper.std
        if not own or not other:
            return None
        return self.difference / math.hypot(own, other)

    @property
    def marked(self) -> bool:
        """Whether the z is beyond 2 in either direction."""
        return self.z is not None and abs(self.z) > MARKED


@dataclass(frozen=True)
class Row:
    """One line: its names (one per head of the table), its cells by column, its group."""

    names: tuple[str, ...]
    cells: Mapping[str, Cell]
    group: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the paper, or one of our own.

    Attributes:
        label: The paper's LaTeX label without ``tab:``; also the name of its files.
        title: One sentence.
        heads: Heads of the columns that name a row.
        columns: The quantities.
        rows: The lines.
        notes: How to read it, sentence by sentence.
    """

    label: str
    title: str
    heads: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def cell(self, names: tuple[str, ...], column: str) -> Cell:
        """The cell of a row and a column."""
        return next(row for row in self.rows if row.names == names).cells[column]

    @property
    def seeds(self) -> tuple[str, ...]:
        """Every seed that some cell has a number or a gap of."""
        found: dict[str, None] = {}
        for row in self.rows:
            for cell in row.cells.values():
                found |= dict.fromkeys([*cell.value.seeds, *filter(None, cell.value.gaps)])
        return tuple(found)


@dataclass
class Footnotes:
    """Reasons of gaps, numbered in the order in which a table shows them."""

    reasons: list[str] = field(default_factory=list)

    def number(self, reason: str) -> int:
        """Number of a reason, counted from 1; the same reason has the same number."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return self.reasons.index(reason) + 1


def own_text(cell: Cell, column: Column, plus_minus: str = "±") -> str:
    """One's own mean and standard deviation; a dash where there is none.

    >>> own_text(Cell(Value.over({"42": 3.0, "43": 3.6, "44": 3.3})), Column("k", "K", 2))
    '3.30 ± 0.24'
    """
    value = cell.value
    if cell.text is not None:
        return cell.text
    if value.mean is None:
        return "-"
    text = column.text(value.mean)
    if value.std is not None:
        text += f" {plus_minus} {decimals(value.std, column.digits)}"
    return text + (f" (n = {value.n})" if value.gaps and value.n else "")


def paper_text(paper: PublishedNumber, column: Column, plus_minus: str = "±") -> str:
    """What the paper prints, with its own digits."""
    own = Column(column.key, column.head, paper.digits, signed=column.signed)
    text = own.text(paper.mean)
    spread = "" if paper.std is None else f" {plus_minus} {decimals(paper.std, paper.digits)}"
    return text + spread


def difference_text(cell: Cell, column: Column) -> str | None:
    """Own mean minus the paper's, with a sign; None where there is none."""
    if cell.difference is None:
        return None
    written = decimals(cell.difference, column.digits)
    return written if written.startswith("-") else f"+{written}"


# Columns that several tables share, and how to fill them.


MSK = Column("msk_cond", "MSK_cond", 2, "lower")
REACH = Column("reach", "Reach (%)", 1, "higher")
AUKC = Column("aukc", "AUKC", 3, "higher")
SRP = (MSK, REACH, AUKC)
"""The three numbers of the paper's reveal tables."""

RESTRICTED = Column("restricted", "restricted mean K", 1, "lower")
SHARE = Column("share_32", "32 tiles, share of a bag (%)", 0)
RESTRICTED_NOTE = (
    "Restricted mean K counts a slide that never reaches kappa as K_max; MSK_cond leaves it out, "
    "so that failing lowers it."
)


def srp_values(
    numbers: Numbers,
    place: Place,
    ranking: str,
    *,
    kappa: float | None = None,
    k_max: int | None = None,
) -> dict[str, Value]:
    """MSK, Reach, AUKC and restricted mean of a ranking, label view."""
    return {
        "msk_cond": numbers.value(place, Measure("msk_cond", ranking, "label", kappa, k_max)),
        "reach": numbers.value(place, Measure("reach", ranking, "label", kappa, k_max)),
        "aukc": numbers.value(place, Measure("aukc", ranking, "label", None, k_max)),
        "restricted": numbers.value(place, Measure("restricted", ranking, "label", kappa, k_max)),
    }


def cells(
    values: Mapping[str, Value],
    paper: PublishedNumbers | None,
    label: str,
    cohort: str,
    row: str,
) -> dict[str, Cell]:
    """Values as cells, each beside what the paper prints in that table, cohort and row."""
    return {
        column: Cell(value, None if paper is None else paper.get(label, cohort, row, column))
        for column, value in values.items()
    }


# Names of backbones, cohorts and rows as readers know them.


SHOWN = {
    "transmil": "TransMIL",
    "abmil": "ABMIL",
    "clam-sb": "CLAM-SB",
    "clam-mb": "CLAM-MB",
    "attrimil": "AttriMIL",
    "acmil": "ACMIL",
    "asmil": "ASMIL",
    "mhim-mil": "MHIM-MIL",
    "nsclc": "NSCLC",
    "brca": "BRCA",
    "panda": "PANDA",
}
"""Names as the paper writes them; any other name is shown as it is."""

PRIMARY = "transmil"
WITH = "+ FOCI"


def shown(name: str) -> str:
    """A backbone or cohort as readers know it.

    >>> shown("mhim-mil"), shown("our-model")
    ('MHIM-MIL', 'our-model')
    """
    return SHOWN.get(name, name)


def primary(backbones: Iterable[str]) -> str:
    """The backbone of the paper's single-backbone tables: TransMIL, or else the first.

    >>> primary(["abmil", "transmil"]), primary(["abmil", "acmil"])
    ('transmil', 'abmil')
    """
    names = list(backbones)
    return PRIMARY if PRIMARY in names else names[0]


# What differs from the paper's setting, in sentences that stand above every table.


TEST_SLIDES = {"nsclc": 209, "brca": 223, "panda": 2123}
ENCODER, N_CAP, SEEDS, EPOCHS = "UNI2-h", 1024, 3, 20
COMPARED = ("recipe", "fit_target", "kappa", "k_max", "deletion", "choose_by")
"""Settings of an audit that the paper fixes."""


def differences(study: Study, numbers: StudyNumbers) -> tuple[str, ...]:
    """Cohorts, encoder, classifiers and every setting that is not the paper's."""
    return (
        *_cohorts(numbers),
        *_classifiers(study),
        *_settings(study),
        "A z compares means over seeds of different slides and models: it says how far apart two "
        "numbers are in units of their spread over seeds, and nothing about patients.",
    )


def facts_by_cohort(numbers: StudyNumbers) -> dict[str, AuditFacts]:
    """Facts of one main audit of every cohort that has one."""
    found = {}
    for cohort in numbers.cohorts:
        for backbone in numbers.backbones:
            read = list(numbers.read(Place(cohort, backbone)).values())
            if read:
                found[cohort] = read[0].facts
                break
    return found


def _cohorts(numbers: StudyNumbers) -> Iterator[str]:
    for cohort, facts in facts_by_cohort(numbers).items():
        paper = TEST_SLIDES.get(cohort)
        same = (
            f" (the paper's {shown(cohort)}: {paper})" if paper else " (not a cohort of the paper)"
        )
        encoder = facts.encoder or "an encoder that the files do not name"
        yield (
            f"{shown(cohort)}: {counted(facts.n_slides, 'test slide')}{same} of "
            f"{counted(facts.n_cases, 'patient')}, features of {encoder} (the paper: {ENCODER}), "
            f"a median of {facts.median_tiles:g} tiles; 32 tiles are "
            f"{100 * facts.share_of_32:.0f} % of a bag on average."
        )
    absent = [shown(cohort) for cohort in COHORTS if cohort not in numbers.cohorts]
    if absent:
        yield f"Of the paper's cohorts, not in this study: {', '.join(absent)}."


def _classifiers(study: Study) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for name, entry in study.backbones.items():
        for what in _of_backbone(entry):
            told.setdefault(what, []).append(shown(name))
    for what, names in told.items():
        yield f"{', '.join(names)}: {what}."


def _of_backbone(entry: BackboneEntry) -> Iterator[str]:
    if entry.models:
        yield "ready-made checkpoints instead of training in this study"
    if entry.preset != "paper":
        yield f"preset {entry.preset!r} instead of the paper's"
    if entry.widths:
        yield f"widths {_listed(entry.widths)} instead of the paper's"
    epochs = entry.training.get("epochs", EPOCHS)
    if epochs != EPOCHS:
        yield f"{counted(epochs, 'epoch')} of training (the paper's TransMIL: {EPOCHS})"
    other = {name: value for name, value in entry.training.items() if name != "epochs"}
    if other:
        yield f"trained with {_listed(other)}"


def _settings(study: Study) -> Iterator[str]:
    if len(study.seeds) != SEEDS:
        yield f"{counted(len(study.seeds), 'seed')} instead of {SEEDS}."
    if study.n_cap != N_CAP:
        yield f"At most {study.n_cap} tiles per bag instead of {N_CAP}."
    if study.std != "population":
        yield "± is the sample standard deviation over seeds; the paper prints the population's."
    own = study.settings(study.seeds[0])
    paper = study.settings(study.seeds[0]).model_copy(update=dict(PROFILES[PAPER]))
    for name in COMPARED:
        here, there = _setting(own, name), _setting(paper, name)
        if here != there:
            yield f"{name} is {_plain(here)}; the paper's is {_plain(there)}."
    if own.recipe_settings:
        yield f"The recipe of the selector has {_listed(own.recipe_settings)}."


def _setting(settings: Any, name: str) -> Any:
    return settings.fitted_for if name == "fit_target" else getattr(settings, name)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())
