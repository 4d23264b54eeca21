"""Match the rows of a label table to the feature files of a folder, by the names of the slides.

The names of TCGA slides are barcodes: ``TCGA-05-4244-01Z-00-DX1`` reads project, tissue source
site, patient, sample type and vial, portion, slide. Files of the GDC carry a ``.<UUID>`` behind it;
many tools cut it off.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foci.bags.bag import Skipped, Slide
from foci.bags.layouts import suffixes
from foci.bags.layouts.layout import STORE, ending
from foci.errors import BagError, CohortError

_BARCODE = re.compile(
    r"TCGA-(?P<site>[A-Z0-9]{2})-[A-Z0-9]{4}"
    r"(?:-(?P<sample>\d{2})[A-Z]?(?:-\d{2}(?:-(?P<slide>[A-Z]{2}[A-Z0-9]*))?)?)?"
    r"(?![A-Z0-9])",
    re.IGNORECASE,
)
_UUID = re.compile(r"\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)


@dataclass(frozen=True)
class Barcode:
    """The parts of a TCGA barcode.

    Attributes:
        case: The patient, the first 12 characters.
        site: Tissue source site, the hospital.
        sample_type: ``"01"`` primary tumour, ``"06"`` metastasis, ``"11"`` normal tissue, or None.
        slide: ``"DX1"`` diagnostic (paraffin); ``"TS1"``, ``"MS1"``, ``"BS1"`` frozen; or None.
    """

    case: str
    site: str
    sample_type: str | None
    slide: str | None


def parse_barcode(slide_id: str) -> Barcode | None:
    """Parse a slide name that begins with a TCGA barcode; None for any other.

    >>> parse_barcode("TCGA-05-4244-01Z-00-DX1.svs")
    Barcode(case='TCGA-05-4244', site='05', sample_type='01', slide='DX1')
    >>> parse_barcode("patient-7")
    """
    found = _BARCODE.match(slide_id)
    if found is None:
        return None
    slide = found["slide"]
    return Barcode(
        case=slide_id[:12].upper(),
        site=found["site"].upper(),
        sample_type=found["sample"],
        slide=None if slide is None else slide.upper(),
    )


def case_of(slide_id: str) -> str:
    """The patient of a TCGA slide; any other slide counts as its own patient.

    >>> case_of("TCGA-05-4244-01Z-00-DX1"), case_of("slide 7")
    ('TCGA-05-4244', 'slide 7')
    """
    barcode = parse_barcode(slide_id)
    return slide_id if barcode is None else barcode.case


def without_uuid(slide_id: str) -> str:
    """A TCGA slide name without its trailing ``.<UUID>``; other names stay as they are.

    >>> without_uuid("TCGA-05-4244-01Z-00-DX1.d4ff32cd-38cf-40ea-8213-45c2b100ac01")
    'TCGA-05-4244-01Z-00-DX1'
    >>> without_uuid("scan.d4ff32cd-38cf-40ea-8213-45c2b100ac01")
    'scan.d4ff32cd-38cf-40ea-8213-45c2b100ac01'
    """
    return _UUID.sub("", slide_id) if parse_barcode(slide_id) else slide_id


_NOT_FEATURES = (
    "patches", "coords", "labels", "patch_labels", "masks", "stitches",
    "slide_embeddings", "hierarchical_embeddings", "slide_latents",
)  # fmt: skip
"""Other folders that the same tools write."""

_NOT_BAGS = (".index.npz", ".index.npy", ".coordinates.npz", "_patches.h5")
"""Endings of other files that stand beside feature files."""


def find_features(folder: str | Path) -> dict[str, Path]:
    """Feature file of every slide, by file name without suffix; sub-folders are searched too.

    Where CLAM's ``h5_files`` and ``pt_files`` hold the same slide, the ``.h5`` is taken because it
    has the coordinates. Any other name that occurs twice is ambiguous and is refused.
    """
    folder = Path(folder)
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise BagError(folder, what, "give the folder that holds the feature files")
    found: dict[str, Path] = {}
    for path in _walk(folder):
        known = found.get(path.stem)
        if known is None or is_clam_pair(known, path):
            found[path.stem] = path
        elif not is_clam_pair(path, known):
            fix = "point at the folder of one encoder and one tile size"
            raise BagError(path, f"slide {path.stem!r} is also in {known}", fix)
    if not found:
        endings = ", ".join(sorted(suffixes()))
        raise BagError(folder, f"holds no feature files ({endings})", "check the path")
    return found


def _walk(folder: Path) -> list[Path]:
    paths: list[Path] = []
    known = suffixes()
    visited: set[str] = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(root)) in visited:  # a link that leads back up
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(f for f in folders if f not in _NOT_FEATURES and f[0] not in "._")
        stores = [name for name in folders if Path(name).suffix.lower() == STORE]
        folders[:] = [name for name in folders if name not in stores]
        paths += [
            Path(root, name)
            for name in sorted([*names, *stores])
            if Path(name).suffix.lower() in known
            and name[0] != "."
            and not name.endswith(_NOT_BAGS)
        ]
    return paths


def is_clam_pair(tensor: Path, hdf5: Path) -> bool:
    """Whether two files of one name are CLAM's ``pt_files`` and ``h5_files``."""
    return tensor.parent.name == "pt_files" and hdf5.parent.name == "h5_files"


