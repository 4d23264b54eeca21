"""Read the label tables of the common tools, recognised by their header."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from foci.bags.bag import Slide, SlideRows
from foci.bags.layouts import suffixes
from foci.bags.layouts.arrays import load_npy
from foci.bags.matching import case_of, parse_barcode
from foci.bags.splits import SPLIT_NAMES, apply_splits, choose_splits, split_column
from foci.bags.tables import Table, nearest, read_table
from foci.errors import CohortError
from foci.outputs import Output
from foci.registry import Registry
from foci.words import listed, some


@dataclass(frozen=True)
class Importer:
    """One format of label table.

    Attributes:
        description: Whose format, and its columns, in one line for people.
        matches: Whether a header is of this format.
        read: The slides of such a table.
        options: Arguments that ``read`` understands, for what the table alone does not tell.
    """

    description: str
    matches: Callable[[tuple[str, ...]], bool]
    read: Callable[..., SlideRows]
    options: tuple[str, ...] = ()


IMPORTERS: Registry[Importer] = Registry("cohort table format")
"""All formats, in the order in which they are tried: the most specific first."""

_KEYS = {"slide_id": 0.8, "bag_name": 0.8, "PATIENT": 1.0}
"""Key columns of the formats, and how similar a misspelt column must be. A ``patient_id`` is no
``PATIENT``: it does not make a table STAMP's."""


def read_slides(
    labels: str | Path | Mapping[str, Path],
    *,
    splits: str | Path | None = None,
    slide_table: str | Path | None = None,
    label_column: str | None = None,
    fold: int | None = None,
) -> SlideRows:
    """Read a label table of any of the common tools, or take every feature file as a slide.

    Args:
        labels: The label table (``.csv``, ``.tsv``, ``.txt`` or ``.xlsx``); or feature files by
            slide name, which become slides without labels, with the patients of TCGA barcodes
            where there are any.
        splits: A split table to apply: CLAM's ``splits_k.csv``, a folder of these, or
            ``slide_id, split``.
        slide_table: STAMP's slide table.
        label_column: The column that holds the label, where the format leaves it open.
        fold: Which fold of a folder of splits, or of a Patho-Bench table; the first by default.

    Raises:
        CohortError: With the file and line, what is wrong, and what to do; also if an option means
            nothing for this table, or needs one.
    """
    split_table, fold, fold_notes = choose_splits(splits, fold)
    table_path = None if slide_table is None else Path(slide_table)
    options = {"slide_table": table_path, "label_column": label_column, "fold": fold}
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(labels, Mapping):
        _check_options(given, (), "needs --labels", "give the label table, or leave it out")
        slides = tuple(Slide(name, case_of(name), feature_path=labels[name]) for name in labels)
        note = _derived_cases_note(list(labels), "there is no label table that names patients")
        rows, among = SlideRows(slides, (note,)), "the feature folder"
    else:
        table = read_table(labels)
        name = detect(table)
        what = f"means nothing for {table.path}, a table of the format {name!r}"
        _check_options(given, IMPORTERS[name].options, what, "leave it out")
        rows, among = IMPORTERS[name].read(table, **given), "the label table"
    if split_table is None:
        return rows
    assigned = apply_splits(rows.slides, read_table(split_table), among)
    return SlideRows(assigned.slides, rows.notes + fold_notes + assigned.notes)


def _check_options(
    given: Mapping[str, Any], understood: Sequence[str], what: str, fix: str
) -> None:
    for option, value in given.items():
        if option not in understood:
            raise CohortError(f"--{option.replace('_', '-')} {value}", what, fix)


def detect(table: Table) -> str:
    """Detect the format of a label table by its columns."""
    for name, importer in IMPORTERS.items():
        if importer.matches(table.columns):
            return name
    found = ", ".join(table.columns)
    if any(column.lower() in SPLIT_NAMES for column in table.columns):
        fix = "give the label table as --labels, and this one as --splits"
        raise CohortError(table.path, f"is a split table, not labels (columns: {found})", fix)
    if {"PATIENT", "FILENAME"} <= set(table.columns):
        fix = "give the clinical table as --labels, and this one as --slide-table"
        raise CohortError(table.path, f"is a slide table, not labels (columns: {found})", fix)
    for key, likeness in _KEYS.items():
        if near := nearest(key, table.columns, likeness):
            fix = f"did you mean {near!r}? rename it to {key!r}"
            raise CohortError(table.path, f"has no column {key!r} (columns: {found})", fix)
    expected = "; ".join(importer.description for importer in IMPORTERS.values())
    raise CohortError(
        table.path, f"is of no known format (columns: {found})", f"expected is one of: {expected}"
    )


