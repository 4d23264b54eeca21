"""Patho-Bench's ``k=all.tsv``: one column per fold."""

from __future__ import annotations

import re

from foci.bags.bag import Slide, SlideRows
from foci.bags.importers.importer import Importer, ImportOptions, choose_label, split_column
from foci.bags.tables import Table
from foci.errors import CohortError

_FOLD = re.compile(r"fold_(\d+)")


def _read(table: Table, options: ImportOptions) -> SlideRows:
    """One fold, the first unless another is chosen."""
    table.require("case_id", "slide_id")
    folds = {int(m[1]): m[0] for name in table.columns if (m := _FOLD.fullmatch(name))}
    fold = min(folds) if options.fold is None else options.fold
    if fold not in folds:
        known = ", ".join(map(str, sorted(folds)))
        raise CohortError(table.path, f"has no fold {fold} (it has {known})", "choose one of them")
    taken = {"case_id", "slide_id", *folds.values()}
    label = choose_label(table, taken, options.label_column)
    slide_ids = table.unique(table.filled("slide_id"))
    cases, labels = table.filled("case_id"), table.filled(label)
    slides = tuple(map(Slide, slide_ids, cases, labels, split_column(table, folds[fold])))
    if options.fold is None and len(folds) > 1:
        return SlideRows(slides, (f"fold {fold} of {len(folds)} is used",))
    return SlideRows(slides)


IMPORTER = Importer(
    "Patho-Bench (case_id, slide_id, a label, fold_0, fold_1, ...)",
    lambda columns: "slide_id" in columns and any(map(_FOLD.fullmatch, columns)),
    _read,
    options=("label_column", "fold"),
)