_SLIDE_ENDINGS = (
    ".svs", ".tiff", ".tif", ".ndpi", ".mrxs", ".scn", ".vms", ".bif", ".czi", ".dcm",
    ".h5", ".hdf5", ".pt", ".npz", ".npy", ".zarr",
)  # fmt: skip


@dataclass(frozen=True)
class Matched:
    """Rows with a feature file, rows without one, and feature files that no row names."""

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
    known = Names(files)
    has_paths = any(slide.feature_path is not None for slide in slides)
    found: list[Slide] = []
    missing: list[Skipped] = []
    owner: dict[Path, str] = {}
    named: set[str] = set()
    for slide in slides:
        names = known.like(slide.slide_id)
        path, reason = _file(slide, {name: files[name] for name in names})
        if len(names) == 1:
            named.add(names[0])
        if path is None:
            missing.append(Skipped(slide.slide_id, reason))
            continue
        key = path.resolve() if has_paths else path
        if key in owner:
            what = f"belongs to two rows of the label table ({owner[key]}, {slide.slide_id})"
            raise CohortError(path, what, "keep one of them")
        owner[key] = slide.slide_id
        found.append(replace(slide, feature_path=path))
    unused = tuple(
        name
        for name, path in files.items()
        if name not in named and (path.resolve() if has_paths else path) not in owner
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
    # not Path.is_file and is_dir, which raise where a folder is closed
    is_store = ending(path) == STORE and os.path.isdir(path)  # noqa: PTH112
    if not is_store and not os.path.isfile(path):  # noqa: PTH113
        return None, f"its feature_path {path} is no file"
    for other in candidates.values():
        if other.resolve() in (path.resolve(), *path.resolve().parents):  # or a table in it
            return path, ""
        folders = (path.parent.parent.resolve(), other.parent.parent.resolve())
        if is_clam_pair(path, other) and folders[0] == folders[1]:  # two files of one bag
            return path, ""
    if candidates:
        raise CohortError(
            slide.slide_id,
            f"has two feature files: {next(iter(candidates.values()))} in the feature folder, "
            f"{path} as its feature_path",
            "correct or empty its feature_path, or give the folder that it names",
        )
    return path, ""


class Names:
    """Names of slides, found by names that may lack or add a file ending or a TCGA UUID."""

    def __init__(self, names: Iterable[str]) -> None:
        self.exact = dict.fromkeys(names)  # in their order
        self._short: dict[str, list[str]] = defaultdict(list)
        for name in self.exact:
            self._short[short(name)].append(name)

    def like(self, name: str) -> list[str]:
        """The name itself, or else all that differ only in file ending and UUID."""
        return [name] if name in self.exact else self._short.get(short(name), [])


def short(slide_id: str) -> str:
    """A slide name without file suffix and TCGA UUID.

    >>> short("TCGA-05-4244-01Z-00-DX1.d4ff32cd-38cf-40ea-8213-45c2b100ac01.svs")
    'TCGA-05-4244-01Z-00-DX1'
    >>> short("007.svs"), short("case.2")
    ('007', 'case.2')
    """
    for known in _SLIDE_ENDINGS:
        if slide_id.lower().endswith(known):
            slide_id = slide_id[: -len(known)]
            break
    return without_uuid(slide_id)