def _choose_label(table: Table, taken: Collection[str], chosen: str | None) -> str:
    """The label column: the chosen one, or the only one that is not ``taken``."""
    if chosen is not None:
        table.require(chosen, fix="name another one")
        return chosen
    free = [name for name in table.columns if name and name not in taken]
    if len(free) == 1:
        return free[0]
    if not free:
        raise CohortError(table.path, "has no label column", "add one")
    what = f"has several columns that may be the label ({', '.join(free)})"
    raise CohortError(table.path, what, "name it with --label-column")


def _patient_column(table: Table) -> str | None:
    """The column that names the patients, if there is one."""
    return next((name for name in ("case_id", "patient_id") if name in table.columns), None)


def _derived_cases_note(slide_ids: list[str], why: str = "the table names no patients") -> str:
    """Note on how patients were derived where no column names them."""
    alone = sum(parse_barcode(slide_id) is None for slide_id in slide_ids)
    parts = []
    if tcga := len(slide_ids) - alone:
        parts.append(f"{tcga} slides take the patient of their TCGA barcode")
    if alone:
        parts.append(
            f"{alone} slides count as one patient each, so that a patient in two splits "
            "would go unnoticed"
        )
    return f"{why}: " + "; ".join(parts)


# Patho-Bench's ``k=all.tsv``: one column per fold.

_FOLD = re.compile(r"fold_(\d+)")


def _read_pathobench(
    table: Table, label_column: str | None = None, fold: int | None = None
) -> SlideRows:
    """One fold, the first unless another is chosen."""
    patient = _patient_column(table) or "case_id"
    table.require(patient, "slide_id")
    folds = {int(m[1]): m[0] for name in table.columns if (m := _FOLD.fullmatch(name))}
    chosen = min(folds) if fold is None else fold
    if chosen not in folds:
        what = f"has no fold {chosen} (it has {', '.join(map(str, sorted(folds)))})"
        raise CohortError(table.path, what, "choose one of them")
    label = _choose_label(table, {patient, "slide_id", *folds.values()}, label_column)
    slide_ids = table.unique(table.filled("slide_id"))
    cases, labels = table.filled(patient), table.filled(label)
    slides = tuple(map(Slide, slide_ids, cases, labels, split_column(table, folds[chosen])))
    if fold is None and len(folds) > 1:
        return SlideRows(slides, (f"fold {chosen} of {len(folds)} is used",))
    return SlideRows(slides)


IMPORTERS.add(
    "pathobench",
    Importer(
        "Patho-Bench (case_id, slide_id, a label, fold_0, fold_1, ...)",
        lambda columns: "slide_id" in columns and any(map(_FOLD.fullmatch, columns)),
        _read_pathobench,
        options=("label_column", "fold"),
    ),
)


# torchmil's ``splits.csv``, with one label file per bag beside it.


def _read_torchmil(table: Table) -> SlideRows:
    """Labels from ``labels/<bag>.npy`` beside the table."""
    folder = table.path.parent / "labels"
    names = table.unique(table.filled("bag_name"))
    slides = tuple(
        Slide(name, case_of(name), _class_number(folder / f"{name}.npy"), split)
        for name, split in zip(names, split_column(table, "split"), strict=True)
    )
    return SlideRows(slides, (_derived_cases_note(names),))


def _class_number(path: Path) -> str:
    """The class number in a file, as text."""
    if not path.is_file():
        raise CohortError(path, "does not exist", "keep the folder labels/ beside the split table")
    try:
        values = load_npy(path).ravel()
        whole = values.size == 1 and float(values[0]).is_integer()
    except (OSError, EOFError, TypeError, ValueError) as error:
        what = f"is not a readable NumPy file of numbers ({error})"
        raise CohortError(path, what, "write the label as one number, without pickle") from error
    if not whole:
        what = f"holds {values.size} values, not one class number"
        if values.size == 1:
            what = f"holds {values[0]}, which is no class number"
        raise CohortError(path, what, "write one whole number per bag")
    return str(int(values[0]))


IMPORTERS.add(
    "torchmil",
    Importer(
        "torchmil (bag_name, split, with labels/<bag>.npy beside the table)",
        lambda columns: {"bag_name", "split"} <= set(columns),
        _read_torchmil,
    ),
)


# STAMP's pair of tables: labels by patient, and the feature files of each patient.


