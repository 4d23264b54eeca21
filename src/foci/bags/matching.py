"""Which feature file belongs to which row of a label table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from foci.bags.slide import Skipped, Slide
from foci.bags.tcga import without_uuid
from foci.errors import CohortError

_SLIDE_ENDINGS = (
    ".svs", ".tiff", ".tif", ".ndpi", ".mrxs", ".scn", ".vms", ".bif", ".czi", ".dcm",
    ".h5", ".hdf5", ".pt", ".npz", ".npy",
)  # fmt: skip


@dataclass(frozen=True)
class Matched:
    """Result of :func:`match`.

    Attributes:
        slides: Rows with a feature file.
        missing: Rows without one.
        unused: Feature files that no row names.
    """

    slides: tuple[Slide, ...]
    missing: tuple[Skipped, ...]
    unused: tuple[str, ...]


def match(slides: Iterable[Slide], files: Mapping[str, Path]) -> Matched:
    """Give every slide its feature file.

    A name matches exactly, without a file ending, or, for TCGA, without the ``.UUID`` on either
    side. Where a shortened name fits several files, the row is refused.
    """
    shortened: dict[str, list[str]] = defaultdict(list)
    for name in files:
        shortened[short(name)].append(name)
    found: list[Slide] = []
    missing: list[Skipped] = []
    owner: dict[str, str] = {}
    placed: set[Path] = set()
    for slide in slides:
        if slide.feature_path is not None:
            found.append(slide)
            placed.add(slide.feature_path.resolve())
            continue
        names = [slide.slide_id] if slide.slide_id in files else shortened[short(slide.slide_id)]
        if len(names) > 1:
            several = ", ".join(sorted(names)[:3])
            fix = "write the full name into the label table"
            raise CohortError(slide.slide_id, f"fits several feature files ({several})", fix)
        if not names:
            missing.append(Skipped(slide.slide_id, "no feature file of this name"))
            continue
        name = names[0]
        if name in owner:
            raise CohortError(
                files[name],
                f"belongs to two rows of the label table ({owner[name]}, {slide.slide_id})",
                "keep one of them",
            )
        owner[name] = slide.slide_id
        found.append(replace(slide, feature_path=files[name]))
    unused = tuple(
        name for name, path in files.items() if name not in owner and path.resolve() not in placed
    )
    return Matched(tuple(found), tuple(missing), unused)


def short(slide_id: str) -> str:
    """A slide name without file ending and TCGA UUID.

    >>> short("TCGA-05-4244-01Z-00-DX1.d4ff32cd-38cf-40ea-8213-45c2b100ac01.svs")
    'TCGA-05-4244-01Z-00-DX1'
    >>> short("007.svs"), short("case.2")
    ('007', 'case.2')
    """
    for ending in _SLIDE_ENDINGS:
        if slide_id.lower().endswith(ending):
            slide_id = slide_id[: -len(ending)]
            break
    return without_uuid(slide_id)
