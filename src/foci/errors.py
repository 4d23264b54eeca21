"""Errors for bad input, in one line: which file or slide, what is wrong, what to do."""

from __future__ import annotations

from os import PathLike

LONGEST = 400
"""Characters that one part of a message may have; the middle of a longer one is left out."""


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


class WidthError(BagError):
    """Features of another width than the model, or the other bags, have."""


class SlideError(FociError):
    """A whole-slide image that cannot be read, tiled or encoded."""


class CohortError(FociError):
    """A label table, split or task that cannot become a cohort."""


class CheckpointError(FociError):
    """Weights that cannot become a backbone."""


class ChangedError(FociError):
    """A classifier or a file that changed while a run depended on it."""


def printable(text: str) -> str:
    r"""Text that is safe to show in a terminal: control characters become escapes.

    A name in a table or a file can hold sequences that clear the screen or reverse the text.

    >>> print(printable("slide\x1b[2J-1"))
    slide\x1b[2J-1
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii")
        for c in text
    )


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text with its middle left out where it is longer than ``longest``.

    >>> shortened("abcdefghijklmnop", 11)
    'abcd...mnop'
    """
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"


def _one_line(text: str) -> str:
    return shortened(printable(" ".join(text.split())))
