"""Errors for bad input, in one line: which file or slide, what is wrong, what to do."""

from __future__ import annotations

from os import PathLike


class FociError(ValueError):
    """Bad input, described in one line.

    Args:
        where: The file, slide, patient or option that is wrong.
        what: What is wrong with it.
        fix: What the user can do about it.

    >>> print(FociError("a.h5", "has no dataset 'features'", "re-extract the slide"))
    a.h5: has no dataset 'features'; re-extract the slide
    """

    def __init__(self, where: str | PathLike[str], what: str, fix: str) -> None:
        self.where, self.what, self.fix = (_one_line(part) for part in (str(where), what, fix))
        super().__init__(f"{self.where}: {self.what}; {self.fix}")

    def __reduce__(self) -> tuple[type[FociError], tuple[str, str, str]]:
        return type(self), (self.where, self.what, self.fix)


class BagError(FociError):
    """A feature file that cannot become a bag."""


class EmptyBagError(BagError):
    """A feature file without tiles: no tissue was found on the slide."""


class NotFiniteError(BagError):
    """Features that hold NaN or Inf."""


class SlideError(FociError):
    """A whole-slide image that cannot be read, tiled or encoded."""


class CohortError(FociError):
    """A label table, split or task that cannot become a cohort."""


class CheckpointError(FociError):
    """Weights that cannot become a backbone."""


def _one_line(text: str) -> str:
    return " ".join(text.split())
