"""Names of the quantities that tables ask for, and of where in a study they are measured."""

from __future__ import annotations

from dataclasses import dataclass

from foci.audits.settings import View

MAIN = "main"
NATIVE, SELECTOR, RANDOM, EVIDENCE = "native", "selector", "random", "evidence"


@dataclass(frozen=True)
class Place:
    """Audits that differ only in their seed, or in seed and fold.

    Attributes:
        cohort: Name of the cohort in the study.
        backbone: Name of the backbone in the study.
        variant: ``"main"``, or a variant of a sweep.
        n_cap: Most tiles per bag; None for the study's own.
    """

    cohort: str
    backbone: str
    variant: str = MAIN
    n_cap: int | None = None


@dataclass(frozen=True)
class Measure:
    """A number of one audit.

    Attributes:
        metric: Its name, see :mod:`foci.studies.readings.audit`.
        ranking: Which order of the tiles; empty for numbers of the whole bag.
        view: Which class is followed: the label (the paper's tables) or the prediction.
        kappa: Operating confidence; None for the audit's own, and where none is needed.
        k_max: Largest count; None for the audit's own.
        k: Tiles deleted or kept; None for the adaptive number.
    """

    metric: str
    ranking: str = ""
    view: View = "label"
    kappa: float | None = None
    k_max: int | None = None
    k: int | None = None