def _read_stamp(
    table: Table, slide_table: Path | None = None, label_column: str | None = None
) -> SlideRows:
    """Join both tables; a note counts and names what is left over on either side.

    Clinical tables serve many targets, so a patient without this label is nothing unusual: such
    patients are left out and noted too.
    """
    if slide_table is None:
        fix = "give the slide table (PATIENT, FILENAME) with --slide-table"
        raise CohortError(table.path, "names patients but no slides", fix)
    label = _choose_label(table, {"PATIENT"}, label_column)
    patients = table.unique(table.filled("PATIENT"), "patient")
    labels = dict(zip(patients, (row[label] for row in table.rows), strict=True))
    files = read_table(slide_table)
    files.require("PATIENT", "FILENAME")
    slide_ids = files.unique([_without_suffix(name) for name in files.filled("FILENAME")])
    owners = files.filled("PATIENT")

    pairs = list(zip(slide_ids, owners, strict=True))
    slides = tuple(Slide(s, case, labels[case]) for s, case in pairs if labels.get(case))
    if not slides:
        what = f"no patient with a {label!r} has a slide in {files.path}"
        raise CohortError(table.path, what, "check that both tables use the same patient names")
    seen, strangers = set(owners), "slides belong to patients who are not in the clinical table"
    left_out = {
        "patients have no slide": [p for p in patients if labels[p] and p not in seen],
        strangers: [s for s, case in pairs if case not in labels],
        f"patients have no {label!r}": [p for p in patients if not labels[p]],
    }
    notes = tuple(
        f"{len(names)} {what} and are left out ({listed(names, 5)})"
        for what, names in left_out.items()
        if names
    )
    return SlideRows(slides, notes)


def _without_suffix(filename: str) -> str:
    path = PurePosixPath(filename.replace("\\", "/"))
    return path.stem if path.suffix.lower() in suffixes() else path.name


IMPORTERS.add(
    "stamp",
    Importer(
        "STAMP (PATIENT and label columns, with a slide table PATIENT, FILENAME)",
        lambda columns: "PATIENT" in columns and "FILENAME" not in columns,
        _read_stamp,
        options=("slide_table", "label_column"),
    ),
)


# FOCI's own table, and CLAM's dataset CSV, which it extends: one row per slide.


def _read_tidy(table: Table, label_column: str | None = None) -> SlideRows:
    """Columns beyond ``slide_id`` and the label are optional; relative paths start at the table.

    A slide without a label can be audited, so an empty label is none.
    """
    folder, label = table.path.parent, label_column or "label"
    table.require("slide_id")
    table.require(label, fix="name the label column with --label-column")
    slide_ids = table.unique(table.filled("slide_id"))
    notes: list[str] = []
    if (patient := _patient_column(table)) is not None:
        cases = table.filled(patient)
    else:
        cases = [case_of(slide_id) for slide_id in slide_ids]
        notes.append(_derived_cases_note(slide_ids))
    if without := [row["slide_id"] for row in table.rows if not row[label]]:
        notes.append(f"no {label} for {some(without)}")
    named = split_column(table, "split") if "split" in table.columns else [None] * len(slide_ids)
    slides = tuple(
        Slide(
            slide_id=row["slide_id"],
            case_id=case_id,
            label=row[label] or None,
            split=split,
            site=row.get("site") or None,
            slide_path=folder / text if (text := row.get("slide_path")) else None,
            feature_path=folder / text if (text := row.get("feature_path")) else None,
        )
        for row, case_id, split in zip(table.rows, cases, named, strict=True)
    )
    return SlideRows(slides, tuple(notes))


IMPORTERS.add(
    "tidy",
    Importer(
        "FOCI or CLAM (slide_id, case_id or patient_id, label; optional split, site, slide_path, "
        "feature_path)",
        lambda columns: "slide_id" in columns,
        _read_tidy,
        options=("label_column",),
    ),
)


# Columns of numbers: read column by column, so that every table that names a class can name them

Kind = Literal["survival", "value", "labels"]

_OPTIONS: dict[Output, tuple[str, ...]] = {
    "class": ("--label-column",),
    "cox": ("--time", "--event"),
    "hazards": ("--time", "--event"),
    "regression": ("--value",),
    "multilabel": ("--label-columns",),
}
"""Options that name the columns of every output."""

_OUTPUTS: dict[Kind, Output] = {"survival": "cox", "value": "regression", "labels": "multilabel"}
"""An output that is read from each kind of columns."""

_MARKS = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "0.0": 0.0, "1.0": 1.0}


