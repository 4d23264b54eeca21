"""All tables of a study, made from the curves of finished audits and written in three formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from foci.files.atomic import write_whole
from foci.studies.folder import StudyFolder
from foci.studies.formats import document, to_csv, to_latex, to_markdown
from foci.studies.our_tables import hypotheses_table, joint_table, preservation_table, tests_table
from foci.studies.paper_tables import (
    across_table,
    adaptive_table,
    budget_table,
    cap_table,
    compact_table,
    efficiency_table,
    faithfulness_table,
    gate_table,
    kappa_table,
    loss_table,
    main_table,
    predicted_table,
    selected_table,
    shi_table,
    sweep_table,
)
from foci.studies.published import PublishedNumbers, published
from foci.studies.read import StudyNumbers, read_numbers
from foci.studies.study import Study
from foci.studies.table import Table, differences

FOLDER = "tables"
DOCUMENT = "all.tex"


@dataclass(frozen=True, eq=False)
class StudyTables:
    """The tables of a study, and what they were made from.

    Attributes:
        numbers: What was read.
        header: What differs from the paper's setting.
        tables: In the order of the paper, ours last.
    """

    numbers: StudyNumbers
    header: tuple[str, ...]
    tables: tuple[Table, ...]


def build(folder: StudyFolder) -> StudyTables:
    """Read all finished cells and make every table."""
    study, numbers = folder.study, read_numbers(folder)
    paper = published() if study.published else None
    return StudyTables(numbers, differences(study, numbers), tuple(tables(study, numbers, paper)))


def tables(study: Study, numbers: StudyNumbers, paper: PublishedNumbers | None) -> Iterator[Table]:
    """Every table that has a row, in the order of the paper, ours last."""
    recipe = study.settings(study.seeds[0]).recipe
    made = [
        shi_table(numbers, paper),
        compact_table(numbers, paper),
        *(main_table(numbers, cohort, paper) for cohort in numbers.cohorts),
        *(budget_table(numbers, paper, b) for b in study.read.budgets if b < _k_max(study)),
        kappa_table(numbers, paper, study.read.kappas),
        cap_table(numbers, paper, study.n_cap),
        adaptive_table(numbers, paper),
        selected_table(numbers, paper),
        sweep_table(numbers, paper, study.read.selected_k),
        gate_table(numbers, paper, recipe),
        loss_table(numbers, paper, recipe),
        faithfulness_table(numbers, paper),
        across_table(numbers, paper),
        predicted_table(numbers, paper),
        efficiency_table(numbers, paper),
        tests_table(numbers, paper),
        hypotheses_table(numbers, paper),
        preservation_table(numbers),
        joint_table(numbers),
    ]
    yield from (table for table in made if table.rows)


def write(folder: StudyFolder | str | Path) -> StudyTables:
    """Make all tables and write them into ``tables/`` as CSV, Markdown and LaTeX.

    ``tables/all.tex`` is a document that includes every table.

    Args:
        folder: The study.
    """
    opened = folder if isinstance(folder, StudyFolder) else StudyFolder(folder)
    made = build(opened)
    out = opened.path / FOLDER
    out.mkdir(parents=True, exist_ok=True)
    for table in made.tables:
        write_whole(out / f"{table.label}.csv", to_csv(table), durable=False)
        write_whole(out / f"{table.label}.md", to_markdown(table, made.header), durable=False)
        write_whole(out / f"{table.label}.tex", to_latex(table, made.header), durable=False)
    write_whole(out / DOCUMENT, document(table.label for table in made.tables), durable=False)
    return made


def _k_max(study: Study) -> int:
    return study.settings(study.seeds[0]).k_max
