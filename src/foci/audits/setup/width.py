"""Refuse features of another width than the classifier reads, in one line for the whole cohort."""

from __future__ import annotations

import numpy as np

from foci.bags import Cohort
from foci.errors import BagError, FociError, WidthError
from foci.words.plural import counted

_LOOKED_AT = 16


def check_width(cohort: Cohort) -> None:
    """Look at a few slides, until one has features that the classifier can read.

    Args:
        cohort: Adapted to a classifier, see :func:`foci.audits.setup.preflight.for_backbone`.

    Raises:
        BagError: If all that can be read have another width.
    """
    wrong: list[WidthError] = []
    places = np.unique(np.linspace(0, len(cohort) - 1, min(len(cohort), _LOOKED_AT)).astype(int))
    for place in places.tolist():
        try:
            cohort.store.bag(cohort.slides[place])
        except WidthError as error:
            wrong.append(error)
        except FociError:  # the run will skip this slide and say why
            continue
        else:
            return
    if wrong:
        first = wrong[0]
        seen = f"so in all of {counted(len(wrong), 'slide')} looked at"
        raise BagError(first.where, f"{first.what} ({seen})", first.fix)
