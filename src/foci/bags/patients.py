"""All slides of a patient as one bag: joined when they are read, never rewritten.

Tiles keep the slide that they come from and their place on it. Where they are shown together, the
slides stand side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from foci.bags.bag import Bag, Provenance, Slide, spacing
from foci.errors import BagError, CohortError


def by_patient(slides: Sequence[Slide]) -> tuple[Slide, ...]:
    """One row per patient, in the order of the table, with its slides as parts.

    Raises:
        CohortError: If two slides of a patient differ in label, numbers or split.
    """
    cases: dict[str, list[Slide]] = {}
    for slide in slides:
        cases.setdefault(slide.case_id, []).append(slide)
    found = []
    for case, own in cases.items():
        for name, what in (("label", "labels"), ("outcome", "numbers"), ("split", "splits")):
            values = {getattr(slide, name) for slide in own}
            if len(values) > 1:
                shown = " and ".join(sorted(str(value) for value in values))
                raise CohortError(
                    f"patient {case}",
                    f"has slides with different {what} ({shown})",
                    "give a patient one, or leave out --bag patient",
                )
        first = own[0]
        found.append(
            Slide(case, case, first.label, first.split, first.site, None, None, first.outcome,
                  tuple(own))
        )  # fmt: skip
    return tuple(found)


def joined(slide_id: str, bags: Sequence[Bag]) -> Bag:
    """The bags of a patient's slides as one, with the slide of every tile."""
    units = {bag.unit for bag in bags}
    if len(units) > 1:
        what = f"has slides measured in {' and '.join(sorted(units))}"
        raise BagError(slide_id, what, "give --mpp, or encode them alike")
    placed = all(bag.coords is not None for bag in bags)
    sizes = {bag.patch_size for bag in bags}
    encoders = sorted({bag.provenance.encoder or "" for bag in bags} - {""})
    starts = np.cumsum([0, *(bag.n_total for bag in bags[:-1])])
    wrong = [bag.provenance.misplaced for bag in bags if bag.provenance.misplaced]
    return replace(
        bags[0],
        slide_id=slide_id,
        features=np.concatenate([bag.features for bag in bags]),
        coords=np.concatenate([bag.coords for bag in bags if bag.coords is not None])
        if placed
        else None,
        patch_size=sizes.pop() if len(sizes) == 1 else None,
        patch_size_inferred=any(bag.patch_size_inferred for bag in bags),
        kept=np.concatenate([start + bag.tiles for start, bag in zip(starts, bags, strict=True)]),
        n_in_file=sum(bag.n_total for bag in bags),
        provenance=Provenance(
            layout=bags[0].provenance.layout,
            encoder=", ".join(encoders) or None,
            notes=tuple(dict.fromkeys(note for bag in bags for note in bag.provenance.notes)),
            misplaced=wrong[0] if wrong else None,
        ),
        sources=tuple(bag.slide_id for bag in bags for _ in range(len(bag))),
        own_rows=np.concatenate([bag.tiles for bag in bags]),
    )


def side_by_side(coords: NDArray[np.int64], sources: Sequence[str]) -> NDArray[np.int64]:
    """Places ``[N, 2]`` on one canvas: slides from left to right, with a gap between.

    >>> side_by_side(np.array([[5, 5], [15, 5], [0, 0]]), ["a", "a", "b"]).tolist()
    [[0, 0], [10, 0], [31, 0]]
    """
    tile = round(spacing(coords) or 1)
    which = {name: np.array([one == name for one in sources]) for name in dict.fromkeys(sources)}
    gap = max(int(np.ptp(coords[own, 0])) for own in which.values()) // 10
    placed, start = np.empty_like(coords), 0
    for own in which.values():
        mine = coords[own]
        placed[own] = mine - mine.min(axis=0) + [start, 0]
        start += int(np.ptp(mine[:, 0])) + 2 * tile + gap
    return placed
