"""Columns that several tables share, and how to fill them."""

from __future__ import annotations

from collections.abc import Mapping

from foci.studies.published import PublishedNumbers
from foci.studies.readings.measures import Measure, Place
from foci.studies.readings.numbers import Numbers
from foci.studies.readings.values import Value
from foci.studies.tables.table import Cell, Column

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
