"""Match the rows of a label table to feature files."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foci.bags.cohort.feature_folder import is_clam_pair
from foci.bags.cohort.slide import Skipped, Slide
from foci.bags.cohort.tcga import without_uuid
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


def match(slides: Sequence[Slide], files: Mapping[str, Path]) -> Matched:
    """Give every slide its feature file.

    A name matches exactly, without a file ending, or, for TCGA, without the ``.UUID`` on either
    side. Where a shortened name fits several files, the row is refused. A path in the table is
    taken as it is, unless ``files`` holds another file of that slide, which is ambiguous. A file
    belongs to one row only.
    """
    shortened: dict[str, list[str]] = defaultdict(list)
    for name in files:
        shortened[short(name)].append(name)
    placed = any(slide.feature_path is not None for slide in slides)
    found: list[Slide] = []
    missing: list[Skipped] = []
    owner: dict[Path, str] = {}
    named: set[str] = set()
    for slide in slides:
        exact = slide.slide_id in files
        names = [slide.slide_id] if exact else shortened.get(short(slide.slide_id), [])
        path, reason = _file(slide, {name: files[name] for name in names})
        if len(names) == 1:
            named.add(names[0])
        if path is None:
            missing.append(Skipped(slide.slide_id, reason))
            continue
        key = path.resolve() if placed else path
        if key in owner:
            raise CohortError(
                path,
                f"belongs to two rows of the label table ({owner[key]}, {slide.slide_id})",
                "keep one of them",
            )
        owner[key] = slide.slide_id
        found.append(replace(slide, feature_path=path))
    unused = tuple(
        name
        for name, path in files.items()
        if name not in named and (path.resolve() if placed else path) not in owner
    )
    return Matched(tuple(found), tuple(missing), unused)


def _file(slide: Slide, candidates: Mapping[str, Path]) -> tuple[Path | None, str]:
    """The slide's feature file, or None and the reason."""
    path = slide.feature_path
    if path is None:
        if len(candidates) > 1:
            several = ", ".join(sorted(candidates)[:3])
            fix = "write the full name into the label table"
            raise CohortError(slide.slide_id, f"fits several feature files ({several})", fix)
        return next(iter(candidates.values()), None), "no feature file of this name"
    if not os.path.isfile(path):  # noqa: PTH113 - is_file raises where a folder is closed
        return None, f"its feature_path {path} is no file"
    others = candidates.values()
    if others and not any(_same(path, other) for other in others):
        raise CohortError(
            slide.slide_id,
            f"has two feature files: {next(iter(others))} in the feature folder, {path} as its "
            "feature_path",
            "correct or empty its feature_path, or give the folder that it names",
        )
    return path, ""


def _same(path: Path, other: Path) -> bool:
    """Whether both are one file, or CLAM's two files of one bag."""
    if path.resolve() == other.resolve():
        return True
    return (
        is_clam_pair(path, other) and path.parent.parent.resolve() == other.parent.parent.resolve()
    )


def short(slide_id: str) -> str:
    """A slide name without file suffix and TCGA UUID.

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