@dataclass(frozen=True)
class Outcomes:
    """Which columns of a label table to read, and as what.

    Attributes:
        kind: ``"survival"``: a time and whether the event was seen then; ``"value"``: a number;
            ``"labels"``: a 0 or 1 per column.
        columns: Their names.
    """

    kind: Kind
    columns: tuple[str, ...]

    @classmethod
    def named(
        cls,
        time: str | None = None,
        event: str | None = None,
        value: str | None = None,
        labels: Sequence[str] | None = None,
    ) -> Outcomes | None:
        """The columns that were asked for; None if none were.

        >>> Outcomes.named(time="days", event="died")
        Outcomes(kind='survival', columns=('days', 'died'))
        >>> Outcomes.named(time="days")
        Traceback (most recent call last):
        foci.errors.CohortError: --time days: says nothing without --event; give both
        """
        if (time is None) != (event is None):
            given, lacking = ("--time", "--event") if event is None else ("--event", "--time")
            where = f"{given} {time if event is None else event}"
            raise CohortError(where, f"says nothing without {lacking}", "give both")
        kinds: list[tuple[Kind, tuple[str, ...]]] = []
        if time is not None and event is not None:
            kinds.append(("survival", (time, event)))
        if value is not None:
            kinds.append(("value", (value,)))
        if labels:
            kinds.append(("labels", tuple(labels)))
        if len(kinds) > 1:
            what = f"are of two kinds: {kinds[0][0]} and {kinds[1][0]}"
            raise CohortError("label columns", what, "give one")
        return cls(*kinds[0]) if kinds else None

    @property
    def option(self) -> str:
        """The option that names the first column."""
        return _OPTIONS[_OUTPUTS[self.kind]][0]

    def check(self, output: Output) -> None:
        """Refuse columns that say nothing of what a model puts out.

        >>> Outcomes("value", ("score",)).check("cox")
        Traceback (most recent call last):
        foci.errors.CohortError: --value score: is not what output cox is about; give --time...
        """
        if _OPTIONS[output][0] != self.option:
            where = f"{self.option} {','.join(self.columns)}"
            fix = f"give {', '.join(_OPTIONS[output])}"
            raise CohortError(where, f"is not what output {output} is about", fix)

    def read(
        self, labels: str | Path, *, label_column: str | None = None, **tables: Any
    ) -> SlideRows:
        """The slides of a label table with these numbers, and without a class.

        A slide that lacks one of the numbers can be audited, but is not scored.

        Raises:
            CohortError: If an entry is no such number, or the numbers say nothing: no event, a
                constant value, a label that no slide has.
        """
        if label_column is not None:
            where = f"--label-column {label_column}"
            raise CohortError(where, f"and {self.option} are two kinds of label", "give one")
        tables_of = [read_slides(labels, label_column=name, **tables) for name in self.columns]
        rows = tables_of[0]
        texts = [{one.slide_id: one.label for one in table.slides} for table in tables_of]
        slides = []
        for slide in rows.slides:
            cells = [text.get(slide.slide_id) for text in texts]
            known: tuple[float, ...] = ()
            if all(cell is not None for cell in cells):
                known = tuple(
                    self._number(labels, slide.slide_id, place, str(cell))
                    for place, cell in enumerate(cells)
                )
            slides.append(replace(slide, label=None, outcome=known))
        self._check(labels, [slide.outcome for slide in slides if slide.outcome])
        without = [slide.slide_id for slide in slides if not slide.outcome]
        note = (f"no {' and '.join(self.columns)} for {some(without)}",) if without else ()
        own = tuple(one for one in rows.notes if not one.startswith(f"no {self.columns[0]} for"))
        return SlideRows(tuple(slides), own + note)

    def _number(self, table: str | Path, slide: str, place: int, cell: str) -> float:
        column = self.columns[place]
        where = f"{table}, slide {slide}"
        if self.kind == "labels" or (self.kind == "survival" and place == 1):
            if cell.strip().lower() not in _MARKS:
                what = f"has {column} {cell!r}, which is neither 0 nor 1"
                raise CohortError(where, what, "write 1 where it was seen, else 0")
            return _MARKS[cell.strip().lower()]
        try:
            number = float(cell)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            what = f"has {column} {cell!r}, which is no number"
            raise CohortError(where, what, "write a number, or leave the cell empty")
        if self.kind == "survival" and number <= 0:
            what = f"has {column} {cell}, which is not positive"
            raise CohortError(where, what, "give the time from diagnosis to event or last visit")
        return number

    def _check(self, table: str | Path, known: Sequence[tuple[float, ...]]) -> None:
        """Refuse numbers that say nothing."""
        if not known:
            what = f"has no slide with {' and '.join(self.columns)}"
            raise CohortError(table, what, "fill the columns")
        if self.kind == "survival" and not any(event for _, event in known):
            what = f"has no event in {self.columns[1]}: all of {len(known)} slides are censored"
            raise CohortError(table, what, "write 1 where the event was seen")
        if self.kind == "value" and len({row[0] for row in known}) == 1:
            what = f"has the same {self.columns[0]} ({known[0][0]:g}) on every slide"
            raise CohortError(table, what, "give a column that differs")
        for place, column in enumerate(self.columns if self.kind == "labels" else ()):
            present = {row[place] for row in known}
            if len(present) == 1:
                what = f"has {column} {present.pop():g} on every slide"
                raise CohortError(table, what, "leave the label out, or add slides")
