"""Keep or drop slides by class: ``--only-classes`` and ``--exclude-class``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from foci.bags.cohort.slide import Slide
from foci.errors import CohortError
from foci.words.plural import counted


def choose_classes(
    slides: Sequence[Slide], only: Sequence[str] | None, exclude: Sequence[str] | None
) -> tuple[tuple[Slide, ...], tuple[str, ...]]:
    """Slides of the wanted classes, and notes on how many of each other class are left out.

    Args:
        slides: The rows of the label table.
        only: Classes to keep; slides without a label go. None for all.
        exclude: Classes to drop; slides without a label stay.

    Raises:
        CohortError: If a class is not in the table, or no slide is left.
    """
    if not only and not exclude:
        return tuple(slides), ()
    known = sorted({slide.label for slide in slides if slide.label is not None})
    for option, names in (("--only-classes", only or ()), ("--exclude-class", exclude or ())):
        for name in names:
            if name not in known:
                what = f"is no class of the label table ({', '.join(known) or 'it has none'})"
                raise CohortError(f"{option} {name}", what, "write it as in the table")
    wanted = set(only or known) - set(exclude or ())
    kept = tuple(s for s in slides if (not only if s.label is None else s.label in wanted))
    if not any(slide.label in wanted for slide in kept):
        raise CohortError("--exclude-class", "leaves no class over", "keep at least one")
    left_out = Counter(slide.label for slide in slides) - Counter(slide.label for slide in kept)
    notes = tuple(
        f"left out: {counted(n, 'slide')} {'without a label' if name is None else f'of {name}'}, "
        f"by {'--only-classes' if only else '--exclude-class'}"
        for name, n in left_out.items()
    )
    return kept, notes
