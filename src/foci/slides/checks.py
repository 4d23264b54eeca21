"""Check bags against their whole-slide images: what ``foci doctor --slides`` adds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foci.bags.bag import Bag, Skipped
from foci.bags.cohort import CohortOptions, find_slides
from foci.bags.doctor import Check
from foci.bags.layouts import read_bag
from foci.bags.matching import find_features
from foci.errors import BagError, FociError, SlideError
from foci.progress import track
from foci.slides.find import FoundSlide, find_images, match_images
from foci.slides.image import SlideImage
from foci.slides.tiling import NEARLY
from foci.words import some

USUAL_TILES_UM = (32.0, 1024.0)
"""Sides of tiles in micrometres that encoders are used with; others hint at a wrong resolution."""


@dataclass(frozen=True)
class _Finding:
    """What was seen of one slide; an empty text is no complaint."""

    slide_id: str
    unreadable: str = ""
    outside: str = ""
    size_um: float | None = None
    no_mpp: bool = False


def check_slides(options: CohortOptions, folder: Path, *, sample: int | None = None) -> list[Check]:
    """Are slides found for all bags, do coordinates lie inside, does the tile size agree?

    With ``sample`` only so many slides are looked at, spread over the cohort.
    """
    try:
        _, matched = find_slides(find_features(options.features), **options.table())
        images = find_images(folder)
    except FociError as error:
        return [Check("slides", "FAIL", f"{error.where}: {error.what}", error.fix)]
    bags = {s.slide_id: s.feature_path for s in matched.slides if s.feature_path is not None}
    search = match_images([(s.slide_id, s.slide_path) for s in matched.slides], images)
    found = list(search.found)
    if sample is not None and sample < len(found):
        found = [found[i] for i in np.linspace(0, len(found) - 1, sample).astype(int)]
    seen = [_look(bags[one.slide_id], one, options) for one in track(found, "slides")]
    checks = [_matching(len(bags), search.missing), _readable(seen)]
    good = [one for one in seen if not one.unreadable]
    return [*checks, _inside(good), _resolution(good)] if good else checks


def _look(path: Path, found: FoundSlide, options: CohortOptions) -> _Finding:
    name = found.slide_id
    try:
        bag = read_bag(path, slide_id=name, layout=options.layout, mpp=options.mpp)
    except BagError:
        return _Finding(name)  # the checks of the feature files tell of it
    try:
        with SlideImage(found.path, options.mpp) as slide:
            outside = _outside(bag, slide)
            known = slide.mpp is not None and bag.patch_size is not None and bag.unit == "px"
            size = (bag.patch_size or 0) * (slide.mpp or 0) if known else None
            return _Finding(name, "", outside, size, slide.mpp is None)
    except SlideError as error:
        return _Finding(name, str(error))


def _outside(bag: Bag, slide: SlideImage) -> str:
    """For example "12 of 300 tiles, up to x 9000 of 8000"; empty if all tiles lie inside."""
    if bag.coords is None or bag.unit != "px":
        return ""
    far = bag.coords + (bag.patch_size or 0)
    out = (bag.coords < 0).any(axis=1) | (far > np.array(slide.size)).any(axis=1)
    if not out.any():
        return ""
    x, y = far.max(axis=0)
    reach = f"up to {x} x {y} on {slide.size[0]} x {slide.size[1]}"
    return f"{out.sum()} of {len(bag)} tiles, {reach}"


def _matching(n: int, missing: tuple[Skipped, ...]) -> Check:
    if not missing:
        return Check("slides", "PASS", f"every one of {n} bags has a slide")
    names = some([slide.slide_id for slide in missing])
    fix = "check the folder and the names, or write slide_path into the label table"
    detail = f"no slide for {names}; first: {missing[0].reason}"
    return Check("slides", "FAIL" if len(missing) == n else "WARN", detail, fix)


def _readable(seen: list[_Finding]) -> Check:
    bad = [one for one in seen if one.unreadable]
    if bad:
        detail = f"{len(bad)} of {len(seen)} cannot be read; first: {bad[0].unreadable}"
        return Check("slide files", "FAIL", detail, "copy them again, or leave them out")
    return Check("slide files", "PASS", f"{len(seen)} opened")


def _inside(good: list[_Finding]) -> Check:
    bad = [one for one in good if one.outside]
    if bad:
        detail = f"outside in {some([one.slide_id for one in bad])}; first: {bad[0].outside}"
        fix = "the features belong to other slides, or to another level of them"
        return Check("tiles on slides", "FAIL", detail, fix)
    return Check("tiles on slides", "PASS", "all tiles lie inside their slides")


def _resolution(good: list[_Finding]) -> Check:
    """Tiles of a cohort cover the same tissue, of a usual size, whatever the scanner."""
    unknown = [one.slide_id for one in good if one.no_mpp]
    sizes = {one.slide_id: one.size_um for one in good if one.size_um is not None}
    give_mpp = "give --mpp, micrometres per level-0 pixel"
    if not sizes:
        return Check("tile size", "WARN", f"resolution unknown of {some(unknown)}", give_mpp)
    usual = float(np.median(list(sizes.values())))
    odd = [name for name, size in sizes.items() if abs(size / usual - 1) > 2 * NEARLY]
    if odd:
        detail = f"differs in {some(odd)}; first: {sizes[odd[0]]:.0f} um instead of {usual:.0f}"
        return Check("tile size", "FAIL", detail, "extract all slides at one resolution")
    if not USUAL_TILES_UM[0] <= usual <= USUAL_TILES_UM[1]:
        detail = f"tiles are {usual:.0f} um wide, which is unusual"
        return Check("tile size", "WARN", detail, "check the tile size and the slides' resolution")
    if unknown:
        detail = f"{usual:.0f} um; resolution unknown of {some(unknown)}"
        return Check("tile size", "WARN", detail, give_mpp)
    return Check("tile size", "PASS", f"tiles are {usual:.0f} um wide on every slide")
